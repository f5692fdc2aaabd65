"""Tools that search vectors, over entries that the packaged embedder's vectors stand beside."""

import pytest

from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.media.probe import probe
from evicat.catalog.query import Catalog
from evicat.readers.session import Session
from evicat.schemas.identity import Producer
from evicat.schemas.recipe import EmbedderOptions, Profile
from evicat.storage.store import Store

from ..catalog.reading.conftest import Shelf
from ..viewer.gallery import OTHER

TEXTS = ("A dog runs over a lawn.", "A woman signs a contract.", "A puppy chases a ball.", "A kettle boils.")
LOCAL = Producer(kind="local", scale="local-2s", component="test", version=1)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory, shown):
    made = Shelf(tmp_path_factory.mktemp("vectors") / "v.catalog")
    options = EmbedderOptions(name="sentence-transformers", model="packaged:all-MiniLM-L6-v2")
    vectors = load_embedder(options, Profile()).embed(list(TEXTS))
    film = shown.media / OTHER
    with Store.connect(made.uri, write=True) as store:
        store.add_asset(probe(film, asset_id=made.asset_id(OTHER), size_bytes=film.stat().st_size))
    rows = [
        (2 * number, 2 * number + 2, text, {"vector": tuple(map(float, vectors[number]))})
        for number, text in enumerate(TEXTS)
    ]
    made.ids = made.write(OTHER, LOCAL, rows)
    return made


def test_what_is_alike_comes_in_time_order(shelf):
    step = Session(Catalog.open(shelf.uri), OTHER).call("ClipSearch", {"query": "a pet plays", "top_k": 2})
    assert step.error == ""
    assert step.entry_ids == (shelf.ids[0], shelf.ids[2])
    assert step.spans == ((0.0, 2.0), (4.0, 6.0))


def test_a_model_filters_candidates_by_their_texts(shelf, scripted):
    with scripted({"contains": "contract", "field": "keep", "answer": {"keep": [3]}}) as llm:
        session = Session(Catalog.open(shelf.uri), OTHER, llm=llm)
        step = session.call("VisualRetrieve", {"query": "a pet plays"})
    assert step.error == ""
    assert step.entry_ids == (shelf.ids[2],)
    assert step.boundary == "none"
    assert step.tokens[0] > 0


def test_a_clip_that_no_candidate_is_is_an_error(shelf, scripted):
    with scripted({"answer": {"keep": [5]}}) as llm:
        step = Session(Catalog.open(shelf.uri), OTHER, llm=llm).call("VisualRetrieve", {"query": "a pet"})
    assert step.valid
    assert step.error_class == "AnswerError"
    assert "clip 5 of 4" in step.error
    assert step.tokens[0] > 0
