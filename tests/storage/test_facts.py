"""What is kept in memory of the small tables says the same as the tables."""

from __future__ import annotations

import pytest

from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import Span
from evicat.storage.facts import Facts
from evicat.storage.reader import Reader
from evicat.storage.store import Store

ROOT = Root("root", "folder", "/films")
STAMP = FileStamp(size_bytes=9, mtime_ns=2**62, ctime_ns=3, inode=4)
WHOLE = VideoName("root", "a.mp4", "asset-1", "a.mp4", STAMP)
CUT = VideoName("root", "cut", "asset-2", "a.mp4", STAMP, clip=Span(5, 9), benchmark="b", split="test")


@pytest.fixture
def facts(making, catalog) -> Facts:
    """Read back from a catalog with a producer, two names of one file, and a complete unit."""
    unit = making.unit()
    with Store.connect(catalog, write=True) as store:
        store.add_producer(making.SIGHT)
        store.add_root(ROOT)
        store.add_name(WHOLE)
        store.add_name(CUT)
        store.open(unit)
        store.write(unit, making.done(unit, 0))
        store.close(unit, complete=True)
    return Facts(Reader.open(catalog))


def test_values_come_back_as_they_were(making, facts):
    assert facts.roots() == [ROOT]
    assert facts.names() == [WHOLE, CUT]
    assert facts.producer(making.SIGHT.producer_id) == making.SIGHT


@pytest.mark.parametrize("name", [WHOLE, CUT], ids=["whole", "cut"])
def test_a_row_that_is_stored_is_held_word_for_word(facts, name):
    assert facts.holds("names", name.row())
    assert not facts.holds("names", name.row() | {"split": "other"})


def test_a_file_and_a_cut_of_it_are_told_apart_and_a_touched_file_is_unknown(facts):
    assert facts.known_asset_id("root", "a.mp4", STAMP, None) == "asset-1"
    assert facts.known_asset_id("root", "a.mp4", STAMP, Span(5, 9)) == "asset-2"
    assert facts.known_asset_id("root", "a.mp4", STAMP, Span(5, 8)) is None
    for field in STAMP._fields:
        touched = STAMP._replace(**{field: 77})
        assert facts.known_asset_id("root", "a.mp4", touched, None) is None, field


def test_completeness_goes_by_producer_and_inputs(making, facts):
    unit = making.unit()
    assert facts.knows(unit)
    assert facts.has(unit.asset_id, {unit.producer_id: ""})
    assert not facts.has(unit.asset_id, {unit.producer_id: "other"})
    assert not facts.has(unit.asset_id, {unit.producer_id: "", "another producer": ""})
    assert not facts.knows(making.unit("two"))


def test_what_is_not_committed_yet_survives_a_reload(making, facts, catalog):
    unit = making.unit("two")
    facts.note_unit(unit, complete=True)
    facts.load(Reader.open(catalog))
    assert facts.is_complete(unit)
    facts.settle(facts.fresh_count())
    facts.load(Reader.open(catalog))
    assert not facts.knows(unit)
