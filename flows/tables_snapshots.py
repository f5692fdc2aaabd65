"""What the command line prints about snapshots: tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.storage.tables import PER_SOURCE

if TYPE_CHECKING:
    from evicat.schemas.errors import IntegrityError
    from evicat.storage.snapshots import Snapshot


def snapshots(console: Console, found: Sequence[Snapshot]) -> None:
    """One line for each."""
    if not found:
        console.print("No snapshots.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "created", "head", "videos", "entries", "content hash", "note"):
        is_number = column in ("head", "videos", "entries")
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for each in found:
        counts = (str(each.rows[name]) for name in ("videos", "entries"))
        table.add_row(
            each.name, each.created, str(each.head.number), *counts, each.content_hash, escape(each.note)
        )
    console.print(table)


def broken(console: Console, error: IntegrityError) -> None:
    """A snapshot that cannot be listed, as the command line tells of errors."""
    console.print(f"[bold red]{error.error_class}:[/] {escape(str(error))}", soft_wrap=True)


def snapshot(console: Console, shown: Snapshot) -> None:
    """A manifest, with what the default view shows and what else there is."""
    facts = {
        "snapshot": shown.name,
        "created": f"{shown.created} by evicat {shown.evicat}, catalog schema {shown.catalog_schema}",
        "note": shown.note,
        "recipes": ", ".join(shown.recipes),
        "head": f"{shown.head.number}, written {shown.head.written}",
        "content hash": shown.content_hash,
    }
    grid = Table.grid(padding=(0, 2))
    for title, text in facts.items():
        if text:
            grid.add_row(f"[bold]{title}[/]", escape(text))
    console.print(grid)
    tables = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("table", "version", "rows"):
        tables.add_column(column, justify="left" if column == "table" else "right")
    for name, version in sorted(shown.head.tables.items()):
        tables.add_row(name, str(version), str(shown.rows[name]))
    console.print(tables)
    console.print(_producers(shown))


def _producers(shown: Snapshot) -> Table:
    views: dict[str, list[str]] = {}
    for active in shown.view:
        views.setdefault(active.producer_id, []).append(active.view)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("producer", "kind", "scale", "component", "model", "view"):
        table.add_column(column, overflow="fold")
    for producer_id, producer in shown.producers.items():
        seen = views.get(producer.model_copy(update={"reads": ()}).producer_id, [])
        seen = views.get(producer_id, seen if producer.kind in PER_SOURCE else [])
        model = producer.model.name if producer.model else ""
        component = f"{producer.component} {producer.version}"
        table.add_row(
            producer_id[:8],
            producer.kind,
            producer.scale,
            component,
            escape(model),
            ", ".join(sorted(set(seen))),
        )
    return table
