"""Taking turns at a component, and the time that work takes without the wait for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from evicat.catalog.kit import Kit

T = TypeVar("T")


class Stopwatch:
    """Seconds since it was made, without those in which it stood still."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        before = time.perf_counter()
        try:
            yield
        finally:
            self._started += time.perf_counter() - before


@contextmanager
def turn(kit: Kit, component: T, watch: Stopwatch) -> Iterator[T]:
    """As ``Kit.using``; while other threads use the component, ``watch`` stands still."""
    with ExitStack() as stack:
        with watch.standing_still():
            stack.enter_context(kit.using(component))
        yield component
