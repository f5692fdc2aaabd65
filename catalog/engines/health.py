"""What the attempts so far tell of a server: that it is well, overloaded, or gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from evicat.schemas.errors import RequestError

from .adaptive import AdaptiveLimit

log = logging.getLogger(__name__)
BLAMED = 3
"""A request that failed so often by itself, while others were answered, is what is wrong."""


class Health:
    """Follows every attempt of an engine.

    From the first failure until the next answer the server is silent; after ``patience_s`` of silence
    ``gone`` is awaited. If it says that the server is still at work, as one that has just been started again
    is with long answers, it gets as long again, but no longer than a request may take.
    One event loop uses it.
    """

    def __init__(
        self, who: str, limit: AdaptiveLimit, patience_s: float, longest_s: float, gone: GoneCheck
    ) -> None:
        self.who, self.limit, self.patience_s, self.longest_s = who, limit, patience_s, longest_s
        self.last_failure = ""
        self.is_doubtful = True
        """Whether another server may have taken the place since its model was last looked up."""
        self._gone = gone
        self._answered_s = float("-inf")
        self._silent_since_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None

    @property
    def silent_s(self) -> float:
        """For how long it has been silent."""
        return 0.0 if self._silent_since_s is None else time.monotonic() - self._silent_since_s

    def answered_since(self, moment_s: float) -> bool:
        return self._answered_s >= moment_s

    def answered(self) -> None:
        """A request was answered."""
        self.limit.answered()
        self._answered_s = time.monotonic()
        self.responded()

    def responded(self) -> None:
        """It is there, whatever it says."""
        if self._silent_since_s is not None:
            log.info("%s answers again after %.0f s", self.who, self.silent_s)
        self._silent_since_s = None
        self.close()

    def failed(self, why: str, sent_s: float, *, overloaded: bool, lost: bool) -> None:
        """An attempt sent at ``sent_s`` failed in a way that may pass."""
        self.last_failure = why
        self.is_doubtful = self.is_doubtful or lost
        if overloaded:
            self.limit.overloaded(sent_s)
        if self._silent_since_s is None:
            self._silent_since_s = time.monotonic()
            log.warning("%s does not answer (%s); it is asked again for %g s", self.who, why, self.patience_s)
            self._wait_for(self.patience_s)

    def _wait_for(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._over)

    def _over(self) -> None:
        self._asking = asyncio.get_running_loop().create_task(self._decide())

    async def _decide(self) -> None:
        is_final = self.silent_s >= self.patience_s + self.longest_s
        if await self._gone(is_final) and self._silent_since_s is not None:
            self._wait_for(max(self.patience_s, 1.0))

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


GoneCheck = Callable[[bool], Awaitable[bool]]
"""Called when patience is over; True: it is still at work, wait on. With True it has to give up."""


class Call:
    """One request on its way, through all its attempts."""

    def __init__(self, *, is_trial: bool = False) -> None:
        self.is_trial = is_trial
        """Whether the request is sent to find out what the server takes."""
        self._blamed = 0
        self._first_blamed_s = float("inf")

    def blame(self, why: str, health: Health, *, said_so: bool) -> bool:
        """Count a failure that may be the request's own fault. True: the server is to blame, and is hung.

        Raises:
            RequestError: it is the request: others were answered since it first failed, or it is a trial and
                the server ``said_so``.
        """
        self._blamed += 1
        self._first_blamed_s = min(self._first_blamed_s, time.monotonic())
        if self._blamed < BLAMED:
            return False
        if health.answered_since(self._first_blamed_s) or (self.is_trial and said_so):
            message = f"the server failed {self._blamed} times on this request: {why}"
            raise RequestError(message, attempts=self._blamed)
        return health.silent_s >= health.patience_s
