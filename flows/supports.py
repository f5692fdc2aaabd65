"""``evicat show --supports``: under each narrative its sentences, and what each of them rests on."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.catalog.query import Catalog
from evicat.flows.tables import times
from evicat.schemas.span import Span

ROLE_STYLE = {"observed": "green", "quoted": "cyan", "inferred": "yellow"}
Row = dict[str, Any]


def show_supports(
    console: Console,
    catalog: Catalog,
    video: str,
    *,
    between: Span | None = None,
    producer: str | None = None,
    as_json: bool = False,
) -> None:
    """Print the narratives of a video sentence by sentence; as JSON one narrative a line.

    ``producer``: of the narratives; left out, the active ones.
    """
    narratives = catalog.listing(video, kind="narrative", between=between, producer=producer).to_dicts()
    sentences: dict[str, list[Row]] = {}
    for row in catalog.supports(video).to_dicts():
        sentences.setdefault(row["entry_id"], []).append(row)
    if as_json:
        for row in narratives:
            told = [_facts(each) for each in sentences.get(row["entry_id"], ())]
            print(json.dumps(row | {"supports": told}, ensure_ascii=False))
        return
    if not narratives:
        console.print(f"No narratives of {escape(video)} match.")
    for row in narratives:
        console.print(f"[bold]{times(row)}[/] {row['scale']}", highlight=False)
        if row["entry_id"] in sentences:
            console.print(_table(sentences[row["entry_id"]]))
        else:
            console.print(
                "Its sentences have no supports here: a recipe with \\[supports] makes them, and they are "
                "shown while they are active (evicat producers).",
                soft_wrap=True,
            )


def _facts(sentence: Row) -> Row:
    return {name: sentence[name] for name in ("sentence", "role", "text", "rests_on")}


def _table(sentences: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("role", no_wrap=True)
    table.add_column("sentence", overflow="fold")
    table.add_column("rests on", no_wrap=True)
    for each in sentences:
        links = [f"{times(link)} {link['kind']} {link['score']:.2f}" for link in each["rests_on"]]
        table.add_row(
            f"[{ROLE_STYLE[each['role']]}]{each['role']}[/]",
            escape(each["text"]),
            "\n".join(links) or "[yellow]nothing[/]",
        )
    return table
