"""Retiring producers, and bringing back what they had made: all or nothing, and nothing twice."""

import shutil
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from evicat.schemas.errors import BusyError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.storage import retire as module
from evicat.storage.locks import ProcessLock
from evicat.storage.maintain import maintain
from evicat.storage.migrations import migrate
from evicat.storage.reader import Reader
from evicat.storage.retire import bring_back, retire
from evicat.storage.roster import Roster
from evicat.storage.snapshots import create_snapshot, delete_snapshot
from evicat.storage.store import Store
from evicat.storage.tables import embedder_id

ASSETS = ("one", "two")
SCHEMA_1 = Path(__file__).parent / "catalogs" / "schema1"
WINDOWS = 2


class Things:
    """Two local producers, a narrative that reads the first, and one embedder of all three."""

    def __init__(self, making):
        self.making = making
        self.sight = making.SIGHT
        self.other = making.SIGHT.model_copy(update={"version": 2})
        self.digest = Producer(
            kind="narrative", scale="narrative-60s", component="digest", version=1,
            reads=(self.sight.producer_id,),
        )  # fmt: skip
        self.embedder = embedder_id(making.MINILM)

    def embedding(self, producer):
        return self.making.MINILM.model_copy(update={"reads": (producer.producer_id,)})

    def make(self, store, producer, *, assets=ASSETS, text="A man waits."):
        """Entries and vectors of a producer, as an unbroken run makes them."""
        store.add_producer(producer)
        store.add_producer(self.embedding(producer))
        for name in assets:
            unit = self.making.unit(name, producer=producer)
            results = [self.making.done(unit, window, f"{text} {window}") for window in range(WINDOWS)]
            self.write(store, unit, results)
            chunk = self.making.unit(name, producer=self.embedding(producer))
            entries = [entry for result in results for entry in result.entries]
            self.write(store, chunk, [self.making.embedded(0, entries)])
        store.commit(force=True)

    def write(self, store, unit, results):
        store.open(unit)
        for result in results:
            store.write(unit, result)
        store.close(unit, complete=True)


@pytest.fixture(scope="session")
def things(making):
    return Things(making)


@pytest.fixture(scope="session")
def full_catalog(things, empty_catalog, tmp_path_factory):
    path = shutil.copytree(empty_catalog, tmp_path_factory.mktemp("full") / "catalog")
    with Store.connect(path, write=True) as store:
        for producer in (things.sight, things.other, things.digest):
            things.make(store, producer)
    return path


@pytest.fixture
def catalog(full_catalog, tmp_path):
    return shutil.copytree(full_catalog, tmp_path / "catalog")


@pytest.fixture
def store(catalog):
    with Store.connect(catalog, write=True) as opened:
        yield opened


def left(making, catalog):
    """Which producers (of vectors: whose entries) have rows in each table."""
    content = making.content(catalog)
    return {
        name: {row["producer_id"] for row in content[name]}
        for name in ("entries", "coverage", "units", making.VECTORS)
    }


def same(making, catalog, before):
    """Whether all rows are as they were before, in whatever order views stand."""
    after = making.content(catalog)
    views = [sorted(content["views"], key=str) for content in (before, after)]
    return views[0] == views[1] and after | {"views": []} == before | {"views": []}


def ids(*producers):
    return {producer.producer_id for producer in producers}


def test_everything_of_a_producer_goes_in_one_head_and_nothing_else(making, things, store, catalog):
    before, head = making.content(catalog), store.head.number
    moved = retire(store, ids(things.other))
    after = making.content(catalog)
    assert asdict(moved) == {
        "units": 4, "windows": 6, "entries": 4, "vectors": 4, "supports": 0, "tags": 0,
        "head": head + 1, "from_heads": (),
    }  # fmt: skip
    gone = ids(things.other, things.embedding(things.other))
    for name, rows in before.items():
        if name in ("entries", "coverage", "units", making.VECTORS):
            rows = [row for row in rows if row["producer_id"] not in gone]
        assert after[name] == rows, name


def test_a_reader_that_was_open_still_sees_all_of_it(things, store, catalog):
    reader = Reader.open(catalog)
    retire(store, ids(things.other))
    assert reader.dataset("entries").count_rows() == 12
    assert Reader.open(catalog).dataset("entries").count_rows() == 8


