"""``evicat quality``: the score card of every producer, and a gate for scheduled runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.catalog.quality import MEASURES, Bound, quality
from evicat.catalog.query import Catalog
from evicat.schemas.errors import UsageError


def score(
    console: Console, catalog: Catalog, video: str | None, bounds: Sequence[str], *, seed: int, as_json: bool
) -> bool:
    """Print the card; whether it keeps all bounds.

    Raises:
        UsageError: a bound that is none, or one on what no producer of this catalog has: nothing was shown.
    """
    wanted = [Bound.parse(text) for text in bounds]
    card = quality(catalog, video, seed=seed)
    for bound in wanted:
        if bound.measure not in card["measure"]:
            raise UsageError(f"{bound.measure} is measured of no producer here: a bound on it proves nothing")
    broken = {bound: bound.broken(card).to_dicts() for bound in wanted}
    if as_json:
        for row in card.to_dicts():
            print(json.dumps(row))
    else:
        _print_card(console, card.to_dicts())
    for bound, rows in broken.items():
        for row in rows:
            who = f"{row['scale'] or row['kind']} by {row['component']} {row['producer_id'][:8]}"
            text = f"{bound.measure} is {row['value']:.3g}, wanted {bound.sign} {bound.limit:g}: {who}"
            Console(stderr=True).print(f"[red]broken[/] {escape(text)}", soft_wrap=True, highlight=False)
    return not any(broken.values())


def _print_card(console: Console, rows: list[dict[str, Any]]) -> None:
    if not rows:
        console.print("Nothing to measure: this view shows no producer.")
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for column in ("producer", "measure"):
        table.add_column(column, no_wrap=True)
    for column in ("value", "of"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("meaning", overflow="fold", style="dim")
    last = ""
    for row in rows:
        who = f"{row['scale'] or row['kind']} by {row['component']} {row['producer_id'][:8]}"
        measure = MEASURES[row["measure"]]
        value = f"{row['value']:.3f}".rstrip("0").rstrip(".")
        sign = "less is better" if measure.better == "low" else "more is better"
        table.add_row(
            who if who != last else "", row["measure"], value, str(row["of"]), f"{measure.meaning}; {sign}"
        )
        last = who
    console.print(table)
