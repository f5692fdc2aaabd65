"""What read an entry is outdated when the entry changes: windows become stale, embedded chunks pending."""

from __future__ import annotations

import pytest

from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.identity import Producer, entry_id
from evicat.storage import staging as staging_module
from evicat.storage.store import Store


@pytest.fixture
def narrator(making) -> Producer:
    """Retells what ``SIGHT`` writes, window by window."""
    reads = (making.SIGHT.producer_id,)
    return Producer(kind="narrative", scale="narrative-10s", component="digest", version=1, reads=reads)


@pytest.fixture
def connect(making, catalog, narrator):
    """Opens stores that know the producers, and lets go of them."""
    opened = []

    def open_one(**options) -> Store:
        store = Store.connect(catalog, write=True, **options)
        opened.append(store)
        for producer in (making.SIGHT, narrator, making.MINILM):
            store.add_producer(producer)
        return store

    yield open_one
    for store in opened:
        store.release()


def build(store, unit, results) -> None:
    store.open(unit)
    for result in results:
        store.write(unit, result)
    store.close(unit, complete=True)


def told(making, unit, window: int, text: str = "Once.") -> WindowResult:
    """A narrative of one window."""
    entry = making.entry(unit, window, text).model_copy(
        update={"kind": "narrative", "entry_id": entry_id(unit, making.span(window).start_us, 0)}
    )
    return WindowResult(span=making.span(window), outcome=Outcome.DONE, entries=(entry,))


def outcomes(making, catalog, unit) -> list[str]:
    rows = [row for row in making.content(catalog)["coverage"] if row["unit_id"] == unit.unit_id]
    return [row["outcome"] for row in rows]


def texts(making, catalog, unit) -> list[str]:
    return [row["text"] for row in making.content(catalog)["entries"] if row["unit_id"] == unit.unit_id]


class TestWhatMakesAWindowStale:
    @pytest.fixture
    def units(self, making, connect, narrator):
        """Three local windows, the second failed, and three narratives that read them; committed."""
        local, narrative = making.unit(), making.unit(producer=narrator)
        store = connect()
        build(store, local, [making.done(local, 0), making.failed(1), making.done(local, 2)])
        build(store, narrative, [told(making, narrative, window) for window in range(3)])
        store.finish()
        store.release()
        return local, narrative

    def after(self, making, catalog, connect, units, *results) -> list[str]:
        local, narrative = units
        store = connect()
        build(store, local, results)
        store.commit(force=True)
        assert texts(making, catalog, narrative) == ["Once."] * 3, "stale windows keep their entries"
        return outcomes(making, catalog, narrative)

    def test_a_changed_text(self, making, catalog, connect, units) -> None:
        changed = making.done(units[0], 2, "Other.")
        assert self.after(making, catalog, connect, units, changed) == ["done", "done", "stale"]

    def test_an_entry_that_comes(self, making, catalog, connect, units) -> None:
        comes = making.done(units[0], 1)
        assert self.after(making, catalog, connect, units, comes) == ["done", "stale", "done"]

    def test_an_entry_that_goes(self, making, catalog, connect, units) -> None:
        assert self.after(making, catalog, connect, units, making.failed(0)) == ["stale", "done", "done"]

    def test_not_the_same_text_again(self, making, catalog, connect, units) -> None:
        same = making.done(units[0], 0)
        assert self.after(making, catalog, connect, units, same) == ["done", "done", "done"]

    def test_not_a_window_of_another_asset(self, making, catalog, connect, units) -> None:
        other = making.unit("two")
        store = connect()
        build(store, other, [making.done(other, window, "Other.") for window in range(3)])
        store.commit(force=True)
        assert outcomes(making, catalog, units[1]) == ["done", "done", "done"]

    def test_not_a_window_that_is_made_anew_from_the_change(self, making, catalog, connect, units) -> None:
        local, narrative = units
        store = connect()
        build(store, local, [making.done(local, 2, "Other.")])
        build(store, narrative, [told(making, narrative, 2, "Anew.")])
        store.commit(force=True)
        assert outcomes(making, catalog, narrative) == ["done", "done", "done"]

    def test_a_window_that_was_made_just_before_the_change(self, making, catalog, connect, units) -> None:
        """Staged together, in the other order: the narrative has read what was there before."""
        local, narrative = units
        store = connect()
        build(store, narrative, [told(making, narrative, 2, "Too early.")])
        build(store, local, [making.done(local, 2, "Other.")])
        store.commit(force=True)
        assert outcomes(making, catalog, narrative) == ["done", "done", "stale"]

    def test_a_failed_window_stays_failed(self, making, catalog, connect, units) -> None:
        local, narrative = units
        store = connect()
        build(store, narrative, [making.failed(0)])
        store.commit(force=True)
        build(store, local, [making.done(local, 0, "Other.")])
        store.commit(force=True)
        assert outcomes(making, catalog, narrative)[0] == "failed"


