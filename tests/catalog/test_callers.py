"""The threads that call a describer: how many, in which order, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait

import pytest

from evicat.catalog.callers import Callers
from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.span import Span

RESULT = WindowResult(span=Span(0, 1), outcome=Outcome.EMPTY)


class Work:
    """Calls that begin, say so, and end when they are let."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self._gate = threading.Semaphore(0)
        self._changed = threading.Condition()

    def call(self, name: str):
        def run() -> WindowResult:
            with self._changed:
                self.begun.append(name)
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                self._changed.notify_all()
            assert self._gate.acquire(timeout=20)
            with self._changed:
                self.at_once -= 1
            return RESULT

        return run

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, timeout=20)

    def let(self, count: int) -> None:
        self._gate.release(count)


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.let(1_000)


def test_so_many_calls_run_at_once_as_there_are_slots(work):
    callers = Callers(3, "test")
    futures = [callers.submit(work.call(str(number)), behind=0) for number in range(10)]
    work.wait_for(3)
    work.let(10)
    assert not wait(futures, timeout=20).not_done
    assert (work.most_at_once, len(work.begun)) == (3, 10)
    callers.close()


def test_the_longest_chain_comes_first_and_equals_in_their_order(work):
    callers = Callers(1, "test")
    futures = [callers.submit(work.call("holds the slot"), behind=0)]
    work.wait_for(1)
    for name, behind in (("a", 0), ("b", 7), ("c", 3), ("d", 7), ("e", 0)):
        futures.append(callers.submit(work.call(name), behind=behind))
    work.let(6)
    assert not wait(futures, timeout=20).not_done
    assert work.begun[1:] == ["b", "d", "c", "a", "e"]
    callers.close()


def test_what_a_call_raises_is_raised_by_its_future_and_the_thread_goes_on():
    callers = Callers(1, "test")

    def broken() -> WindowResult:
        raise SystemExit("a bug")

    with pytest.raises(SystemExit, match="a bug"):
        callers.submit(broken, behind=0).result(timeout=20)
    assert callers.submit(lambda: RESULT, behind=0).result(timeout=20) is RESULT
    callers.close()


def test_closing_lets_what_runs_end_and_cancels_what_waits(work):
    callers = Callers(1, "test")
    running = callers.submit(work.call("a"), behind=0)
    work.wait_for(1)
    waiting = callers.submit(work.call("b"), behind=9)
    closing = threading.Thread(target=callers.close)
    closing.start()
    work.let(1)
    closing.join(20)
    late = callers.submit(work.call("c"), behind=0)
    assert running.result(timeout=20) is RESULT
    assert not wait([waiting, late], timeout=20).not_done, "whoever waits for them must be told"
    for future in (waiting, late):
        with pytest.raises(CancelledError):
            future.result()
    assert work.begun == ["a"]
