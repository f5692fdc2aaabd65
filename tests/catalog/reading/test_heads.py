"""Catalogs at other heads, through stored views, in other processes, and with several embedders."""

import multiprocessing
import pickle
import subprocess
import sys

import pytest

from evicat.catalog import Catalog
from evicat.schemas.errors import CatalogError, UsageError
from evicat.schemas.identity import Producer
from evicat.storage.maintain import maintain
from evicat.storage.retire import retire
from evicat.storage.snapshots import create_snapshot, delete_snapshot
from evicat.storage.store import Store
from evicat.storage.views import set_view

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
NEWER = Producer(kind="local", scale="local-10s", component="words", version=2)


@pytest.fixture
def two(shelf):
    """Two producers of one kind and scale, and a stored view of the newer."""
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    shelf.write("a.mp4", NEWER, [(0, 10, "a crimson car")])
    with Store.connect(shelf.uri, write=True) as store:
        set_view(store, "newer", [NEWER.producer_id])
    return shelf


def said(catalog):
    return catalog.search("car", mode="text")["text"].to_list()


def test_a_stored_view_is_searched_without_what_it_does_not_show(two):
    assert said(two.catalog) == ["a red car"]
    assert said(two.catalog.view("newer")) == ["a crimson car"]
    assert two.catalog.view("newer").occurrences("red").is_empty()


def test_a_view_of_a_snapshot_is_that_of_its_time(two):
    create_snapshot(two.uri, "paper")
    with Store.connect(two.uri, write=True) as store:
        set_view(store, "newer", [LOCAL.producer_id])
    assert said(Catalog.open(two.uri, at="paper").view("newer")) == ["a crimson car"]
    assert said(two.catalog.view("newer")) == ["a red car"]


def test_a_view_whose_producer_was_retired_shows_nothing_of_it(two):
    create_snapshot(two.uri, "paper")
    with Store.connect(two.uri, write=True) as store:
        retire(store, [NEWER.producer_id])
    assert said(two.catalog.view("newer")) == []
    assert two.catalog.view("newer").entries().is_empty()
    assert said(Catalog.open(two.uri, at="paper").view("newer")) == ["a crimson car"]


def test_what_was_pickled_at_a_head_that_is_gone_says_what_to_do(two):
    pickled = pickle.dumps(two.catalog)
    two.write("b.mp4", LOCAL, [(0, 10, "another car")])
    maintain(two.uri, keep_days=0)
    with pytest.raises(CatalogError, match=r"pickled at head \d+, and a maintenance removed it.*at=NAME"):
        pickle.loads(pickled)


def test_what_was_pickled_at_a_snapshot_is_opened_as_long_as_that_is_there(two):
    create_snapshot(two.uri, "paper")
    pickled = pickle.dumps(Catalog.open(two.uri, at="paper").view("newer"))
    two.write("b.mp4", NEWER, [(0, 10, "another car")])
    maintain(two.uri, keep_days=0)
    assert said(pickle.loads(pickled)) == ["a crimson car"]
    delete_snapshot(two.uri, "paper")
    with pytest.raises(CatalogError, match="the snapshot 'paper' was deleted since"):
        pickle.loads(pickled)
    create_snapshot(two.uri, "paper")
    with pytest.raises(CatalogError, match=r"the snapshot 'paper' is head \d+ now"):
        pickle.loads(pickled)


def test_of_two_embedders_the_active_one_is_searched(shelf, direction):
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car", {"vector": direction(1)})])
    first = shelf.catalog.embedder_tables()
    shelf.embedding = shelf.embedding.model_copy(update={"options": {"query_prompt": "query: "}})
    shelf.write("b.mp4", LOCAL, [(0, 10, "a blue car", {"vector": direction(0, 1)})])
    catalog = shelf.catalog
    assert len([name for name in catalog._shown.reader.names() if name.startswith("vectors_")]) == 2
    assert catalog.embedder_tables() == first
    found = catalog.search(vector=direction(0, 1))
    assert found["video"].to_list() == ["a.mp4"], "the vectors of the other lie elsewhere"
    both = catalog.search("blue", vector=direction(1))
    assert set(both["video"]) == {"a.mp4", "b.mp4"}, "words are those of all entries"
    with Store.connect(shelf.uri, write=True) as store:
        store.activate(shelf.embedding.model_copy(update={"reads": (LOCAL.producer_id,)}))
    assert shelf.catalog.embedder_tables() != first
    assert shelf.catalog.search(vector=direction(1))["video"].to_list() == ["b.mp4"]


@pytest.mark.filterwarnings("ignore")  # lance's own warning, which is shown once the fork is made
def test_a_search_in_a_forked_process_says_what_to_do(two):
    catalog = two.catalog
    assert said(catalog) == ["a red car"]
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_try, args=(catalog, sender))
    child.start()
    try:
        assert receiver.poll(30), "the forked process hangs"
        assert "open it in the worker" in receiver.recv()
    finally:
        child.kill()
        child.join()


def _try(catalog, sender):
    try:
        sender.send(str(said(catalog)))
    except UsageError as error:
        sender.send(str(error))


def test_no_text_query_loads_what_models_need(two):
    program = (
        "import sys; from evicat.catalog import Catalog; catalog = Catalog.open(sys.argv[1]); "
        "found = len(catalog.search('car', mode='text')) + len(catalog.entries('a.mp4', between=(0, 5))); "
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'av', 'cv2', 'lancedb', 'prefect'}; "
        "print(found, sorted(heavy & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, two.uri], check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() == "2 []"
