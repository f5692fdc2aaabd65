"""What the command line prints: tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.schemas.entry import Outcome
from evicat.schemas.recipe import Recipe
from evicat.schemas.span import format_time, to_us

if TYPE_CHECKING:
    import polars as pl

    from evicat.catalog.query import Catalog
    from evicat.flows.summary import Summary

_OUTCOME_STYLE = {"done": "green", "failed": "red", "refused": "red", "stale": "yellow"}


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
        table.add_row(escape(row["video"]), _times(row), row["kind"], escape(row["text"]))
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
        table.add_row(str(row["rank"]), _times(row), row["kind"], escape(row["text"]))
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
                scale, f"[{_OUTCOME_STYLE.get(outcome, 'dim')}]{outcome}[/]", str(windows), str(entries)
            )
        console.print(table)
    for note in run.notes:
        console.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)
    for name, reason in run.failed():
        console.print(f"[red]failed[/] {escape(f'{name}: ' if name else '')}{escape(reason)}", soft_wrap=True)
    for name, doubt in sorted(run.warnings.items()):
        console.print(f"[yellow]used, but[/] {escape(name)} {escape(doubt)}", soft_wrap=True)


def status(console: Console, catalog: Catalog) -> None:
    """Units and windows by video and scale, then the files and windows that failed."""
    import polars as pl

    videos, units = catalog.videos(), catalog.units()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("video", overflow="fold")
    table.add_column("length", justify="right")
    table.add_column("unit")
    table.add_column("producer")
    table.add_column("windows", overflow="fold")
    table.add_column("entries", justify="right")
    producers = {row["producer_id"]: row for row in catalog.producers().to_dicts()}
    for video in videos.to_dicts():
        own = units.filter(pl.col("asset_id") == video["asset_id"])
        made = own.filter(pl.col("kind") != "embedding").sort("kind", "scale")
        _status_rows(table, video, made.to_dicts(), producers)
        _vector_row(table, own.filter(pl.col("kind") == "embedding"), producers)
    console.print(table)
    _failures(console, videos, catalog.coverage())


def _status_rows(
    table: Table, video: dict[str, Any], units: list[dict[str, Any]], producers: dict[str, dict[str, Any]]
) -> None:
    name = escape(video["video"])
    length = _clock(video["duration_s"]) if video["duration_s"] else ""
    if not units:
        shown = "[red]failed[/]" if video["status"] == "failed" else "[dim]nothing made[/]"
        table.add_row(name, length, shown, "", escape(video["message"] or ""), "")
    for unit in units:
        producer = producers[unit["producer_id"]]
        table.add_row(
            name,
            length,
            unit["scale"],
            f"{producer['component']} {unit['producer_id'][:8]}",
            _windows(unit),
            str(unit["entries"]),
        )
        name = length = ""


def _vector_row(table: Table, units: pl.DataFrame, producers: dict[str, dict[str, Any]]) -> None:
    """Each unit of entries has an embedding unit of its own; here they are one line."""
    import polars as pl

    if len(units):
        component = producers[units["producer_id"][0]]["component"]
        counts = units.select(pl.col([outcome.value for outcome in Outcome]).sum(), pl.col("complete").all())
        table.add_row("", "", "vectors", component, _windows(counts.to_dicts()[0]), "")


def _windows(unit: dict[str, Any]) -> str:
    return _outcomes(unit) + ("" if unit["complete"] else " [yellow]unfinished[/]")


def _outcomes(unit: dict[str, Any]) -> str:
    shown = [(outcome.value, unit[outcome.value]) for outcome in Outcome if unit[outcome.value]]
    return ", ".join(f"[{_OUTCOME_STYLE.get(name, 'dim')}]{count} {name}[/]" for name, count in shown)


def _failures(console: Console, videos: pl.DataFrame, coverage: pl.DataFrame) -> None:
    import polars as pl

    failed = coverage.filter(pl.col("outcome").is_in([Outcome.FAILED, Outcome.REFUSED]))
    names = dict(zip(videos["asset_id"].to_list(), videos["video"].to_list(), strict=True))
    for row in failed.to_dicts():
        where = f"{escape(names.get(row['asset_id'], row['asset_id']))} {row['scale']} {_times(row)}"
        console.print(f"[red]failed[/] {where}: {row['error_class']}: {escape(row['message'])}")


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
        table.add_row(name, "\n".join(makes), escape(recipe.description))
    console.print(table)


def _times(row: dict[str, Any]) -> str:
    return f"{_clock(row['start_s'])}-{_clock(row['end_s'])}"


def _clock(seconds: float) -> str:
    """To the millisecond; ``--json`` has every digit."""
    return format_time(to_us(round(seconds, 3)))
