"""Viewers for tests: on a port of their own, in a thread, and asked with whatever a test wants to send."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from evicat.flows.view import server_of
from evicat.schemas.recipe import Profile
from evicat.viewer.app import make_app
from evicat.viewer.app_catalogs import Catalogs, Place

LOOPBACK = frozenset({"127.0.0.1", "localhost"})


@contextmanager
def served(uri: str, media_roots: tuple[str, ...] = ()) -> Iterator[str]:
    """The address of a viewer of the catalog ``uri``."""
    profile = Profile()
    app = make_app(Catalogs(uri, profile, Place(None, None), media_roots), profile, LOOPBACK)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Answer(NamedTuple):
    """Names of headers are in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(address: str, target: str, method: str = "GET", **headers: str) -> Answer:
    """One request whose target is sent as it is, whatever it holds; ``_`` in names of headers is ``-``."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection._validate_path = lambda _: None
    try:
        connection.putrequest(method, target, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, told, answer.read())
    finally:
        connection.close()
