"""What the command line prints: tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.schemas.recipe import Recipe
from evicat.schemas.span import format_time, to_us

if TYPE_CHECKING:
    from evicat.flows.summary import Summary

OUTCOME_STYLE = {"done": "green", "failed": "red", "refused": "red", "stale": "yellow"}


def hits(console: Console, rows: list[dict[str, Any]]) -> None:
    """Search results, best first, with the times that they cite."""
    if not rows:
        console.print("Nothing found.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("video", "time", "kind", "text"):
        table.add_column(
            column, overflow="fold" if column in ("video", "text") else "ellipsis", no_wrap=column == "time"
        )
    for row in rows:
        table.add_row(escape(row["video"]), times(row), row["kind"], escape(row["text"]))
    console.print(table)


def entries(console: Console, video: str, rows: list[dict[str, Any]]) -> None:
    """Entries of one video as readers cite them."""
    if not rows:
        console.print(f"No entries of {escape(video)} match.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rank", justify="right")
    table.add_column("time span", no_wrap=True)
    table.add_column("kind")
    table.add_column("description", overflow="fold")
    for row in rows:
        table.add_row(str(row["rank"]), times(row), row["kind"], escape(row["text"]))
    console.print(table)


def summary(console: Console, run: Summary) -> None:
    """What a run did: counts, outcomes by scale, and what went wrong by name."""
    style = "green" if run.all_done else "yellow"
    console.print(f"[bold {style}]{run.title()}[/]: {run.headline()}.")
    console.print(
        f"{run.video_seconds:.0f} s of video in {run.wall_seconds:.1f} s; catalog {escape(run.catalog)}"
    )
    if run.outcomes:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("scale", "outcome", "windows", "entries"):
            table.add_column(column, justify="left" if column in ("scale", "outcome") else "right")
        for scale, outcome, windows, entries in run.rows():
            table.add_row(
                scale, f"[{OUTCOME_STYLE.get(outcome, 'dim')}]{outcome}[/]", str(windows), str(entries)
            )
        console.print(table)
    for note in run.notes:
        console.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)
    for name, reason in run.failed():
        console.print(f"[red]failed[/] {escape(f'{name}: ' if name else '')}{escape(reason)}", soft_wrap=True)
    for name, doubt in sorted(run.warnings.items()):
        console.print(f"[yellow]used, but[/] {escape(name)} {escape(doubt)}", soft_wrap=True)


def recipes(console: Console, shipped: dict[str, Recipe]) -> None:
    """The recipes that ship."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("recipe", "makes", "description"):
        table.add_column(column, overflow="fold")
    for name, recipe in shipped.items():
        makes = [f"{scale.name} by {scale.describer}" for scale in recipe.scales]
        if recipe.speech:
            makes.append(f"speech by {recipe.speech.transcriber or 'subtitles'}")
        if recipe.embedder:
            makes.append(f"vectors by {recipe.embedder.name}")
        if recipe.supports:
            makes.append("supports of narratives")
        table.add_row(name, "\n".join(makes), escape(recipe.description))
    console.print(table)


def times(row: dict[str, Any]) -> str:
    """The span of a row, for people."""
    return f"{clock(row['start_s'])}-{clock(row['end_s'])}"


def clock(seconds: float) -> str:
    """To the millisecond; ``--json`` has every digit."""
    return format_time(to_us(round(seconds, 3)))
