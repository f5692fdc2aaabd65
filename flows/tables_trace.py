"""Traces for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from evicat.readers.replay import Replayed
    from evicat.readers.trace import Trace, TraceStep

SHOWN = 300
"""Characters of an answer in a table; ``--json`` has all."""


def traces(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """One line per trace, the one written last at the end."""
    if not rows:
        console.print("No traces here; evicat mcp --trace stores them.")
        return
    table = _table("trace", "video", "head", "steps", "not valid", "tokens")
    for row in rows:
        counts = (str(row[name]) for name in ("version", "steps", "invalid", "tokens"))
        table.add_row(row["trace_id"], escape(row["video"]), *counts)
    console.print(table)


def steps(console: Console, trace: Trace) -> None:
    """What was called, and what came back or why nothing did."""
    console.print(
        f"[bold]{trace.trace_id}[/] {escape(trace.video)}, head {trace.version}, view {escape(trace.view)}"
    )
    if trace.question:
        console.print(escape(trace.question))
    table = _table("step", "tool", "arguments", "came back")
    for step in trace.steps:
        arguments = json.dumps(step.arguments, ensure_ascii=False) if step.valid else step.raw
        table.add_row(str(step.index), escape(step.tool), escape(arguments[:SHOWN]), _came_back(step))
    console.print(table)


def replayed(console: Console, results: Sequence[Replayed]) -> None:
    """Which answers are as they were."""
    for result in results:
        which = f"{result.before.index} {escape(result.before.tool)}"
        if result.after is None:
            console.print(f"{which}: not made again: a model answered it, or its arguments are kept cut")
        for name in result.differs:
            was, is_now = (str(getattr(step, name))[:SHOWN] for step in (result.before, result.after))
            console.print(f"{which}: [red]{name}[/] differs", soft_wrap=True)
            console.print(f"  was {escape(was)}\n  is  {escape(is_now)}", soft_wrap=True)
    made = [result for result in results if result.after is not None]
    equal = sum(not result.differs for result in made)
    console.print(f"{equal} of {len(made)} calls that were made again gave the same answer.")


def _came_back(step: TraceStep) -> str:
    if step.error:
        return f"[red]{'failed' if step.valid else 'not valid'}[/] {escape(step.error[:SHOWN])}"
    counts = f"{len(step.entry_ids)} entries, {len(step.spans)} spans, {len(step.frames)} frames"
    return f"{counts}\n{escape(step.text[:SHOWN])}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
