"""Staged files: whole or set aside, in the order in which they were staged."""

import os

import pytest

from evicat.storage.maintain import maintain
from evicat.storage.snapshots import create_snapshot
from evicat.storage.staging import ChunkFacts, FactRows, StagingArea, results_of
from evicat.storage.store import Store


@pytest.fixture
def staging(tmp_path):
    return StagingArea(tmp_path)


def stage(staging, making, *windows):
    unit = making.unit()
    facts = ChunkFacts(unit=unit, run_id="r")
    return staging.stage_chunk(facts, [making.done(unit, window) for window in windows])


def test_chunks_come_back_in_order(making, staging):
    paths = [stage(staging, making, window) for window in range(12)]
    assert staging.files() == paths
    chunks = staging.chunks_of(making.unit().unit_id)
    assert [results_of(chunk) for chunk in chunks] == [
        [making.done(making.unit(), number)] for number in range(12)
    ]
    assert chunks[0].facts == ChunkFacts(unit=making.unit(), run_id="r")


def test_what_is_staged_later_sorts_later_even_if_the_clock_went_back(making, staging, monkeypatch):
    first = stage(staging, making, 0)
    monkeypatch.setattr("time.time_ns", lambda: 5)
    successor = StagingArea(staging.folder)
    second = stage(successor, making, 1)
    assert successor.files() == [first, second]


@pytest.mark.parametrize("keep", [0, 3, 200, -1])
def test_a_truncated_chunk_is_set_aside(making, staging, caplog, keep):
    path = stage(staging, making, 0, 1)
    os.truncate(path, keep if keep >= 0 else path.stat().st_size - 1)
    assert staging.read(path) is None
    assert "set aside" in caplog.text
    assert staging.files() == []
    assert path.with_name(path.name + ".broken").exists()


def test_no_flipped_byte_gets_through(making, staging):
    path = stage(staging, making, 0, 1)
    content = path.read_bytes()
    for position in range(0, len(content), 37):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :])
        assert staging.read(path) is None
    path.write_bytes(content)
    assert staging.read(path) is not None


def test_broken_facts_are_set_aside(staging, caplog):
    path = staging.stage_facts("roots", [{"root_id": "r", "kind": "folder", "location": "x"}])
    assert staging.read(path) == FactRows(
        table="roots", rows=[{"root_id": "r", "kind": "folder", "location": "x"}]
    )
    path.write_bytes(path.read_bytes()[:-3])
    assert staging.read(path) is None
    assert path.name in caplog.text


def test_windows_of_a_broken_chunk_are_pending_again_and_the_unit_incomplete(making, catalog, caplog):
    unit = making.unit()
    store = Store.connect(catalog, write=True)
    store.open(unit)
    for window in range(3):
        store.write(unit, making.done(unit, window))
        store.seal(unit)
    store.close(unit, complete=True)
    store.release()
    first, _, third, _ = sorted((catalog / "staged").iterdir())
    os.truncate(third, 1000)
    with Store.connect(catalog, write=True) as store:
        assert sorted(store.open(unit)) == [0, making.WINDOW_US]
        assert not store.is_complete(unit), "it had been called complete"
        store.write(unit, making.done(unit, 2))
        store.close(unit, complete=True)
    assert third.name in caplog.text
    (row,) = making.content(catalog)["units"]
    assert (row["complete"], row["windows"], row["entries"]) == (True, 3, 3)
    assert not first.exists()


def test_unnamed_files_of_a_crash_are_removed_once_they_are_old(staging):
    old, new = (staging.folder / f".0{name}-x-y.arrow.tmp" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    staging.remove_abandoned()
    assert (old.exists(), new.exists()) == (False, True)
    assert staging.files() == []


class TestLostFacts:
    """A file of facts broke: results that only it explained wait, and no table contradicts another."""

    def index(self, making, catalog):
        """Two units of one asset, the second of which reads the first; staged, and nobody committed them."""
        local, vectors = making.unit(), making.unit(producer=making.MINILM)
        store = Store.connect(catalog, write=True)
        for producer in (making.SIGHT, making.MINILM):
            store.add_producer(producer)
        store.add_asset(making.asset(windows=1))
        made = []
        for unit, result in (
            (local, making.done(local, 0)),
            (vectors, making.embedded(0, [making.entry(local, 0)])),
        ):
            if not store.is_complete(unit):
                if not store.open(unit):
                    store.write(unit, result)
                    made.append(unit.kind)
                store.close(unit, complete=True)
        store.release()
        return made

    def lose(self, catalog, what):
        """Break the first staged file about ``what``: of producers, the one that the other reads."""
        staged = sorted((catalog / "staged").glob("*-facts-*.json"))
        path = next(path for path in staged if f'"table":"{what}"' in path.read_text())
        os.truncate(path, path.stat().st_size // 2)
        return path

    @pytest.mark.parametrize("what", ["producers", "videos"])
    def test_what_they_explained_waits_and_is_committed_once_they_are_there_again(
        self, making, catalog, caplog, what
    ):
        assert self.index(making, catalog) == ["local", "embedding"]
        lost = self.lose(catalog, what)
        Store.connect(catalog, write=True).release()
        rows = making.content(catalog)
        assert rows["entries"] == rows["coverage"] == rows["units"] == []
        assert making.VECTORS not in rows, "vectors would outlive what they embed"
        (broken,) = [record.getMessage() for record in caplog.records if lost.name in record.getMessage()]
        assert "until the next index" in broken
        assert "windows are done again" not in caplog.text
        waiting = len(list((catalog / "staged").glob("*.arrow")))
        assert f"{waiting} staged files wait" in caplog.text

        assert self.index(making, catalog) == [], "nothing is made anew"
        Store.connect(catalog, write=True).release()
        rows = making.content(catalog)
        assert len(rows["entries"]) == len(rows[making.VECTORS]) == len(rows["videos"]) == 1
        assert {row["producer_id"] for row in rows["entries"]} <= {
            row["producer_id"] for row in rows["producers"]
        }
        assert list((catalog / "staged").glob("*.arrow")) == []

    def test_a_snapshot_holds_no_contradiction(self, making, catalog):
        self.index(making, catalog)
        self.lose(catalog, "producers")
        assert create_snapshot(catalog, "now").rows["entries"] == 0

    def test_a_maintenance_does_not_forget_that_they_were_lost(self, making, catalog):
        self.index(making, catalog)
        self.lose(catalog, "videos")
        Store.connect(catalog, write=True).release()
        maintain(catalog, keep_days=0)
        Store.connect(catalog, write=True).release()
        assert making.content(catalog)["entries"] == []

    def test_what_others_explain_is_committed(self, making, catalog):
        self.index(making, catalog)
        self.lose(catalog, "views")
        Store.connect(catalog, write=True).release()
        assert len(making.content(catalog)["entries"]) == 1
