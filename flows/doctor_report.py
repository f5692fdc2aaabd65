"""The doctor's report for people."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.flows.findings import Finding, Report

TITLES = {
    "package": "Packages",
    "extra": "Extras",
    "engine": "Engines",
    "device": "Devices",
    "model": "Models",
    "part": "Parts that recipes can name",
    "decoder": "Decoders, each with a test decode",
    "trial": "Trials of the recipe's parts",
}


def print_report(console: Console, report: Report) -> None:
    """One table per group, then whether the recipe can run, and what to do where it cannot."""
    console.print(
        f"[bold]evicat {report.evicat or '(not installed)'}[/], Python {report.python}, {report.platform}"
    )
    for group, title in TITLES.items():
        found = [finding for finding in report.findings if finding.group == group]
        if found:
            console.print(f"\n[bold]{title}[/]")
            console.print(_table(found))
    console.print()
    if report.usable:
        console.print(f"[bold green]The recipe {report.recipe} can run here.[/]")
        return
    console.print(f"[bold red]The recipe {report.recipe} cannot run here.[/] What to do:")
    for finding in report.findings:
        if finding.needed and not finding.works:
            todo = f"{finding.detail}; {finding.mend}" if finding.mend else finding.detail
            console.print(f"- {escape(finding.name)}: {escape(todo)}", soft_wrap=True)


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, pad_edge=True, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for finding in findings:
        detail = f"{finding.detail}; {finding.mend}" if finding.mend else finding.detail
        table.add_row(_mark(finding), escape(finding.name), escape(detail))
    return table


def _mark(finding: Finding) -> str:
    if finding.works:
        return "[green]ok[/]"
    return "[red]missing[/]" if finding.needed else "[dim]no[/]"
