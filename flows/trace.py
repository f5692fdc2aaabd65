"""Traces of agents: what they called, what came back, and whether it does so again."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from evicat.flows.options import CatalogOption, JsonOption, ProfileOption

EXIT_DIFFERS = 1

trace_app = typer.Typer(no_args_is_help=True, help="Traces of agents: what they called and what came back.")

TraceArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the trace, or its first characters.")]


@trace_app.command("list")
def list_traces(catalog: CatalogOption, as_json: JsonOption = False) -> None:
    """List the stored traces, the one written last at the end."""
    from evicat.readers.trace_store import TraceStore

    store = TraceStore.of(catalog)
    rows = [
        {
            "trace_id": trace.trace_id,
            "video": trace.video,
            "version": trace.version,
            "steps": len(trace.steps),
            "invalid": sum(not step.valid for step in trace.steps),
            "tokens": sum(sum(step.tokens) for step in trace.steps),
        }
        for trace in map(store.load, store.ids())
    ]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    from rich.console import Console

    from evicat.flows.tables_trace import traces

    traces(Console(emoji=False), rows)


@trace_app.command("show")
def show_trace(trace_id: TraceArgument, catalog: CatalogOption, as_json: JsonOption = False) -> None:
    """Show the steps of a trace: tool, arguments, what came back, or why the call was not valid."""
    from evicat.readers.trace_store import TraceStore

    trace = TraceStore.of(catalog).load(trace_id)
    if as_json:
        for step in trace.steps:
            typer.echo(json.dumps(asdict(step)))
        return
    from rich.console import Console

    from evicat.flows.tables_trace import steps

    steps(Console(emoji=False), trace)


@trace_app.command("replay")
def replay_trace(trace_id: TraceArgument, catalog: CatalogOption, profile: ProfileOption = None) -> None:
    """Make the calls of a trace again at the same head, without a model; exit code 1 where answers differ."""
    from rich.console import Console

    from evicat.catalog.recipes import load_profile
    from evicat.flows.tables_trace import replayed
    from evicat.readers.replay import replay
    from evicat.readers.trace_store import TraceStore

    results = replay(TraceStore.of(catalog).load(trace_id), load_profile(profile), uri=catalog)
    replayed(Console(emoji=False), results)
    if any(result.differs for result in results):
        raise typer.Exit(EXIT_DIFFERS)