def test_a_crash_before_the_head_moves_changes_nothing(making, things, store, catalog, monkeypatch):
    before = making.content(catalog)

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_leave_view", crash)
    with pytest.raises(KeyboardInterrupt):
        retire(store, ids(things.other))
    assert making.content(catalog) == before
    with Store.connect(catalog, write=True):
        assert making.content(catalog) == before


def test_retired_units_are_made_again_by_the_next_run(making, things, store, catalog):
    before = making.content(catalog)
    unit = making.unit(producer=things.other)
    assert store.is_complete(unit)
    retire(store, ids(things.other))
    for asked in (store, Store.connect(catalog)):
        assert not asked.is_complete(unit)
        assert not asked.is_complete(making.unit(producer=things.embedding(things.other)))
    things.make(store, things.other)
    assert making.content(catalog) == before


class TestRefused:
    def test_the_active_one_while_another_could_be(self, things, store, catalog):
        before = store.head
        with pytest.raises(UsageError, match=f"evicat activate {things.other.producer_id[:8]} --catalog"):
            retire(store, ids(things.sight, things.digest))
        assert store.head == before

    def test_what_a_kept_one_reads(self, things, store):
        store.activate(things.other)
        sight, digest = things.sight.producer_id[:8], things.digest.producer_id[:8]
        with pytest.raises(UsageError, match=f"is read by digest {digest} .*evicat retire {sight} {digest}"):
            retire(store, ids(things.sight))
        retire(store, ids(things.sight, things.digest))
        assert left(things.making, store.layout.root)["entries"] == ids(things.other)

    def test_twice(self, things, store):
        retire(store, ids(things.other))
        with pytest.raises(UsageError, match=r"nothing to take out.*evicat retire --undo"):
            retire(store, ids(things.other))

    def test_an_id_that_is_none(self, store):
        with pytest.raises(UnknownNameError, match="unknown producer 'f00'"):
            retire(store, {"f00"})

    @pytest.mark.parametrize("asset", ["one", "of a video that is new"])
    def test_while_a_run_is_at_work_on_it(self, making, things, store, catalog, asset):
        unit = making.unit(asset, producer=things.other)
        before = store.head
        with Store.connect(catalog, write=True) as run:
            run.open(unit)
            with pytest.raises(BusyError, match=f"can be retired .*{unit.unit_id} is held by process"):
                retire(store, ids(things.other))
            assert store.head == before

    def test_when_a_run_began_meanwhile(self, making, things, store, catalog, monkeypatch):
        before = making.content(catalog)
        unit = making.unit(producer=things.other)
        claim = ProcessLock(store.layout.claims / f"{unit.unit_id}.lock", "a unit")
        monkeypatch.setattr(module, "_leave_view", lambda *_: claim.acquire())
        with pytest.raises(BusyError, match=unit.unit_id):
            retire(store, ids(things.other))
        claim.release()
        assert making.content(catalog) == before

    def test_but_not_for_what_a_dead_run_left(self, making, things, store):
        (store.layout.claims / f"{making.unit(producer=things.other).unit_id}.lock").write_text("{}")
        assert retire(store, ids(things.other)).units == 4


def test_the_head_that_is_told_is_of_this_change(things, store, catalog, monkeypatch):
    """Another process may commit as soon as the right to do so is free."""
    heads = []

    def commits_at_once(tables):
        heads.append(tables.head.number)
        with Store.connect(catalog, write=True) as other:
            other.add_producer(things.sight.model_copy(update={"version": 9 + len(heads)}))

    changing = store.changing

    @contextmanager
    def followed():
        with changing() as tables:
            yield tables
        commits_at_once(tables)

    monkeypatch.setattr(store, "changing", followed)
    moved = [change(store, ids(things.other)).head for change in (retire, bring_back)]
    assert moved == heads
    assert store.head.number > heads[-1]


def test_the_last_active_one_leaves_the_view_so_that_the_next_is_shown(things, store):
    retire(store, ids(things.digest))
    assert ("narrative", "narrative-60s") not in store.view()
    newer = things.digest.model_copy(update={"version": 2})
    things.make(store, newer)
    assert store.view()["narrative", "narrative-60s"] == newer.producer_id


def test_all_of_an_embedder_goes_by_its_own_id(making, things, store, catalog):
    moved = retire(store, {things.embedder})
    assert (moved.units, moved.vectors, moved.entries) == (6, 12, 0)
    assert left(making, catalog)[making.VECTORS] == set()
    bring_back(store, {things.embedder})
    assert len(making.content(catalog)[making.VECTORS]) == 12
    assert store.view()["embedding", ""] == things.embedder


