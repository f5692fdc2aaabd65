"""The life of units: claimed, continued, replaced, completed; never lost and never twice."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evicat.schemas.errors import BusyError, IntegrityError, UsageError
from evicat.schemas.naming import FileStamp, VideoName
from evicat.schemas.sink import Sink
from evicat.storage import store as store_module
from evicat.storage.reader import Reader
from evicat.storage.store import Store


@pytest.fixture
def store(catalog):
    with Store.connect(catalog, write=True, run_id="run-1") as opened:
        yield opened


def build(store: Sink, unit, results, *, complete=True):
    """Write results as a flow does, through the protocol that making knows."""
    store.open(unit)
    for result in results:
        store.write(unit, result)
    store.close(unit, complete=complete)


def rows(making, store, catalog, table):
    store.commit(force=True)
    return making.content(catalog)[table]


def test_unit_rows_add_up_coverage(making, store, catalog):
    unit = making.unit(inputs="subtitles")
    results = [making.done(unit, 0, entries=2), making.failed(1), making.done(unit, 2)]
    build(store, unit, results)
    (row,) = rows(making, store, catalog, "units")
    assert row == {
        "unit_id": unit.unit_id,
        "asset_id": unit.asset_id,
        "producer_id": unit.producer_id,
        "condition_id": "",
        "kind": "local",
        "scale": "local-10s",
        "inputs_hash": "subtitles",
        "complete": True,
        "windows": 3,
        "done": 2,
        "partial": 0,
        "empty": 0,
        "no_frames": 0,
        "refused": 0,
        "failed": 1,
        "stale": 0,
        "worst_outcome": "failed",
        "entries": 3,
        "seconds": 0.5,
        "prompt_tokens": 14,
        "completion_tokens": 0,
        "run_id": "run-1",
    }
    coverage = rows(making, store, catalog, "coverage")
    assert [(row["start_s"], row["outcome"], row["entries"], row["attempts"]) for row in coverage] == [
        (0.0, "done", 2, 1),
        (10.0, "failed", 0, 3),
        (20.0, "done", 1, 1),
    ]
    assert coverage[1]["message"] == "no answer"


def test_completeness_is_known_at_once_and_after_a_restart(making, store, catalog):
    unit, other = making.unit("one"), making.unit("two")
    build(store, unit, [making.done(unit, 0), making.done(unit, 1)])
    build(store, other, [making.done(other, 0)], complete=False)
    again = Store.connect(catalog)
    assert not again.is_complete(unit), "nothing is committed yet"
    for asked in (store, store.commit(force=True) and Store.connect(catalog)):
        assert asked.is_complete(unit)
        assert not asked.is_complete(other)
        assert not asked.is_complete(making.unit("one", inputs="changed"))
        assert not asked.is_complete(making.unit("three"))


def test_a_unit_of_nothing_can_be_complete(making, store, catalog):
    build(store, making.unit(), [])
    (row,) = rows(making, store, catalog, "units")
    assert (row["complete"], row["windows"], row["worst_outcome"]) == (True, 0, "")


@pytest.mark.parametrize("windows", [[1], [0, 2]])
def test_a_gap_is_never_complete(making, store, catalog, windows):
    unit = making.unit()
    with pytest.raises(IntegrityError, match=r"called complete, but its results go on at \d+ us"):
        build(store, unit, [making.done(unit, window) for window in windows])
    (row,) = rows(making, store, catalog, "units")
    assert (row["complete"], row["windows"]) == (False, len(windows)), "what was there is kept"
    assert sorted(store.open(unit)) == [window * making.WINDOW_US for window in windows]


def test_a_later_result_of_a_window_replaces_the_earlier(making, store, catalog):
    unit = making.unit()
    build(store, unit, [making.failed(0), making.done(unit, 0, "first"), making.done(unit, 1, entries=3)])
    build(store, unit, [making.done(unit, 0, "second")])
    store.commit(force=True)
    build(store, unit, [making.done(unit, 0, "third"), making.done(unit, 1, "fewer")])
    texts = [row["text"] for row in rows(making, store, catalog, "entries")]
    assert texts == ["third", "fewer"]
    (row,) = making.content(catalog)["units"]
    assert (row["windows"], row["entries"], row["complete"]) == (2, 2, True)


def test_other_inputs_void_the_whole_unit(making, store, catalog):
    old, new = making.unit(inputs="old"), making.unit(inputs="new")
    other = making.unit("other")
    build(store, old, [making.done(old, window) for window in range(3)])
    build(store, other, [making.done(other, 0)])
    store.commit(force=True)
    assert store.open(new) == {}
    store.write(new, making.done(new, 1, "new"))
    assert list(store.open(new)) == [making.WINDOW_US]
    store.close(new, complete=False)
    assert store.results(old) == {}
    entries = rows(making, store, catalog, "entries")
    assert {(row["unit_id"], row["text"]) for row in entries} == {
        (new.unit_id, "new"),
        (other.unit_id, "A man waits."),
    }
    assert {row["unit_id"]: row["windows"] for row in making.content(catalog)["units"]} == {
        new.unit_id: 1,
        other.unit_id: 1,
    }
    assert not store.is_complete(old)
    assert not store.is_complete(new)


def test_inputs_that_change_there_and_back_before_a_commit(making, store, catalog):
    old, new = making.unit(inputs="old"), making.unit(inputs="new")
    results = [making.done(old, window) for window in range(3)]
    build(store, old, results)
    assert store.is_complete(old)
    build(store, new, [making.done(new, 0)], complete=False)
    assert not store.is_complete(old)
    assert store.open(old) == {}
    for result in results:
        store.write(old, result)
    store.seal(old)
    store.close(old, complete=True)
    assert store.is_complete(old)
    (row,) = rows(making, store, catalog, "units")
    assert (row["inputs_hash"], row["complete"], row["windows"]) == ("old", True, 3)


def test_opening_under_other_inputs_alone_voids_nothing(making, store, catalog):
    old, new = making.unit(inputs="old"), making.unit(inputs="new")
    build(store, old, [making.done(old, 0)])
    store.commit(force=True)
    store.open(new)
    store.close(new, complete=False)
    assert len(rows(making, store, catalog, "entries")) == 1
    assert store.is_complete(old)


def test_what_is_open_under_old_inputs_is_sealed_first(making, store):
    old, new = making.unit(inputs="old"), making.unit(inputs="new")
    store.open(old)
    store.write(old, making.done(old, 0))
    assert store.open(new) == {}
    with pytest.raises(UsageError, match="is not open here"):
        store.write(old, making.done(old, 1))
    assert list(store.results(old)) == [0]


def test_a_unit_is_continued(making, catalog):
    unit = making.unit()
    first = Store.connect(catalog, write=True)
    first.open(unit)
    first.write(unit, making.done(unit, 0))
    first.seal(unit)
    first.commit(force=True)
    first.write(unit, making.done(unit, 1))
    first.seal(unit)
    first.write(unit, making.done(unit, 2))
    first.release()
    with Store.connect(catalog, write=True) as second:
        assert [start // making.WINDOW_US for start in second.open(unit)] == [0, 1, 2]
        second.write(unit, making.done(unit, 3))
        second.close(unit, complete=True)
        assert second.is_complete(unit)
    (row,) = making.content(catalog)["units"]
    assert (row["windows"], row["complete"]) == (4, True)


class TestRefused:
    """What must not get in is refused before it is journalled."""

    def after(self, making, store, unit, result, message):
        store.open(unit)
        with pytest.raises(IntegrityError, match=message):
            store.write(unit, result)
        assert store.open(unit).get(result.span.start_us) is None

    def test_an_entry_of_another_unit(self, making, store):
        self.after(making, store, making.unit(), making.done(making.unit("two"), 0), "names unit")

    def test_an_id_twice_in_a_result(self, making, store):
        unit = making.unit()
        result = making.done(unit, 0).model_copy(update={"entries": (making.entry(unit, 0),) * 2})
        self.after(making, store, unit, result, "stands twice")

    def test_an_id_of_another_window(self, making, store):
        unit = making.unit()
        store.open(unit)
        store.write(unit, making.done(unit, 0))
        result = making.done(unit, 1).model_copy(update={"entries": (making.entry(unit, 0),)})
        self.after(making, store, unit, result, "stands in another window")

    def test_vectors_of_a_producer_that_was_never_added(self, making, store):
        unit = making.unit(producer=making.MINILM)
        result = making.embedded(0, [making.entry(making.unit(), 0)])
        self.after(making, store, unit, result, "was never added")

    @pytest.mark.parametrize("committed", [False, True])
    def test_vectors_of_another_length(self, making, store, committed):
        unit, source = making.unit(producer=making.MINILM), making.unit()
        store.add_producer(making.MINILM)
        build(store, unit, [making.embedded(0, [making.entry(source, 0)], dimension=4)])
        if committed:
            store.commit(force=True)
        result = making.embedded(1, [making.entry(source, 1)], dimension=5)
        self.after(making, store, unit, result, rf"vectors of 4 numbers \({making.VECTORS}\), got one of 5")

    def test_a_vector_that_is_not_finite(self, making, store):
        unit = making.unit(producer=making.MINILM)
        store.add_producer(making.MINILM)
        vectors = (making.vector(making.entry(making.unit(), 0), (1.0, float("nan"))),)
        result = making.embedded(0, []).model_copy(update={"vectors": vectors})
        self.after(making, store, unit, result, "not finite")

    def test_a_unit_that_is_not_open(self, making, store):
        with pytest.raises(UsageError, match="is not open here"):
            store.write(making.unit(), making.done(making.unit(), 0))


def test_threads_write_many_units_while_commits_run(making, store, catalog):
    units = [making.unit(str(number)) for number in range(12)]
    stop = threading.Event()

    def work(unit):
        store.add_asset(making.asset(unit.asset_id))
        store.open(unit)
        for window in range(20):
            store.write(unit, making.done(unit, window, entries=2))
            if window % 7 == 6:
                store.seal(unit)
        store.close(unit, complete=True)

    def keep_committing():
        while not stop.is_set():
            store.commit(force=True)

    with ThreadPoolExecutor(7) as pool:
        committing = pool.submit(keep_committing)
        for future in [pool.submit(work, unit) for unit in units]:
            future.result()
        stop.set()
        committing.result()
    stored = {row["unit_id"]: row for row in rows(making, store, catalog, "units")}
    assert {
        unit_id: (row["windows"], row["entries"], row["complete"]) for unit_id, row in stored.items()
    } == {unit.unit_id: (20, 40, True) for unit in units}
    assert len(making.content(catalog)["entries"]) == 12 * 40
    assert len(store.videos()) == len(making.content(catalog)["videos"]) == 12
    assert all(store.is_complete(unit) for unit in units)


def test_threads_may_write_one_unit(making, store, catalog):
    unit = making.unit()
    store.open(unit)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda window: store.write(unit, making.done(unit, window)), range(40)))
    store.close(unit, complete=True)
    assert [row["start_s"] for row in rows(making, store, catalog, "coverage")] == [
        10.0 * n for n in range(40)
    ]


def test_two_writers_share_a_catalog_but_not_a_unit(making, store, catalog):
    mine, theirs = making.unit("mine"), making.unit("theirs")
    with Store.connect(catalog, write=True) as other:
        store.open(mine)
        with pytest.raises(BusyError, match=rf"unit {mine.unit_id} is held by process \d+ on "):
            other.open(mine)
        build(other, theirs, [making.done(theirs, 0)])
        other.commit(force=True)
        store.write(mine, making.done(mine, 0))
        assert list(store.open(theirs)) == [0], "what the other wrote is seen"
        store.close(mine, complete=True)
        store.close(theirs, complete=True)
        store.commit(force=True)
        other.open(mine)
        assert other.is_complete(mine)
    assert len(making.content(catalog)["entries"]) == 2


def test_commits_wait_for_each_other_and_say_for_whom(making, store, catalog, caplog):
    caplog.set_level("INFO")
    other = Store.connect(catalog, write=True, lock_timeout_s=0.2)
    store.add_root(store_module.Root("r", "folder", "x"))
    with store._right.held():
        with pytest.raises(
            BusyError, match=r"the right to commit to .* is held by process \d+ on .*; waited 0\.2 s"
        ):
            other.commit(force=True)
        with pytest.raises(BusyError, match="right to commit"):
            Store.connect(catalog, write=True, lock_timeout_s=0.1)
    assert "waiting up to 0.2 s" in caplog.text
    assert other.commit(force=True)
    assert len(making.content(catalog)["roots"]) == 1


class TestDue:
    def test_nothing_staged_is_never_due(self, store, monkeypatch):
        monkeypatch.setattr(store_module, "COMMIT_SECONDS", 0.0)
        assert not store.commit()

    def test_after_some_time(self, making, store, monkeypatch):
        store.add_producer(making.SIGHT)
        assert not store.commit()
        monkeypatch.setattr(store_module, "COMMIT_SECONDS", 0.0)
        assert store.commit()
        assert not store.commit()

    def test_after_some_rows(self, making, store, monkeypatch):
        unit = making.unit()
        monkeypatch.setattr(store_module, "COMMIT_ROWS", 5)
        store.open(unit)
        store.write(unit, making.done(unit, 0, entries=3))
        store.seal(unit)
        assert not store.commit()
        store.write(unit, making.failed(1))
        store.seal(unit)
        assert store.commit()

    def test_not_while_somebody_else_commits(self, making, store, monkeypatch):
        monkeypatch.setattr(store_module, "COMMIT_SECONDS", 0.0)
        store.add_producer(making.SIGHT)
        with store._right.held():
            assert not store.commit()
        assert store.commit()


def test_an_exception_lets_go_of_units_and_keeps_what_was_written(making, catalog):
    unit = making.unit()

    def interrupted():
        with Store.connect(catalog, write=True) as store:
            store.open(unit)
            store.write(unit, making.done(unit, 0))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with Store.connect(catalog, write=True) as store:
        assert list(store.open(unit)) == [0]
    assert list((catalog / "work" / "claims").iterdir()) == []


def test_a_unit_that_ends_before_its_asset_is_not_complete(making, store):
    unit = making.unit()
    store.add_asset(making.asset())
    with pytest.raises(IntegrityError, match="end at 10000000 us of 40000000 us"):
        build(store, unit, [making.done(unit, 0)])
    assert not store.is_complete(unit)
    assert list(store.results(unit)) == [0]


def test_a_units_only_result_is_staged_without_a_journal(making, catalog):
    """It needs no second durable file, and survives whoever wrote it."""
    unit = making.unit()
    killed = Store.connect(catalog, write=True)
    killed.add_asset(making.asset(windows=1))
    killed.open(unit)
    killed.write(unit, making.failed(0))
    killed.write(unit, making.done(unit, 0))
    assert list(killed.layout.journals.iterdir()) == []
    killed.release()
    with Store.connect(catalog, write=True) as writer:
        assert writer.is_complete(unit)
        assert writer.open(unit)[0].outcome == "done"
    (row,) = making.content(catalog)["units"]
    assert (row["done"], row["failed"], row["complete"]) == (1, 0, True)
    assert len(making.content(catalog)["entries"]) == 1


def test_nothing_is_added_after_the_catalog_was_let_go_of(making, store):
    store.release()
    with pytest.raises(BusyError, match="open it again"):
        store.add_asset(making.asset())


def test_what_is_registered_is_found_also_while_the_mirror_is_reloaded(making, store, catalog):
    for number in range(300):
        store.add_name(VideoName("r", f"{number}.mp4", "a" * 32, f"{number}.mp4", FileStamp(1, 2, 3, 4)))
    store.add_producer(making.SIGHT)
    store.commit(force=True)
    stop = threading.Event()

    def reload() -> None:
        while not stop.is_set():
            store._facts.load(Reader.open(catalog))

    loader = threading.Thread(target=reload)
    loader.start()
    try:
        found = [store._facts.producer(making.SIGHT.producer_id) for _ in range(20_000)]
    finally:
        stop.set()
        loader.join()
    assert None not in found
