"""The tables of a plan and of what it cost, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.storage.tables import EMBEDDING

if TYPE_CHECKING:
    from evicat.flows.cost import Cost, ProducerCost
    from evicat.flows.plan import PlannedWork, WorkPlan

UNREADABLE = 10
"""So many files that cannot be read are named."""
ROOMY = 110
"""Columns of a terminal from which on there is room for ids."""
LEGEND = "~: assumed, since nothing like it is in a catalog so far."


def plan(console: Console, work: WorkPlan) -> None:
    """What is to be made, by producer, before anything runs."""
    for problem in work.problems:
        console.print(f"[yellow]note[/] {escape(problem)}", soft_wrap=True)
    _print_files(console, work)
    if not work.work:
        console.print(f"Nothing to make: {work.unchanged} videos are complete.")
        return
    console.print(_table(work, roomy=console.width >= ROOMY))
    if any("assumed" in (each.output_basis, each.prompt_basis) for each in work.work):
        console.print(f"[dim]{LEGEND}[/]", soft_wrap=True)
    console.print(
        f"{work.assets} videos ({length(work.video_seconds)}) to work on, {work.unchanged} complete; "
        f"{count(work.calls)} calls, {count(work.tokens)} tokens, "
        f"{'~' if work.disk_basis == 'assumed' else ''}{size(work.disk_bytes)} of disk."
    )
    hours = [each for each in work.work if each.gpu_hours is not None]
    if hours:
        engine = sum(each.seconds or 0 for each in hours)
        gpu = sum(each.gpu_hours or 0 for each in hours)
        console.print(f"{length(engine)} of engines by the profile's rates, {gpu:.2f} GPU hours.")
    if work.wall_seconds is not None:
        console.print(f"{length(work.wall_seconds)} in all, with everything at work side by side.")
    for note in work.notes:
        console.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)


def _print_files(console: Console, work: WorkPlan) -> None:
    if work.new:
        console.print(f"{len(work.new)} videos are new or changed.")
    for name, reason in list(work.unreadable.items())[:UNREADABLE]:
        console.print(f"[red]unreadable[/] {escape(name)}: {escape(reason)}", soft_wrap=True)
    more = len(work.unreadable) - UNREADABLE
    if more > 0:
        console.print(f"[red]and {more} more[/] cannot be read.")
    if work.retried:
        console.print(f"{len(work.retried)} videos could not be read and are tried again; not counted.")


def _table(work: WorkPlan, *, roomy: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scale", no_wrap=True)
    table.add_column("producer", overflow="fold")
    names = ["windows", "calls", "frames", "tokens in/out", "time"]
    for name in ["videos", *names] if roomy else names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in _rows(work):
        each = row[0]
        producer = each.component
        if roomy and len(row) == 1:
            producer += f" {each.producer_id[:8]}"
        videos = max(one.units for one in row)
        numbers = [videos, *(_sum(row, name) for name in ("windows", "calls", "frames"))]
        shown = [count(number) if number else "" for number in (numbers if roomy else numbers[1:])]
        table.add_row(each.scale, producer, *shown, _tokens(each), _time(row))
    return table


def _rows(work: WorkPlan) -> list[list[PlannedWork]]:
    """A row for each producer; all that embed with one model share one."""
    rows: dict[tuple[str, ...], list[PlannedWork]] = {}
    for each in work.work:
        own = each.scale if each.kind == EMBEDDING else each.producer_id
        rows.setdefault((own, each.component, each.model), []).append(each)
    return list(rows.values())


def _sum(row: list[PlannedWork], name: str) -> int:
    return sum(getattr(each, name) for each in row)


def _tokens(each: PlannedWork) -> str:
    if not each.prompt_tokens:
        return ""
    assumed = "~" if each.output_basis == "assumed" else ""
    return f"{count(each.prompt_tokens)}/{assumed}{count(each.output_tokens)}"


def _time(row: list[PlannedWork]) -> str:
    seconds = [each.seconds for each in row if each.seconds is not None]
    return length(sum(seconds)) if len(seconds) == len(row) else "?"


def cost(console: Console, spent: Cost) -> None:
    """What producers took, in all and for each hour of video; and the rates of models, for a profile."""
    if not spent.producers:
        console.print("Nothing was made so far.")
        return
    rows = _spent_rows(spent)
    _print_spent(console, "in all", rows, hourly=False)
    console.print()
    _print_spent(console, "an hour of video", rows, hourly=True)
    for rate in spent.rates:
        slots = f"{rate.slots} slots" if rate.slots else "one request: multiply by the slots (--profile does)"
        console.print(f"\nMeasured in {rate.windows} windows, of {slots}:", highlight=False, soft_wrap=True)
        console.print(escape(rate.toml()), highlight=False, soft_wrap=True)
    for note in spent.notes:
        console.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)


def _spent_rows(spent: Cost) -> list[list[ProducerCost]]:
    rows: dict[tuple[str, ...], list[ProducerCost]] = {}
    for each in spent.producers:
        own = each.scale if each.kind == EMBEDDING else each.producer_id
        rows.setdefault((own, each.component, each.model), []).append(each)
    return list(rows.values())


def _print_spent(console: Console, title: str, rows: list[list[ProducerCost]], *, hourly: bool) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column("producer", overflow="fold")
    names = ["attempts", "tokens in/out", "time"]
    has_failed = any(one.failed for row in rows for one in row)
    if not hourly:
        names = ["windows", *(["failed"] if has_failed else []), *names, "plan/used"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    roomy = console.width >= ROOMY
    for row in rows:
        each = row[0]
        producer = each.component + (f" {each.producer_id[:8]}" if roomy and len(row) == 1 else "")
        table.add_row(each.scale, producer, *(_hourly(row) if hourly else _in_all(row, has_failed)))
    console.print(table)


def _hourly(row: list[ProducerCost]) -> list[str]:
    attempts, prompt, output, seconds = (
        sum(one.per_hour(name) for one in row)
        for name in ("attempts", "prompt_tokens", "output_tokens", "seconds")
    )
    return [count(attempts), f"{count(prompt)}/{count(output)}" if prompt else "", length(seconds)]


def _in_all(row: list[ProducerCost], has_failed: bool) -> list[str]:
    windows, failed, attempts, prompt, output, seconds = (
        sum(getattr(one, name) for one in row)
        for name in ("windows", "failed", "attempts", "prompt_tokens", "output_tokens", "seconds")
    )
    tokens = f"{count(prompt)}/{count(output)}" if prompt else ""
    ratio = row[0].planned_ratio
    planned = "" if ratio is None else f"{ratio:.2f}"
    told = [str(failed or "")] if has_failed else []
    return [count(windows), *told, count(attempts), tokens, length(seconds), planned]


def count(number: float) -> str:
    """``999``, ``12.3k``, ``456M``: three digits, for people; ``--json`` has all."""
    for unit, one in (("", 1), ("k", 1e3), ("M", 1e6)):
        if number < 999.5 * one:
            return f"{number:.0f}" if one == 1 else f"{_three_digits(number / one)}{unit}"
    return f"{_three_digits(number / 1e9)}G"


def _three_digits(number: float) -> str:
    places = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:.{places}f}"


def size(number: float) -> str:
    """``12.3 MB``."""
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB"


def length(seconds: float) -> str:
    """``12 s``, ``3.5 min`` or ``4.2 h``."""
    if seconds < 99.5:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5_970 else f"{seconds / 3600:.1f} h"
