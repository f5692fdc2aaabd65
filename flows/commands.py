"""What several commands share: exit codes, the terminal, and the way into a catalog and a flow."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import typer

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from evicat.catalog.query import Catalog
    from evicat.flows.limits import Limits
    from evicat.flows.summary import Summary

EXIT_UNUSABLE = 1
EXIT_BROKEN = 1
EXIT_USAGE = 2
EXIT_FAILURES = 3
EXIT_STOPPED = 4
EXIT_INTERRUPTED = 130


def run_flow(start: Callable[[], Summary]) -> None:
    """Start a flow, watch it, print what it did, and leave with the exit code that tells it."""
    console = terminal(stderr=True)
    from evicat.flows.engine import flow_server
    from evicat.flows.progress import bars

    try:
        with ExitStack() as stack:
            with console.status("Starting the flow engine"):
                from evicat.flows.ingest import OBSERVER

                stack.enter_context(flow_server())
            OBSERVER.set(stack.enter_context(bars(console)))
            summary = start()
    except KeyboardInterrupt:
        console.print("Interrupted; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    from evicat.flows import tables

    tables.summary(terminal(), summary)
    if summary.stopped:
        raise typer.Exit(EXIT_STOPPED)
    if not summary.all_done:
        raise typer.Exit(EXIT_FAILURES)


def limits_from(
    max_calls: int | None, max_hours: float | None, limit_windows: int | None, canary: int | None
) -> Limits:
    from evicat.flows.limits import Limits

    if max_hours is not None and not 0 < max_hours < float("inf"):
        raise UsageError(f"--max-hours must be above 0, got {max_hours}")
    return Limits(max_calls=max_calls, max_hours=max_hours, limit_windows=limit_windows, canary=canary)


def quiet_prefect(verbose: bool) -> None:
    """Prefect reads its settings at import; what the user has set stays."""
    level = "INFO" if verbose else "CRITICAL"
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", level)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", level)
    os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")


def stay_offline() -> None:
    """The model hub's client reads this at import: it looks into its cache, and fetches nothing."""
    os.environ["HF_HUB_OFFLINE"] = "1"


def parse_span(text: str | None) -> Span | None:
    try:
        return Span.parse(text) if text else None
    except ValueError as error:
        raise UsageError(f"--between: {error}") from None


def check_kind(kind: str | None) -> None:
    from evicat.schemas.entry import KINDS

    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind", kind, list(KINDS))


def check_catalog(uri: str) -> None:
    from evicat.storage.layout import Layout

    Layout.of(uri).check_is_catalog()


def open_catalog(
    uri: str, profile: str | None = None, at: str | None = None, view: str | None = None
) -> Catalog:
    """Open for reading; what is wrong with ``uri`` is said before the storage engine is imported."""
    check_catalog(uri)
    from evicat.catalog.query import Catalog
    from evicat.catalog.recipes import load_profile

    opened = Catalog.open(uri, load_profile(profile), at=at)
    return opened if view is None else opened.view(view)


def terminal(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, emoji=False)


def escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
