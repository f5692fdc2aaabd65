"""``evicat view``: serves a catalog to browsers until it is interrupted."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

import uvicorn
from rich.console import Console
from rich.markup import escape
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp

from evicat.catalog.recipes import load_profile
from evicat.schemas.errors import UsageError
from evicat.viewer.app import make_app
from evicat.viewer.app_catalogs import Catalogs, Place
from evicat.viewer.app_pages import Pages
from evicat.viewer.app_query import Asked

ENDS_WITHIN_S = 2
"""Seconds that answers under way have when the viewer is ended."""
MOST_AT_ONCE = 512
"""Requests that are answered at the same time; others are told to come again."""


def serve(
    console: Console,
    uri: str,
    *,
    host: str,
    port: int,
    place: Place,
    profile: str | None,
    media_roots: Sequence[str],
) -> None:
    """Serve until an interrupt. ``port`` 0: any that is free. The address is printed.

    Raises:
        UsageError: the address cannot be listened at; no such catalog, head, view or media root.
    """
    options = load_profile(profile)
    catalogs = Catalogs(uri, options, place, media_roots)
    opened = catalogs.get(Place(None, None))
    opened.catalog.media_files(media_roots)  # what is wrong is said here, not to a browser
    Pages(catalogs).library(Asked(QueryParams()))  # the first reader finds it all read
    is_local = _is_loopback(host)
    listening = listen(host, port)
    hosts = {"127.0.0.1", "localhost", "[::1]", host} if is_local else None
    server = server_of(make_app(catalogs, options, hosts))
    with listening:
        console.print(f"{escape(uri)} is shown at [bold]{_address(listening, host)}[/]", soft_wrap=True)
        if not is_local:
            console.print(f"[yellow]note[/] whoever reaches {escape(host)} can read it all, and its videos")
        console.print("Ctrl-C ends it.")
        warming = threading.Thread(target=catalogs.warm, name="warm", daemon=True)
        warming.start()
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):
                warming.join()  # what it imports breaks if the interpreter ends meanwhile
            console.print("Ended.")


def server_of(app: ASGIApp) -> uvicorn.Server:
    """A server that says nothing about itself, and bounds what it answers at the same time."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            access_log=False,
            log_level=logging.WARNING,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_AT_ONCE,
            timeout_graceful_shutdown=ENDS_WITHIN_S,
        )
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        UsageError: the port is in use, or the address is none of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"--host {host} is no address: {error.strerror}") from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} of {host} is in use, maybe by another viewer; choose another with --port, or "
                "--port 0 for any that is free"
            ) from None
        raise UsageError(f"cannot listen at port {port} of {host}: {error.strerror}") from None
    return listening


def _address(listening: socket.socket, host: str) -> str:
    port = listening.getsockname()[1]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
