"""Views for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def views(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """One line per producer that a view shows."""
    if not rows:
        console.print("This catalog has no views: nothing was indexed into it.")
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for column in ("view", "kind", "scale", "producer", "component"):
        table.add_column(column, overflow="fold", no_wrap=column != "component")
    last = ""
    for row in rows:
        shown = row["view"] if row["view"] != last else ""
        last = row["view"]
        table.add_row(shown, row["kind"], row["scale"], row["producer_id"][:8], escape(row["component"]))
    console.print(table)
