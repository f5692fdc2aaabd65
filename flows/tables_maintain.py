"""What is told of a maintenance: for people on a terminal, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from evicat.storage.maintain import Report, TableReport

_COLUMNS = ("table", "rows", "fragments", "versions", "size")


def headline(report: Report) -> str:
    """The outcome in one sentence."""
    failed = f"{len(report.failed)} of {len(report.tables)} tables failed; " if report.failed else ""
    before = sum(table.before.bytes for table in report.tables)
    after = sum(table.after.bytes for table in report.tables)
    versions = sum(table.before.versions for table in report.tables)
    left = sum(table.after.versions for table in report.tables)
    return (
        f"{failed}{decimal(before)} in {versions} table versions became {decimal(after)} in {left}; "
        f"head {report.head}, heads kept: {len(report.kept_heads)}"
    )


def maintained(console: Console, report: Report) -> None:
    """Every table before and after, what was kept and why, what lay about, and what failed."""
    console.print(f"{headline(report)}.", soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "table" else "right")
    for each in report.tables:
        table.add_row(*_cells(each))
    console.print(table)
    for line in _kept(report):
        console.print(f"[dim]kept[/] {escape(line)}", soft_wrap=True)
    for line in _notes(report):
        console.print(f"[yellow]note[/] {escape(line)}", soft_wrap=True)
    for each in report.failed:
        console.print(f"[red]failed[/] table {each.table}: {escape(each.error)}", soft_wrap=True)


def markdown(report: Report) -> str:
    """The same as Markdown, for Prefect."""
    lines = [f"{headline(report)}.", "", f"| {' | '.join(_COLUMNS)} |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {' | '.join(_cells(each))} |" for each in report.tables]
    lines += ["", *(f"- kept {line}" for line in _kept(report)), *(f"- {line}" for line in _notes(report))]
    lines += [f"- **failed** table {each.table}: {each.error}" for each in report.failed]
    return "\n".join([*lines, ""])


def _cells(table: TableReport) -> tuple[str, ...]:
    before, after = table.before, table.after
    return (
        table.table,
        str(table.rows),
        _change(str(before.fragments), str(after.fragments)),
        _change(str(before.versions), str(after.versions)),
        _change(decimal(before.bytes), decimal(after.bytes)),
    )


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def _kept(report: Report) -> list[str]:
    """One line per reason; of the many heads that are kept for their age, only from when on."""
    lines = []
    aged = []
    for head in report.kept_heads:
        named = [reason for reason in head.because if not reason.startswith("newest until")]
        if named:
            lines.append(f"head {head.number} of {head.written[:19]}: {', '.join(named)}")
        else:
            aged.append(head)
    if aged:
        which = f"head {aged[0].number}" if len(aged) == 1 else f"heads {aged[-1].number} to {aged[0].number}"
        lines.append(f"{which}: replaced less than {report.keep_days:g} days ago")
    return lines


def _notes(report: Report) -> list[str]:
    notes = []
    for table in report.tables:
        if table.rebuilt:
            notes.append(f"table {table.table}: broken indexes were made anew ({', '.join(table.rebuilt)})")
        if table.foreign_tags:
            tags = ", ".join(table.foreign_tags)
            notes.append(f"table {table.table} has tags that are not ours ({tags}): they keep versions")
    for left in report.leftovers:
        then = "removed" if left.removed else "left until it is older"
        notes.append(f"{left.path}: {left.what}, {left.age_days:g} days old, {then}")
    return notes
