"""How ``evicat quality`` is printed: what is worth a look first, all else in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from evicat.catalog.measures.card import MEASURES
from evicat.schemas.span import format_time, to_us

STEPS = "▁▂▃▄▅▆▇█"
TEXT_SHOWN = 200
"""Characters of a text that are printed."""
PAIRS_SHOWN = 2
CLUES_SHOWN = 8


def producer_of(row: Mapping[str, Any]) -> str:
    return f"{row['scale'] or row['kind']} by {row['component']} {row['producer_id'][:8]}"


def card(console: Console, rows: pl.DataFrame, *, every: bool = False) -> None:
    """What is worth a look of each producer, with its meaning; ``every``: of all measures."""
    if rows.is_empty():
        console.print("Nothing to measure: this view shows no producer.")
        return
    for own in rows.partition_by("producer_id", maintain_order=True):
        _producer(console, own.to_dicts(), every=every)
    doubtful = int(rows["doubtful"].sum())
    told = f"{doubtful} of {len(rows)} measures are worth a look" if doubtful else "Nothing is worth a look"
    more = "" if every else " (--all explains every measure)"
    console.print(f"[bold {'yellow' if doubtful else 'green'}]{told}[/]{more}.", highlight=False)


def _producer(console: Console, rows: list[dict[str, Any]], *, every: bool) -> None:
    bad = [row for row in rows if row["doubtful"]]
    style, told = ("yellow", f"{len(bad)} worth a look") if bad else ("green", "fine")
    name = escape(producer_of(rows[0]))
    console.print(f"[bold]{name}[/]: [{style}]{told}[/]", soft_wrap=True, highlight=False)
    shown = rows if every else bad
    if shown:
        console.print(Padding(_table(shown), (0, 0, 0, 2)))
    rest = [row for row in rows if row not in shown]
    pairs = [f"{row['measure']}={_number(row['value'])}" for row in rest if row["value"]]
    none = [row["measure"] for row in rest if not row["value"]]
    for line in ("  ".join(pairs), f"0: {', '.join(none)}" if none else ""):
        if line:
            console.print(Padding(f"[dim]{line}[/]", (0, 0, 0, 2)), highlight=False)
    console.print()


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for row in rows:
        measure = MEASURES[row["measure"]]
        bound = "" if measure.look is None else f" [dim](good: {measure.sign} {measure.look:g})[/]"
        style = "yellow" if row["doubtful"] else "default"
        name, value = f"[{style}]{row['measure']}[/]", f"[{style}]{_number(row['value'])}[/]"
        table.add_row(name, value, f"n={row['of']}", f"{measure.meaning}{bound}")
    return table


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def dialogue(console: Console, rows: pl.DataFrame) -> None:
    """Speech by source and language."""
    if rows.is_empty():
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("dialogue from", "language"):
        table.add_column(column, no_wrap=True)
    for column in ("videos", "lines", "seconds", "doubted"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows.to_dicts():
        names = escape(row["source"]) or "unknown", escape(row["language"]) or "unknown"
        counts = str(row["videos"]), str(row["lines"]), f"{row['seconds']:.1f}"
        table.add_row(*names, *counts, f"{row['doubted_share']:.0%}")
    console.print(table)


def least_alike(console: Console, windows: pl.DataFrame) -> None:
    """Windows whose two descriptions differ most, side by side."""
    from evicat.catalog.words import shared_words

    differ = windows.drop_nulls("again").filter(pl.col("text") != pl.col("again"))
    if differ.is_empty():
        return
    shared = shared_words(differ["text"], differ["again"])
    worst = differ.with_columns(shared.alias("shared")).sort("shared", "entry_id").head(PAIRS_SHOWN)
    console.print("[bold]Described otherwise the second time[/] (the most different)")
    for row in worst.to_dicts():
        span = "-".join(format_time(to_us(row[name])) for name in ("start_s", "end_s"))
        console.print(f"  {escape(row['video'])} {span}, {row['scale']}", highlight=False)
        for text in (row["text"], row["again"]):
            console.print(Padding(escape(_cut(text)), (0, 0, 0, 4)), highlight=False)


def without_looking(console: Console, windows: pl.DataFrame) -> None:
    """What describers say of grey frames too, most often first."""
    clues = windows["survived"].explode(empty_as_null=False).drop_nulls()
    if clues.is_empty():
        return
    counts = clues.alias("clue").value_counts(name="windows")
    most = counts.sort(["windows", "clue"], descending=[True, False]).head(CLUES_SHOWN)
    console.print("[bold]Said of grey frames too[/] (windows)")
    for clue, count in most.iter_rows():
        console.print(Padding(f"{escape(_cut(clue))} ({count})", (0, 0, 0, 2)), highlight=False)


def curves(console: Console, curve: pl.DataFrame) -> None:
    """How well gold texts fit by what the catalog is moved by, a line per producer."""
    for own in curve.partition_by("producer_id", maintain_order=True):
        if own["similarity"].drop_nulls().is_empty():
            continue
        best = own.filter("best")["shift_s"].to_list()
        told = f"best moved by {best[0]:+d} s" if best else "nowhere surely best"
        shifts = own["shift_s"].to_list()
        line = f"{shifts[0]:+d} s {_line(own['similarity'])} {shifts[-1]:+d} s"
        console.print(
            f"[bold]{escape(producer_of(own.row(0, named=True)))}[/]: gold texts fit {told}", highlight=False
        )
        console.print(f"  {line}", highlight=False, soft_wrap=True)


def _line(values: pl.Series) -> str:
    known = values.drop_nulls()
    low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]  # of floats
    height = (high - low) or 1.0
    return "".join(
        " " if value is None else STEPS[min(int((value - low) / height * len(STEPS)), len(STEPS) - 1)]
        for value in values.to_list()
    )


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"
