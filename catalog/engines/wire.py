"""The HTTP client of the served engine. Imported when the first request is sent: ``openai`` brings httpx2.

The retries and their growing pauses are those of ``openai``; each attempt passes through here. It waits for
its turn, has so many seconds, and is told to :class:`~.health.Health`, however it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import httpx2

from evicat.catalog.served import hide_key

from .health import Call, Health

CALL: ContextVar[Call | None] = ContextVar("evicat_engine_call", default=None)
"""The call that the running task makes; None: it looks up models."""
CONNECT_SECONDS = 10.0
OVERLOADED = frozenset({429, 503})
PASSING = frozenset({408, 409, *OVERLOADED})
"""Statuses below 500, and 503, that may be gone at the next attempt."""
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class WatchedClient(httpx2.AsyncClient):
    """Every attempt timed and told; those of chat requests wait for their turn."""

    def __init__(self, health: Health, timeout_s: float, hung: Callable[[], None]) -> None:
        super().__init__(
            timeout=timeouts(timeout_s),
            follow_redirects=True,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=health.limit.ceiling),
        )
        self._health, self._timeout_s, self._hung = health, timeout_s, hung

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call = CALL.get()
        async with self._health.limit.turn() if call else nullcontext():
            sent_s = time.monotonic()
            try:
                response = await self._timed(request, **options)
            except httpx2.RequestError as error:  # also redirects without end, and bodies that do not unpack
                self._no_answer(call, error, sent_s)
                raise
        self._answered(call, response, sent_s)
        return response

    async def is_there(self, url: str, headers: dict[str, str]) -> bool:
        """Whether anything answers there now; asked once, and not told to anybody."""
        request = self.build_request("GET", url, headers=headers, timeout=timeouts(CONNECT_SECONDS))
        try:
            return (await super().send(request)).status_code < 500
        except httpx2.RequestError:
            return False

    async def _timed(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """A bound on the whole attempt: the timeouts of httpx begin anew with every byte."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await super().send(request, **options)
        except TimeoutError:
            raise httpx2.ReadTimeout(f"no answer within {self._timeout_s:g} s", request=request) from None

    def _no_answer(self, call: Call | None, error: httpx2.RequestError, sent_s: float) -> None:
        late = isinstance(error, httpx2.TimeoutException)
        why = hide_key(str(error) or type(error).__name__)
        self._health.failed(why, sent_s, overloaded=late, lost=not late)
        if not isinstance(error, NOT_SENT):
            self._blame(call, why, said_so=False)

    def _answered(self, call: Call | None, response: httpx2.Response, sent_s: float) -> None:
        status = response.status_code
        if status in PASSING or status >= 500:
            why = hide_key(f"{status} {response.reason_phrase}: {response.text}")[:200]
            self._health.failed(why, sent_s, overloaded=status in OVERLOADED, lost=status >= 502)
            if status == 500:
                self._blame(call, why, said_so=True)
        elif call and status < 400:
            self._health.answered()
        else:
            self._health.responded()

    def _blame(self, call: Call | None, why: str, *, said_so: bool) -> None:
        if call and call.blame(why, self._health, said_so=said_so):
            self._hung()


def timeouts(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
