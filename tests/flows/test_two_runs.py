"""Two processes index into one catalog: each does what the other does not hold, and nothing is made twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import polars as pl
import pytest

from evicat.flows import ingest as ingest_module
from evicat.flows.ingest import OBSERVER
from evicat.storage.reader import Reader

pytestmark = pytest.mark.slow


class OnWaiting:
    """Observes a run, and does something the first time that it waits for another."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.said: list[str] = []
        self._work = work

    def planned(self, stage: str, seconds: float) -> None: ...

    def advanced(self, stage: str, seconds: float) -> None: ...

    def told(self, text: str) -> None:
        if not self.said:
            self._work()
        self.said.append(text)


@pytest.fixture
def shelf(rerun, monkeypatch):
    rerun.put("a.mp4", "red")
    rerun.put("b.mp4", "blue")
    monkeypatch.setattr(ingest_module, "BUSY_SECONDS", 0.2)
    return rerun


@pytest.fixture
def other(shelf):
    """Another process that works on ``a.mp4`` alone, and stands still before its third call."""
    process = shelf.start_other(shelf.media / "a.mp4", stop_at=3)
    lines = [process.stdout.readline().strip() for _ in range(3)]
    assert lines == ["sight 0", "sight 2", "waiting"]
    yield process
    process.kill()
    process.communicate()


def _index_until_waiting(shelf, work: Callable[[], None]) -> OnWaiting:
    observer = OnWaiting(work)
    token = OBSERVER.set(observer)
    try:
        assert shelf.index(shelf.media).all_done
    finally:
        OBSERVER.reset(token)
    return observer


def test_the_second_works_on_the_rest_and_waits_for_what_the_first_holds(shelf, other, equal_part) -> None:
    other_said: list[str] = []

    def let_go() -> None:
        assert len(shelf.calls) == 6, "all of b.mp4 is made before it waits"
        other_said.extend(other.communicate("go on\n", timeout=60)[0].splitlines())

    observer = _index_until_waiting(shelf, let_go)
    assert observer.said[0].startswith("waiting for 1 videos that another run works on (unit ")
    assert f"process {other.pid} on" in observer.said[0]
    assert other.returncode == 0
    assert other_said == ["sight 4", "sight 6", "digest 0", "digest 4"]
    assert len(shelf.calls) == 6, "nothing of a.mp4 was made twice"
    _check_whole(shelf, equal_part)


def test_the_second_takes_over_what_a_killed_first_held(shelf, other, equal_part) -> None:
    def kill() -> None:
        os.killpg(other.pid, signal.SIGKILL)
        other.wait()

    _index_until_waiting(shelf, kill)
    a = shelf.calls[6:]
    assert sorted(a) == [("digest", 0), ("digest", 4), ("sight", 4), ("sight", 6)]
    _check_whole(shelf, equal_part)


def _check_whole(shelf, equal_part) -> None:
    coverage = shelf.coverage()
    assert set(coverage["attempts"]) == {1}
    runs = coverage.filter(pl.col("kind") == "local").group_by("asset_id").agg(pl.col("run_id").n_unique())
    assert coverage["run_id"].n_unique() == 2, runs
    ids = Reader.open(shelf.catalog).dataset("entries").to_table()["entry_id"].to_pylist()
    assert len(ids) == len(set(ids)) == 12
    shelf.index(catalog=shelf.folder / "unbroken")
    assert equal_part(shelf.catalog).equals(equal_part(shelf.folder / "unbroken"))
