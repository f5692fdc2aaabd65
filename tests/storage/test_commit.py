"""What a group commit does to the tables: replaced rows, vectors of replaced entries, repeated files."""

import shutil

import pytest

from evicat.schemas.errors import IntegrityError
from evicat.storage import commit
from evicat.storage.staging import ChunkFacts, StagingArea
from evicat.storage.store import Store
from evicat.storage.tables import vectors_table


@pytest.fixture
def store(making, catalog):
    opened = Store.connect(catalog, write=True)
    opened.add_producer(making.MINILM)
    yield opened
    opened.release()


def build(store, unit, results, *, complete=True):
    store.open(unit)
    for result in results:
        store.write(unit, result)
    store.close(unit, complete=complete)


def embed(making, store, source, windows):
    """Embed the entries that ``source`` has in ``windows``, one chunk per window."""
    stored = store.results(source)
    results = [making.embedded(window, stored[window * making.WINDOW_US].entries) for window in windows]
    build(store, making.unit(producer=making.MINILM, inputs="e"), results, complete=False)


def committed(making, store, catalog):
    store.commit(force=True)
    return making.content(catalog)


def complete_embedding(making, store, source):
    unit = making.unit(producer=making.MINILM, inputs="e")
    store.open(unit)
    store.close(unit, complete=True)
    store.commit(force=True)
    assert store.is_complete(unit)
    return unit


