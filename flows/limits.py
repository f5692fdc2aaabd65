"""How much one run may do: it stops when a limit is reached, and the next run goes on from there."""

from __future__ import annotations

import threading
import time

from pydantic import Field

from evicat.schemas.model import Model


class Limits(Model):
    """Bounds of one run; None: no bound. What was begun is finished, so nothing is paid for twice."""

    max_calls: int | None = Field(default=None, ge=1)
    """Calls of models for windows. Those that repeat one with a changed request, or check boxes, count, but
    are not held back. What proves at the start that a model can be asked does not count."""
    max_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Hours since the start of the run, after which nothing is begun."""
    limit_windows: int | None = Field(default=None, ge=1)
    """Windows (and blocks of speech) that are made."""
    canary: int | None = Field(default=None, ge=1)
    """So many windows first; the rest only if at most half of them failed."""


class LimitReachedError(Exception):
    """A limit of the run is reached: nothing new may begin."""


class Gate:
    """Lets calls through until a limit is reached. Threads may share it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._started = time.monotonic()
        self._windows = 0
        self._calls = 0
        self._canary = limits.canary
        self._lock = threading.Lock()
        self.reached = ""
        """Which limit was reached; empty: none so far."""

    def admit(self) -> None:
        """Count one call, or refuse it.

        Raises:
            LimitReachedError: a limit is reached.
        """
        with self._lock:
            self.reached = self.reached or self._limit()
            if self.reached:
                raise LimitReachedError(self.reached)
            self._windows += 1
            self._calls += 1

    def count_further(self, calls: int) -> None:
        """``calls`` more were made for a window that had been admitted."""
        with self._lock:
            self._calls += calls

    @property
    def is_canary_through(self) -> bool:
        """Whether the canary ended the run, and not another limit."""
        return self._canary is not None and self.reached == f"--canary {self._canary}"

    def lift_canary(self) -> None:
        """Go on behind the canary; what it did counts for the other limits."""
        self._canary, self.reached = None, ""

    def _limit(self) -> str:
        limits = self._limits
        if limits.limit_windows is not None and self._windows >= limits.limit_windows:
            return f"--limit-windows {limits.limit_windows}"
        if limits.max_calls is not None and self._calls >= limits.max_calls:
            return f"--max-calls {limits.max_calls}"
        if limits.max_hours is not None and time.monotonic() - self._started >= limits.max_hours * 3600:
            return f"--max-hours {limits.max_hours:g}"
        if self._canary is not None and self._windows >= self._canary:
            return f"--canary {self._canary}"
        return ""
