"""Indexes cover every row after a refresh, cost nothing where nothing is new, and find what they should."""

import numpy as np
import pytest

from evicat.storage import indexes
from evicat.storage.indexes import unindexed_fragments
from evicat.storage.reader import Reader
from evicat.storage.store import Store

TEXTS = ["It's the café at noon", "THE cafe is closed", "然後他離開了房間", "a man with a red bag", "red man"]


def fill(making, store, name, texts):
    unit = making.unit(name)
    store.open(unit)
    for window, text in enumerate(texts):
        store.write(unit, making.done(unit, window, text))
    store.close(unit, complete=True)
    return unit


@pytest.fixture
def store(catalog):
    with Store.connect(catalog, write=True) as opened:
        yield opened


def found(catalog, query):
    hits = Reader.open(catalog).table("entries").search(query, query_type="fts").limit(10).to_arrow()
    return sorted(hits["text"].to_pylist())


def test_refresh_leaves_nothing_unindexed_and_then_nothing_to_do(making, store, catalog):
    unit = fill(making, store, "one", TEXTS)
    store.finish()
    store.open(unit)
    store.write(unit, making.done(unit, 0, "replaced"))
    store.close(unit, complete=True)
    fill(making, store, "two", TEXTS)
    store.commit(force=True)
    assert unindexed_fragments(Reader.open(catalog).dataset("entries"))
    store.refresh_indexes()
    reader = Reader.open(catalog)
    for name in reader.names():
        assert unindexed_fragments(reader.dataset(name)) == {}
    statistics = reader.table("entries").list_indices()
    assert {(*index.columns, index.index_type): index.num_unindexed_rows for index in statistics} == {
        ("asset_id", "BTree"): 0,
        ("factors", "LabelList"): 0,
        ("kind", "Bitmap"): 0,
        ("producer_id", "Bitmap"): 0,
        ("text", "FTS"): 0,
        ("unit_id", "BTree"): 0,
    }
    assert [index.columns for index in reader.table("coverage").list_indices()] == [["unit_id"]]
    head = store.head
    store.refresh_indexes()
    store.finish()
    assert store.head == head


def test_words_phrases_and_scripts_are_found(making, store, catalog):
    from lancedb.query import PhraseQuery

    fill(making, store, "one", TEXTS)
    store.finish()
    assert found(catalog, "it's") == [TEXTS[0]]
    assert found(catalog, "the") == [TEXTS[0], TEXTS[1]]
    assert found(catalog, "cafe") == [TEXTS[0], TEXTS[1]]
    assert found(catalog, "離開") == [TEXTS[2]]
    assert found(catalog, PhraseQuery("red bag", "text")) == [TEXTS[3]]


def test_replaced_texts_are_no_longer_found(making, store, catalog):
    unit = fill(making, store, "one", TEXTS)
    store.finish()
    store.open(unit)
    store.write(unit, making.done(unit, 3, "a green hat"))
    store.close(unit, complete=True)
    store.finish()
    assert found(catalog, "bag") == []
    assert found(catalog, "hat") == ["a green hat"]


def test_vectors_get_an_index_once_they_are_many(making, store, catalog, monkeypatch):
    monkeypatch.setattr(indexes, "VECTOR_INDEX_ROWS", 300)
    store.add_producer(making.MINILM)
    numbers = np.random.default_rng(7).normal(size=(400, 8))
    for name, part in (("one", numbers[:200]), ("two", numbers[200:])):
        source, unit = making.unit(name), making.unit(name, producer=making.MINILM)
        entries = [making.entry(source, 0, ordinal=ordinal) for ordinal in range(200)]
        vectors = tuple(making.vector(entry, tuple(row)) for entry, row in zip(entries, part, strict=True))
        store.open(unit)
        store.write(unit, making.embedded(0, []).model_copy(update={"vectors": vectors}))
        store.close(unit, complete=True)
        store.finish()
        kinds = {
            index.index_type for index in Reader.open(catalog).dataset(making.VECTORS).describe_indices()
        }
        assert ("IVF_FLAT" in kinds) == (name == "two")
    reader = Reader.open(catalog)
    assert unindexed_fragments(reader.dataset(making.VECTORS)) == {}
    hits = (
        reader.table(making.VECTORS).search(numbers[321].tolist()).distance_type("cosine").limit(1).to_arrow()
    )
    assert hits["vector"].to_pylist()[0] == pytest.approx(numbers[321].tolist(), rel=1e-6)
    head = store.head
    store.finish()
    assert store.head == head
