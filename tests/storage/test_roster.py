"""Producers by first digits of what people call them, and which of them a view shows."""

import pyarrow as pa
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.storage.reader import Reader
from evicat.storage.roster import Roster, by_beginning
from evicat.storage.store import Store
from evicat.storage.tables import FIXED_TABLES, embedder_id

KNOWN = {"abc1": "local-4s by sight", "abd2": "vectors by minilm"}


def test_first_digits_that_one_id_has_mean_it():
    assert by_beginning(KNOWN, "abc") == "abc1"
    assert by_beginning(KNOWN, "abd2") == "abd2"


@pytest.mark.parametrize("beginning", ["", "c", "abc12"])
def test_others_are_told_what_there_is(beginning):
    with pytest.raises(UnknownNameError, match=r"abc1 \(local-4s by sight\), abd2 \(vectors by minilm\)"):
        by_beginning(KNOWN, beginning)


def test_first_digits_of_several_are_refused():
    with pytest.raises(UsageError, match="'ab' begins several producers: abc1, abd2"):
        by_beginning(KNOWN, "ab")


@pytest.fixture
def two_views(making, catalog):
    """The default view shows a describer; another shows another one, and an embedder with vectors."""
    unit, chunk = making.unit(), making.unit(producer=making.MINILM)
    result = making.done(unit, 0)
    with Store.connect(catalog, write=True) as store:
        for producer in (making.SIGHT, making.MINILM):
            store.add_producer(producer)
        for each, made in ((unit, result), (chunk, making.embedded(0, list(result.entries)))):
            store.open(each)
            store.write(each, made)
            store.close(each, complete=True)
        with store.changing() as tables:
            mine = tables.find("views", "kind", ["embedding"], [])
            rows = [
                {
                    "view": "other",
                    "kind": "embedding",
                    "scale": "",
                    "producer_id": embedder_id(making.MINILM),
                },
                {"view": "other", "kind": "local", "scale": "local-10s", "producer_id": "f" * 32},
            ]
            new = pa.Table.from_pylist(rows, schema=FIXED_TABLES["views"])
            tables.replace("views", new, mine["_rowaddr"])
    return catalog


def test_every_view_shows_its_own(making, two_views):
    reader = Reader.open(two_views)
    sight = {("local", "local-10s"): making.SIGHT.producer_id}
    assert reader.view() == reader.view("default") == Roster.read(reader).view == sight
    assert reader.view("other").keys() == {("local", "local-10s"), ("embedding", "")}
    assert reader.view("none") == {}


def test_a_catalog_shows_and_searches_what_the_default_view_has_alone(making, two_views):
    catalog = Catalog.open(str(two_views))
    assert catalog.active().rows() == [("local", "local-10s", making.SIGHT.producer_id)]
    assert catalog.embedders() == {}


def test_an_embedder_is_called_by_one_id_whatever_it_embeds(making, two_views):
    other = making.MINILM.model_copy(update={"reads": ("e" * 32,)})
    with Store.connect(two_views, write=True) as store:
        store.add_producer(other)
        store.commit(force=True)
        roster = Roster.read(store.reader())
    own = embedder_id(making.MINILM)
    assert roster.own_ids([own[:8], own[:9]]) == [own]
    assert {each.producer_id for each in roster.called(own)} == {
        making.MINILM.producer_id, other.producer_id
    }  # fmt: skip
    with pytest.raises(UnknownNameError, match=f"unknown producer '{other.producer_id}'"):
        roster.called(other.producer_id)