class TestVectorsNeverOutliveTheirEntries:
    @pytest.fixture
    def source(self, making, store):
        """A unit of three windows, wholly embedded and committed."""
        unit = making.unit()
        build(store, unit, [making.done(unit, window) for window in range(3)])
        embed(making, store, unit, range(3))
        self.embedding = complete_embedding(making, store, unit)
        return unit

    def chunks(self, content, making):
        vectors = {row["window_start_us"] // making.WINDOW_US for row in content[making.VECTORS]}
        covered = {
            row["start_s"] / 10 for row in content["coverage"] if row["unit_id"] == self.embedding.unit_id
        }
        assert vectors == covered
        return vectors

    def test_a_changed_text_makes_its_chunk_pending(self, making, store, catalog, source):
        build(store, source, [making.done(source, 1, "changed")])
        assert self.chunks(committed(making, store, catalog), making) == {0, 2}
        assert not store.is_complete(self.embedding)

    def test_an_entry_that_goes_makes_its_chunk_pending(self, making, store, catalog, source):
        build(store, source, [making.failed(2)])
        assert self.chunks(committed(making, store, catalog), making) == {0, 1}
        assert not store.is_complete(self.embedding)

    def test_other_inputs_make_all_pending(self, making, store, catalog, source):
        other = making.unit(inputs="other")
        build(store, other, [making.done(other, 0, "changed")], complete=False)
        assert self.chunks(committed(making, store, catalog), making) == set()
        (row,) = [row for row in making.content(catalog)["units"] if row["unit_id"] == self.embedding.unit_id]
        assert (row["windows"], row["complete"], row["worst_outcome"]) == (0, False, "")

    def test_an_equal_entry_keeps_its_vector(self, making, store, catalog, source):
        build(store, source, [making.done(source, 1).model_copy(update={"attempts": 9})])
        assert self.chunks(committed(making, store, catalog), making) == {0, 1, 2}
        assert store.is_complete(self.embedding)

    def test_embedding_anew_in_the_same_commit(self, making, store, catalog, source):
        build(store, source, [making.done(source, 1, "a changed text")])
        embed(making, store, source, [1])
        content = committed(making, store, catalog)
        assert self.chunks(content, making) == {0, 1, 2}
        assert sorted(row["vector"][0] for row in content[making.VECTORS]) == [12.0, 12.0, 14.0]
        assert store.is_complete(self.embedding)

    def test_vectors_staged_before_their_entries_change_go_too(self, making, store, catalog, source):
        embed(making, store, source, [0, 1])
        build(store, source, [making.done(source, 1, "changed")])
        assert self.chunks(committed(making, store, catalog), making) == {0, 2}


def test_embedding_units_of_one_model_share_a_table(making, store, catalog):
    for name in ("local", "narrative"):
        producer = making.MINILM.model_copy(update={"reads": (name,)})
        store.add_producer(producer)
        unit = making.unit(producer=producer)
        build(store, unit, [making.embedded(0, [making.entry(making.unit(name), 0)])])
    content = committed(making, store, catalog)
    assert [name for name in content if name.startswith("vectors_")] == [making.VECTORS]
    assert len({row["embed_unit_id"] for row in content[making.VECTORS]}) == 2
    embedders = making.Reader.open(catalog).embedders()
    assert embedders == {making.VECTORS: making.MINILM.model_copy(update={"reads": ()})}


def test_a_staged_file_may_be_committed_again(making, store, catalog, tmp_path):
    source = making.unit()
    build(store, source, [making.done(source, window, entries=2) for window in range(3)])
    embed(making, store, source, range(3))
    complete_embedding(making, store, source)
    build(store, source, [making.done(source, 0, "again")])
    embed(making, store, source, [0])
    kept = shutil.copytree(catalog / "staged", tmp_path / "kept")
    once = committed(making, store, catalog)
    files = sorted(kept.iterdir())
    assert len(files) == 2
    for again in (files, files[1:]):
        for path in again:
            shutil.copy(path, catalog / "staged")
        assert committed(making, store, catalog) == once


def test_a_crash_between_two_removals_is_harmless(making, store, catalog, monkeypatch):
    """After the commit of ``first`` then ``second``, ``second`` alone is left: never ``first`` alone."""
    unit = making.unit()
    build(store, unit, [making.done(unit, 0, "first")], complete=False)
    build(store, making.unit("other"), [], complete=True)
    removed = []
    unlink = type(catalog).unlink

    def record(path, **options):
        if path.parent.name == "staged":
            removed.append(path.name)
        unlink(path, **options)

    monkeypatch.setattr(type(catalog), "unlink", record)
    store.commit(force=True)
    assert removed
    assert removed == sorted(removed)


def test_the_order_of_conflicting_files_is_kept(making, store, catalog):
    old, new = making.unit(inputs="old"), making.unit(inputs="new")
    build(store, old, [making.done(old, 0, "one"), making.done(old, 1, "two")])
    build(store, new, [making.done(new, 1, "three")], complete=False)
    build(store, old, [making.done(old, 0, "four")], complete=False)
    build(store, old, [making.done(old, 0, "five")], complete=False)
    assert [row["text"] for row in committed(making, store, catalog)["entries"]] == ["five"]


def test_large_drains_are_split(making, store, catalog, monkeypatch):
    monkeypatch.setattr(commit, "BATCH_BYTES", 1)
    before = store.head.number
    for number in range(4):
        unit = making.unit(str(number))
        build(store, unit, [making.done(unit, 0)])
    assert len(committed(making, store, catalog)["entries"]) == 4
    assert store.head.number > before + 1


class TestNothingWrongGetsIn:
    """Files that no store of ours would stage stop the commit, and the head stays."""

    def refused(self, making, store, catalog, facts, results, message):
        before, head = making.content(catalog), store.head
        path = StagingArea(catalog / "staged").stage_chunk(facts, results)
        with pytest.raises(IntegrityError, match=message):
            store.commit(force=True)
        assert (making.content(catalog), store.head) == (before, head)
        path.unlink()
        unit = making.unit("good")
        build(store, unit, [making.done(unit, 0)])
        assert len(committed(making, store, catalog)["entries"]) == len(before["entries"]) + 1

    def test_an_id_twice(self, making, store, catalog):
        unit = making.unit()
        double = making.done(unit, 1).model_copy(update={"entries": (making.entry(unit, 0),)})
        facts = ChunkFacts(unit=unit, run_id="")
        results = [making.done(unit, 0), double]
        self.refused(making, store, catalog, facts, results, r"table 'entries': .* stands 2 times")

    def test_an_id_that_another_window_has_already(self, making, store, catalog):
        unit = making.unit()
        build(store, unit, [making.done(unit, 0)])
        store.commit(force=True)
        double = making.done(unit, 1).model_copy(update={"entries": (making.entry(unit, 0),)})
        facts = ChunkFacts(unit=unit, run_id="")
        self.refused(making, store, catalog, facts, [double], r"table 'entries': .* stands 2 times")

    def test_vectors_of_two_lengths(self, making, store, catalog):
        unit, source = making.unit(producer=making.MINILM), making.unit()
        build(store, unit, [making.embedded(0, [making.entry(source, 0)], 3)])
        store.commit(force=True)
        facts = ChunkFacts(unit=unit, run_id="", embedder_id=making.VECTORS.removeprefix("vectors_"))
        results = [making.embedded(1, [making.entry(source, 1)], 5)]
        assert vectors_table(facts.embedder_id) == making.VECTORS
        self.refused(
            making,
            store,
            catalog,
            facts,
            results,
            f"'{making.VECTORS}' holds vectors of 3 numbers, got one of 5",
        )


def test_texts_that_no_model_could_embed_leave_a_row_without_vector(making, store, catalog):
    unit, source = making.unit(producer=making.MINILM), making.unit()
    good, bad = making.entry(source, 0), making.entry(source, 0, ordinal=1)
    vectors = (making.vector(good, (1.0, 0.0)), making.vector(bad, None))
    build(store, unit, [making.embedded(0, []).model_copy(update={"vectors": vectors})])
    rows = committed(making, store, catalog)[making.VECTORS]
    assert [(row["entry_id"], row["vector"]) for row in rows] == [
        (good.entry_id, [1.0, 0.0]),
        (bad.entry_id, None),
    ]
