"""What every request has to keep, and what every answer says to the browser, whatever page it is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_URL = 8_192
"""Bytes of path and query."""
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "media-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered: the status, and plain words."""

    status: int
    why: str


class Guard:
    """Refuses what is no reading request for this server, and sends the headers that keep texts from running.

    A page of another site can lead its own host name to the loopback address and ask from there; so where
    ``hosts`` is given, requests for other hosts are refused.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str] | None, page: Callable[[Refusal], Response]
    ) -> None:
        """``page`` makes the answer to what is refused."""
        self._app = app
        self._hosts = hosts
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        answer = self._app if refusal is None else self._page(refusal)
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Refusal | None:
        if scope["method"] not in ("GET", "HEAD"):
            return Refusal(405, "Nothing can be written here: only GET and HEAD are answered.")
        if len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > LONGEST_URL:
            return Refusal(414, f"This address is too long: at most {LONGEST_URL} bytes are read.")
        host = Headers(scope=scope).get("host", "")
        if self._hosts is not None and host_name(host) not in self._hosts:
            return Refusal(421, "This server answers under the address that it printed only.")
        return None


def host_name(host: str) -> str:
    """The name in a Host header, without its port, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