class TestRetry:
    @pytest.fixture
    def unit(self, making, connect):
        """One window of each outcome that may be asked for again, and one that is done."""
        unit = making.unit()
        cut = making.failed(1).model_copy(update={"error_class": "Truncated"})
        refused = making.failed(2).model_copy(update={"outcome": Outcome.REFUSED})
        stale = making.done(unit, 3).model_copy(update={"outcome": Outcome.STALE, "attempts": 3})
        store = connect()
        build(store, unit, [making.failed(0), cut, refused, stale, making.done(unit, 4)])
        store.finish()
        store.release()
        return unit

    @pytest.mark.parametrize(
        ("retry", "due"),
        [
            ([], []),
            (["failed"], [0, 1]),
            (["truncated"], [1]),
            (["refused"], [2]),
            (["stale"], [3]),
            (["failed", "stale", "refused"], [0, 1, 2, 3]),
        ],
    )
    def test_opens_exactly_what_was_asked_for_and_once(self, making, connect, unit, retry, due) -> None:
        store = connect(retry=retry)
        assert store.is_complete(unit) == (not due)
        have = store.open(unit)
        assert sorted({0, 1, 2, 3, 4} - {start // making.WINDOW_US for start in have}) == due
        for window in due:
            store.write(unit, making.failed(window))
        store.close(unit, complete=True)
        assert store.is_complete(unit), "what fails again is not made again in this run"
        assert len(store.open(unit)) == 5
        store.close(unit, complete=True)
        store.commit(force=True)
        assert store.is_complete(unit)

    def test_attempts_add_up_over_runs(self, making, catalog, connect, unit) -> None:
        for _ in range(2):
            store = connect(retry=["failed"])
            have = store.open(unit)
            store.write(unit, making.failed(0).model_copy(update={"attempts": 1}))
            if making.WINDOW_US not in have:
                store.write(unit, making.done(unit, 1))
            store.close(unit, complete=True)
            store.finish()
            store.release()
        rows = [row for row in making.content(catalog)["coverage"] if row["unit_id"] == unit.unit_id]
        assert [row["attempts"] for row in rows] == [3 + 1 + 1, 3 + 1, 3, 3, 1]

    def test_left_half_done_the_next_run_makes_the_rest(self, making, connect, unit) -> None:
        first = connect(retry=["failed"])
        first.open(unit)
        first.write(unit, making.done(unit, 0))
        first.release()
        second = connect(retry=["failed"])
        assert {start // making.WINDOW_US for start in second.open(unit)} == {0, 2, 3, 4}

    def test_a_redone_entry_voids_the_chunk_that_embedded_its_neighbours(
        self, making, catalog, connect, unit
    ) -> None:
        embedding = making.unit(producer=making.MINILM)
        store = connect()
        whole = making.embedded(0, [entry for each in store.results(unit).values() for entry in each.entries])
        whole = whole.model_copy(update={"span": making.Span(0, 5 * making.WINDOW_US)})
        build(store, embedding, [whole])
        store.finish()
        assert store.is_complete(embedding)
        store.release()
        again = connect(retry=["failed"])
        again.open(unit)
        again.write(unit, making.done(unit, 0))
        again.write(unit, making.done(unit, 1))
        again.close(unit, complete=True)
        again.commit(force=True)
        assert not again.is_complete(embedding)
        assert making.content(catalog)[making.VECTORS] == []


def test_a_clock_set_back_between_runs_does_not_reorder_what_is_staged(
    making, catalog, connect, monkeypatch
) -> None:
    """The earlier run dies before it commits; the later one writes the same window under an earlier time."""
    unit, first = making.unit(), connect()
    first.open(unit)
    first.write(unit, making.done(unit, 0, "first"))
    first.seal(unit)
    an_hour_ago = staging_module.time.time_ns() - 3600 * 10**9
    monkeypatch.setattr(staging_module.time, "time_ns", lambda: an_hour_ago)
    first.write(unit, making.done(unit, 0, "second"))
    first.release()
    second = connect()
    assert [each.entries[0].text for each in second.results(unit).values()] == ["second"]
    build(second, unit, [making.done(unit, 0, "third")])
    second.finish()
    assert texts(making, catalog, unit) == ["third"]