class TestBroughtBack:
    @pytest.mark.parametrize("which", ["other", "digest"])
    def test_as_it_was(self, making, things, store, catalog, which):
        before, head = making.content(catalog), store.head.number
        own = ids(getattr(things, which))
        taken = retire(store, own)
        moved = bring_back(store, own)
        assert making.content(catalog) == before
        assert moved.from_heads == (head,)
        assert (moved.units, moved.entries, moved.vectors) == (taken.units, taken.entries, taken.vectors)
        assert store.is_complete(making.unit(producer=getattr(things, which)))

    def test_with_units_that_were_made_again_left_alone(self, making, things, store, catalog):
        retire(store, ids(things.other))
        things.make(store, things.other, assets=["one"], text="Made again.")
        bring_back(store, ids(things.other))
        rows = [row for row in making.content(catalog)["entries"] if row["producer_id"] in ids(things.other)]
        texts = {name: {row["text"] for row in rows if row["asset_id"] == making.unit(name).asset_id}
                 for name in ASSETS}  # fmt: skip
        assert texts == {
            "one": {"Made again. 0", "Made again. 1"},
            "two": {"A man waits. 0", "A man waits. 1"},
        }
        assert len(making.content(catalog)[making.VECTORS]) == 12
        with pytest.raises(UsageError, match="holds more"):
            bring_back(store, ids(things.other))

    def test_without_vectors_of_texts_that_changed_since(self, making, things, store, catalog):
        retire(store, {things.embedder})
        unit = making.unit("one", producer=things.other)
        things.write(store, unit, [making.done(unit, 0, "Another text.")])
        store.commit(force=True)
        bring_back(store, {things.embedder})
        assert not store.is_complete(making.unit("one", producer=things.embedding(things.other)))
        assert store.is_complete(making.unit("two", producer=things.embedding(things.other)))
        assert len(making.content(catalog)[making.VECTORS]) == 10

    def test_without_vectors_of_what_was_retired_meanwhile(self, making, things, store, catalog):
        retire(store, ids(things.digest))
        retire(store, {things.embedder})
        retire(store, ids(things.other))
        bring_back(store, {things.embedder})
        assert left(making, catalog)[making.VECTORS] == ids(things.sight)
        assert len(making.content(catalog)[making.VECTORS]) == 4

    def test_stale_where_it_read_what_changed_since(self, making, things, store, catalog):
        retire(store, ids(things.digest))
        unit = making.unit("one")
        things.write(store, unit, [making.done(unit, 1, "Another text.")])
        store.commit(force=True)
        bring_back(store, ids(things.digest))
        content = making.content(catalog)
        own = [row for row in content["coverage"] if row["producer_id"] in ids(things.digest)]
        stale = [(row["asset_id"], row["start_s"]) for row in own if row["outcome"] == "stale"]
        assert stale == [(unit.asset_id, 10.0)]
        counts = {
            row["asset_id"]: (row["done"], row["stale"], row["worst_outcome"], row["complete"])
            for row in content["units"]
            if row["producer_id"] in ids(things.digest)
        }
        assert counts == {
            unit.asset_id: (1, 1, "stale", True),
            making.unit("two").asset_id: (2, 0, "done", True),
        }

    def test_without_the_chunks_whose_texts_changed_since_but_with_the_others(self, making, things, store):
        unit, chunks = making.unit("new"), making.unit("new", producer=things.embedding(things.sight))
        results = [making.done(unit, window) for window in range(WINDOWS)]
        things.write(store, unit, results)
        embedded = [making.embedded(at, list(result.entries)) for at, result in enumerate(results)]
        things.write(store, chunks, embedded)
        store.commit(force=True)
        retire(store, {things.embedder})
        things.write(store, unit, [making.done(unit, 1, "Another text.")])
        store.commit(force=True)
        bring_back(store, {things.embedder})
        assert not store.is_complete(chunks)
        assert list(store.results(chunks)) == [0]
        assert [each.entry_id for each in store.results(chunks)[0].vectors] == [
            results[0].entries[0].entry_id
        ]
        things.write(store, chunks, [making.embedded(1, list(making.done(unit, 1, "Another text.").entries))])
        assert store.is_complete(chunks)

    def test_retired_one_after_the_other_each_from_its_own_head(self, making, things, store, catalog):
        store.activate(things.other)
        store.commit(force=True)
        before = making.content(catalog)
        heads = []
        for producer in (things.digest, things.sight):
            heads.insert(0, store.head.number)
            retire(store, ids(producer))
        with pytest.raises(UsageError, match="retired too") as told:
            bring_back(store, ids(things.digest))
        asked = [things.sight.producer_id, things.digest.producer_id]
        assert f"--undo {asked[0][:8]} {asked[1][:8]} " in str(told.value)
        moved = bring_back(store, asked)
        assert same(making, catalog, before)
        assert moved.from_heads == tuple(heads)

    def test_with_the_embedder_that_was_retired_before_it_where_both_are_asked_for(
        self, making, things, store, catalog
    ):
        before = making.content(catalog)
        retire(store, {things.embedder})
        retire(store, ids(things.other))
        moved = bring_back(store, {things.embedder, things.other.producer_id})
        assert (moved.units, moved.entries, moved.vectors) == (8, 4, 12)
        assert same(making, catalog, before)

    def test_all_or_nothing(self, making, things, store, catalog):
        retire(store, ids(things.other))
        before, head = making.content(catalog), store.head
        digest, other = things.digest.producer_id[:8], things.other.producer_id[:8]
        with pytest.raises(UsageError, match=rf"holds more of {digest} than is there; .*--undo {other} "):
            bring_back(store, ids(things.digest, things.other))
        assert (making.content(catalog), store.head) == (before, head)

    def test_nothing_of_an_embedder_whose_sources_are_gone_becomes_active(self, things, store):
        for own in ({things.embedder}, ids(things.digest), ids(things.other), ids(things.sight)):
            retire(store, own)
        head = store.head
        with pytest.raises(UsageError, match=r"nothing of minilm \w+ \(embedding\) can come back"):
            bring_back(store, {things.embedder})
        assert store.view() == {}
        assert store.head == head

    def test_not_from_a_snapshot_that_a_migration_kept(self, tmp_path):
        """Its tables lack columns that those of this release have."""
        old = shutil.copytree(SCHEMA_1, tmp_path / "old")
        assert migrate(old).kept == ("before-schema-2", "before-schema-3")
        with Store.connect(old, write=True) as store:
            (other,) = Roster.read(store.reader()).own_ids(["b7fa7c01"])
            retire(store, {other})
        delete_snapshot(old, "before-schema-3")  # its tables have all that this needs
        maintain(old, keep_days=0)
        with (
            Store.connect(old, write=True) as store,
            pytest.raises(UsageError, match="holds more of b7fa7c01"),
        ):
            bring_back(store, {other})

    def test_not_without_what_it_reads(self, making, things, store, catalog):
        before = making.content(catalog)
        store.activate(things.other)
        retire(store, ids(things.sight, things.digest))
        sight, digest = things.sight.producer_id[:8], things.digest.producer_id[:8]
        with pytest.raises(UsageError, match=f"retired too.*evicat retire --undo {sight} {digest}"):
            bring_back(store, ids(things.digest))
        bring_back(store, ids(things.sight, things.digest))
        assert making.content(catalog)["entries"] == before["entries"]
        assert store.view()["local", "local-10s"] == things.other.producer_id, "the active one stays so"

    def test_from_a_snapshot_where_no_head_is_kept(self, making, things, store, catalog):
        before = making.content(catalog)
        create_snapshot(catalog, "kept")
        retire(store, ids(things.other))
        for path in (catalog / "heads").iterdir():
            path.unlink()
        moved = bring_back(store, ids(things.other))
        assert moved.from_heads
        assert making.content(catalog) == before

    def test_not_when_no_head_holds_it_any_more(self, things, store, catalog):
        retire(store, ids(things.other))
        for path in (catalog / "heads").iterdir():
            path.unlink()
        with pytest.raises(UsageError, match=r"no earlier head or snapshot .* holds more of"):
            bring_back(store, ids(things.other))

    def test_never_twice(self, making, things, store, catalog, monkeypatch):
        """Should the choice of units ever fail, the check of the keys stops it."""
        before = making.content(catalog)
        newest = module.newest_holding
        monkeypatch.setattr(module, "newest_holding", lambda *args: newest(*args) or found)
        retire(store, ids(things.other))
        with store.changing() as tables:
            found = newest(store.layout, tables, {things.other.producer_id: {*ids(things.other)}})
        bring_back(store, ids(things.other))
        with pytest.raises(IntegrityError, match="stands 2 times"):
            bring_back(store, ids(things.other))
        assert making.content(catalog)["entries"] == before["entries"]
