"""An event loop in a thread of its own, for engines whose library is asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines; begins with the first of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._begun = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    @property
    def has_begun(self) -> bool:
        return self._thread is not None

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run ``work`` on the loop.

        Raises:
            RuntimeError: it is closed.
        """
        with self._guard:
            if self.is_closed:
                work.close()
                raise RuntimeError(f"{self.name}: its thread has ended")
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, name=self.name, daemon=True)
                self._thread.start()
                self._begun.wait()
            assert self._loop is not None
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``last``, if anything was run before it; then cancel what still runs, and end the thread."""
        with self._guard:
            was_closed, self.is_closed = self.is_closed, True
        if was_closed or self._thread is None:
            return
        assert self._loop is not None
        assert self._over is not None
        try:
            asyncio.run_coroutine_threadsafe(last(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()

    def _main(self) -> None:
        with asyncio.Runner() as runner:  # at its end it cancels all that is left, and ends its helpers
            runner.run(self._until_over())

    async def _until_over(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._begun.set()
        await self._over.wait()
