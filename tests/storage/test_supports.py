"""Supports in the tables: one result for a whole asset, void with anything that it read."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from evicat.schemas.entry import Link, Outcome, Support, WindowResult
from evicat.schemas.identity import Producer, entry_id
from evicat.schemas.span import Span
from evicat.storage.content import content_hash_of
from evicat.storage.export import export_snapshot
from evicat.storage.reader import Reader
from evicat.storage.retire import bring_back, retire
from evicat.storage.snapshots import create_snapshot
from evicat.storage.staging import ChunkFacts, StagingArea, results_of
from evicat.storage.store import Store

WINDOWS = 4


class Film:
    """An asset with four local windows, two narratives that read them, and supports of these."""

    def __init__(self, making) -> None:
        self.making = making
        self.sight = making.SIGHT
        self.digest = Producer(
            kind="narrative", scale="narrative-20s", component="digest", version=1,
            reads=(self.sight.producer_id,),
        )  # fmt: skip
        self.support = Producer(
            kind="support", scale="supports", component="supports", version=1,
            reads=(self.sight.producer_id, self.digest.producer_id),
        )  # fmt: skip
        self.producers = (self.sight, self.digest, self.support)
        self.local = making.unit(producer=self.sight)
        self.narrative = making.unit(producer=self.digest)
        self.supports = making.unit(producer=self.support)

    def told(self, window: int, text: str = "A man waits. He leaves.") -> WindowResult:
        span = Span(self.making.span(2 * window).start_us, self.making.span(2 * window + 1).end_us)
        entry = self.making.entry(self.narrative, 0, text).model_copy(
            update={
                "kind": "narrative",
                "span": span,
                "entry_id": entry_id(self.narrative, span.start_us, 0),
            }
        )
        return WindowResult(span=span, outcome=Outcome.DONE, entries=(entry,))

    def weighed(self, score: float = 0.75) -> WindowResult:
        """Two sentences of each narrative: one rests on two entries, one on nothing."""
        found = []
        for window in range(2):
            (narrative,) = self.told(window).entries
            links = [self.making.entry(self.local, 2 * window + one).entry_id for one in range(2)]
            rests_on = tuple(Link(entry_id=link, score=score) for link in links)
            facts = {name: getattr(narrative, name) for name in ("entry_id", "unit_id", "asset_id", "span")}
            facts["producer_id"] = narrative.producer_id
            found += [
                Support(**facts, sentence=0, text="A man waits.", role="observed", rests_on=rests_on),
                Support(**facts, sentence=1, text="He leaves.", role="inferred"),
            ]
        timeline = Span(0, self.making.span(WINDOWS - 1).end_us)
        return WindowResult(
            span=timeline, outcome=Outcome.DONE, supports=tuple(found), context_hash="read", seconds=0.5
        )

    def write(self, store: Store, unit, *results: WindowResult) -> None:
        store.open(unit)
        for result in results:
            store.write(unit, result)
        store.close(unit, complete=True)

    def make(self, store: Store) -> None:
        """As an unbroken run does."""
        for producer in self.producers:
            store.add_producer(producer)
        store.add_asset(self.making.asset(windows=WINDOWS))
        self.write(store, self.local, *(self.making.done(self.local, window) for window in range(WINDOWS)))
        self.write(store, self.narrative, self.told(0), self.told(1))
        self.write(store, self.supports, self.weighed())


@pytest.fixture(scope="session")
def film(making) -> Film:
    return Film(making)


@pytest.fixture(scope="session")
def full(film, empty_catalog, tmp_path_factory):
    path = shutil.copytree(empty_catalog, tmp_path_factory.mktemp("supports") / "catalog")
    with Store.connect(path, write=True) as store:
        film.make(store)
    return path


@pytest.fixture
def catalog(full, tmp_path):
    return shutil.copytree(full, tmp_path / "catalog")


@pytest.fixture
def store(catalog):
    with Store.connect(catalog, write=True) as opened:
        yield opened


def rows(catalog, table: str = "supports") -> list[dict]:
    return Reader.open(catalog).dataset(table).to_table().to_pylist()


def is_there(film, catalog) -> bool:
    """Whether the supports are there, rows, coverage and unit, or nothing of them is."""
    covered = [row for row in rows(catalog, "coverage") if row["kind"] == "support"]
    complete = [row["complete"] for row in rows(catalog, "units") if row["kind"] == "support"]
    assert (len(rows(catalog)), len(covered), complete) in ((4, 1, [True]), (0, 0, [False]))
    return bool(covered)


class TestStored:
    def test_a_row_per_sentence(self, film, catalog) -> None:
        by_key = {(row["start_s"], row["sentence"]): row for row in rows(catalog)}
        assert sorted(by_key) == [(0.0, 0), (0.0, 1), (20.0, 0), (20.0, 1)]
        row = by_key[20.0, 0]
        assert row["support_unit_id"] == film.supports.unit_id
        assert (row["unit_id"], row["producer_id"]) == (film.narrative.unit_id, film.digest.producer_id)
        assert [link["score"] for link in row["rests_on"]] == [0.75, 0.75]
        assert by_key[20.0, 1]["rests_on"] == []

    def test_read_back_as_written_staged_and_committed(self, film, empty_catalog, tmp_path) -> None:
        path = shutil.copytree(empty_catalog, tmp_path / "new")
        with Store.connect(path, write=True) as store:
            film.make(store)
            assert store.results(film.supports) == {0: film.weighed()}
            assert not rows(path)
        assert Store.connect(path).results(film.supports) == {0: film.weighed()}

    def test_written_again_they_replace_those_before(self, film, store, catalog) -> None:
        film.write(store, film.supports, film.weighed(0.5))
        store.commit(force=True)
        assert {link["score"] for row in rows(catalog) for link in row["rests_on"]} == {0.5}
        assert is_there(film, catalog)

    def test_a_file_that_was_staged_before_there_were_supports_is_read(self, film, making, tmp_path) -> None:
        area, results = StagingArea(tmp_path), [making.done(film.local, window) for window in range(WINDOWS)]
        path = area.stage_chunk(ChunkFacts(unit=film.local, run_id="old"), results)
        table = ipc.open_file(pa.BufferReader(path.read_bytes())).read_all().drop_columns(["supports"])
        path.unlink()
        content = pa.BufferOutputStream()
        with ipc.new_file(content, table.schema) as writer:
            writer.write_table(table)
        area._stage(film.local.unit_id, content.getvalue().to_pybytes(), "arrow")
        (chunk,) = area.chunks_of(film.local.unit_id)
        assert results_of(chunk) == results

    def test_an_export_carries_them(self, catalog, tmp_path) -> None:
        create_snapshot(catalog, "first")
        export_snapshot(catalog, "first", tmp_path / "exported")
        assert rows(tmp_path / "exported") == rows(catalog)

    def test_scores_are_no_part_of_what_equal_means(self, film, store, catalog) -> None:
        before = content_hash_of(Reader.open(catalog))
        film.write(store, film.supports, film.weighed(0.5))
        store.commit(force=True)
        assert content_hash_of(Reader.open(catalog)) == before


class TestVoid:
    def test_when_a_local_entry_changes(self, film, making, store, catalog) -> None:
        film.write(store, film.local, making.done(film.local, 3, "Other."))
        store.commit(force=True)
        assert not is_there(film, catalog)
        assert not store.is_complete(film.supports)

    def test_when_a_narrative_changes(self, film, store, catalog) -> None:
        film.write(store, film.narrative, film.told(1, "Other."))
        store.commit(force=True)
        assert not is_there(film, catalog)

    def test_not_when_the_same_is_written_again(self, film, making, store, catalog) -> None:
        film.write(store, film.local, making.done(film.local, 3))
        film.write(store, film.narrative, film.told(1))
        store.commit(force=True)
        assert is_there(film, catalog)

    def test_not_when_they_were_made_from_the_change(self, film, store, catalog) -> None:
        film.write(store, film.narrative, film.told(1, "Other."))
        film.write(store, film.supports, film.weighed())
        store.commit(force=True)
        assert is_there(film, catalog)

    def test_when_they_were_made_just_before_the_change(self, film, store, catalog) -> None:
        """Staged together, in the other order."""
        film.write(store, film.supports, film.weighed(0.5))
        film.write(store, film.narrative, film.told(1, "Other."))
        store.commit(force=True)
        assert not is_there(film, catalog)

    def test_not_by_another_asset(self, film, making, store, catalog) -> None:
        other = making.unit("two")
        film.write(store, other, *(making.done(other, window, "Other.") for window in range(WINDOWS)))
        store.commit(force=True)
        assert is_there(film, catalog)


class TestRetired:
    @pytest.mark.parametrize("name", ["digest", "support"])
    def test_they_go_with_narratives_or_alone_and_come_back(self, film, making, store, catalog, name) -> None:
        before = making.content(catalog)
        chosen = {getattr(film, name).producer_id}
        taken = retire(store, chosen)
        assert (taken.supports, rows(catalog)) == (4, [])
        assert film.support.producer_id not in store.view().values()
        back = bring_back(store, chosen)
        after = making.content(catalog)
        assert back.supports == 4
        assert sorted(after.pop("views"), key=str) == sorted(before.pop("views"), key=str)
        assert after == before

    def test_they_go_with_local_entries_that_they_read(self, film, store, catalog) -> None:
        taken = retire(store, {film.sight.producer_id, film.digest.producer_id})
        assert (taken.units, taken.supports) == (3, 4)
        assert rows(catalog, "units") == []

    def test_they_stay_away_where_the_narratives_are_others_by_now(self, film, store, catalog) -> None:
        retire(store, {film.support.producer_id})
        film.write(store, film.narrative, film.told(1, "Other."))
        store.commit(force=True)
        with pytest.raises(Exception, match="has changed since"):
            bring_back(store, {film.support.producer_id})
        assert rows(catalog) == []
