"""``evicat mcp``: serves the tools over a catalog to agents, until they hang up or it is interrupted."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from evicat.schemas.errors import MissingExtraError

if TYPE_CHECKING:
    from rich.console import Console

    from evicat.catalog.query import Catalog
    from evicat.readers.mcp_server import Desk


def serve(
    console: Console, catalog: Catalog, *, video: str | None, port: int | None, is_traced: bool
) -> None:
    """Serve over standard input and output, or at a ``port`` of this machine (0: any that is free).

    Args:
        console: Of standard error: standard output belongs to the protocol.

    Raises:
        MissingExtraError: the protocol's package is not installed.
        UsageError: no such video; the port is in use.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("mcp", "mcp")
    from evicat.readers.mcp_server import Desk
    from evicat.readers.trace_store import Recorder, TraceStore

    recorder = Recorder(TraceStore.of(catalog.uri)) if is_traced else None
    desk = Desk(catalog, video, recorder)
    try:
        if port is None:
            _over_pipes(desk)
        else:
            _over_http(console, desk, port)
    except KeyboardInterrupt:
        console.print("Ended.")
    finally:
        desk.close()


def _over_pipes(desk: Desk) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from evicat.readers.mcp_server import make_server

    async def run() -> None:
        server = make_server(desk)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def _over_http(console: Console, desk: Desk, port: int) -> None:
    from evicat.flows.view import listen, server_of
    from evicat.readers.mcp_server import make_server

    with listen("127.0.0.1", port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        console.print(f"Tools are served at [bold]{address}[/]; Ctrl-C ends it.", soft_wrap=True)
        server_of(make_server(desk).streamable_http_app()).run(sockets=[listening])
