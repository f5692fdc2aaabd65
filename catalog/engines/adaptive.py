"""How many requests a server gets at once: less when it is overloaded, slowly more again when it is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AdaptiveLimit:
    """Additive increase, multiplicative decrease, as TCP does (Chiu and Jain, 1989).

    The limit begins at ``ceiling`` and never exceeds it. A sign of overload (429, 503, no answer in time)
    halves it, but not below one; signs from requests that were sent before the last halving tell nothing new
    and are passed over. After as many answers in a row as the limit is high, it grows by one.

    One event loop uses it; ``limit`` may be read from everywhere.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = ceiling
        self._sent: list[float] = []
        self._answers = 0
        self._halved_s = float("-inf")
        self._changed = asyncio.Condition()

    @property
    def longest_s(self) -> float:
        """For how long the oldest request has been waiting for its answer; 0: none waits."""
        return time.monotonic() - min(self._sent) if self._sent else 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until one more request may be sent, and hold its place."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._sent) < self.limit)
            sent_s = time.monotonic()
            self._sent.append(sent_s)
        try:
            yield
        finally:
            self._sent.remove(sent_s)
            async with self._changed:
                self._changed.notify_all()

    def answered(self) -> None:
        self._answers += 1
        if self._answers >= self.limit:
            self._answers = 0
            self.limit = min(self.ceiling, self.limit + 1)

    def overloaded(self, sent_s: float) -> None:
        """A request sent at ``sent_s`` (``time.monotonic``) was too much for the server."""
        self._answers = 0
        if sent_s >= self._halved_s:
            self.limit = max(1, self.limit // 2)
            self._halved_s = time.monotonic()
