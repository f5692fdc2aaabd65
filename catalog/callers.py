"""Threads that call a describer which serves several windows at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from queue import PriorityQueue

from evicat.schemas.entry import WindowResult

Call = Callable[[], WindowResult]
Waiting = tuple[float, int, Future[WindowResult] | None, Call | None]
"""Place in the queue, order of arrival, and the call; without a call: the thread ends."""


class Callers:
    """``slots`` threads; of all calls that wait, the one with the longest chain behind it comes first.

    Videos share it, so that the engine is never idle while any of them has a window to describe.
    """

    def __init__(self, slots: int, name: str) -> None:
        self._slots = slots
        self._name = name
        self._waiting: PriorityQueue[Waiting] = PriorityQueue()
        self._order = count()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, call: Call, *, behind: int) -> Future[WindowResult]:
        """Have ``call`` run; ``behind`` windows can only begin when it has ended. After closing, none is."""
        future: Future[WindowResult] = Future()
        with self._lock:
            if self._is_closed:
                _cancel(future)
                return future
            self._waiting.put((-behind, next(self._order), future, call))
            if len(self._threads) < self._slots:
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Let the threads end with what they are doing; what waits is cancelled."""
        with self._lock:
            self._is_closed = True
        for _ in self._threads:
            self._waiting.put((float("-inf"), next(self._order), None, None))
        for thread in self._threads:
            thread.join()
        while not self._waiting.empty():
            _, _, future, _ = self._waiting.get()
            if future:
                _cancel(future)

    def _work(self) -> None:
        while True:
            _, _, future, call = self._waiting.get()
            if future is None or call is None:
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001  the video's own thread raises it
                future.set_exception(error)
            else:
                future.set_result(result)


def _cancel(future: Future[WindowResult]) -> None:
    """Cancel, and tell those that wait for it."""
    if future.cancel():
        future.set_running_or_notify_cancel()
