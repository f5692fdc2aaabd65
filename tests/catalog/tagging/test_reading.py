"""Tags in queries: filters, counts, what comes together, and ids that changed."""

from __future__ import annotations

import pytest

from evicat.catalog.reading.columns import COUNT_SCHEMAS, TAG_SCHEMA, TOGETHER_SCHEMA
from evicat.catalog.tagging.fields import FieldTagger
from evicat.schemas.errors import UnknownNameError, UsageError

from .library import KITCHEN, PLACES, SPEECH, STREET, Library, factor, vocabulary

FIELDS = FieldTagger()


@pytest.fixture
def tagged(library: Library) -> Library:
    library.tag(FIELDS, PLACES)
    return library


@pytest.mark.parametrize(
    ("factors", "texts"),
    [
        ("place:kitchen", ["A kitchen.", "A kitchen on a street."]),
        ("place:kitchen and place:street", ["A kitchen on a street."]),
        (["place:kitchen", "place:street"], ["A kitchen on a street."]),
        ("place:kitchen and not place:street", ["A kitchen."]),
        ("not (place:kitchen or place:street)", ["Nothing of note."]),
    ],
)
def test_entries_are_filtered(tagged: Library, factors: str | list[str], texts: list[str]) -> None:
    found = tagged.catalog.entries("a.mp4", factors=factors)
    assert found["text"].to_list() == texts
    limited = tagged.catalog.entries("a.mp4", factors=factors, limit=1)
    assert limited["text"].to_list()[0] in texts
    assert len(limited) == 1


def test_a_search_is_filtered_too(tagged: Library) -> None:
    found = tagged.catalog.search("kitchen", mode="text", factors="not place:street", video="a.mp4")
    assert found["text"].to_list() == ["A kitchen."]


def test_a_factor_of_the_vocabulary_that_nothing_carries_finds_nothing(library: Library) -> None:
    library.tag(FIELDS, vocabulary(KITCHEN, factor("space")))
    assert library.catalog.entries(factors="place:space").is_empty()
    with pytest.raises(UnknownNameError, match=r"factor 'place:spade'; known: .*place:space"):
        library.catalog.entries(factors="place:spade")


def test_tags_have_their_schema_whatever_matched(tagged: Library) -> None:
    catalog = tagged.catalog
    assert (
        catalog.tags().schema == catalog.tags(factor="place:street", verdict="abstained").schema == TAG_SCHEMA
    )
    assert len(catalog.tags(verdict="yes")) == 6
    assert catalog.tags("b.mp4", between=(0, 5))["factor_id"].to_list() == ["place:kitchen"]
    with pytest.raises(UnknownNameError, match="verdict 'no'; known: abstained, yes"):
        catalog.tags(verdict="no")
    with pytest.raises(UnknownNameError, match="factor 'x'"):
        catalog.tags(factor="x")


def test_counts(tagged: Library) -> None:
    catalog = tagged.catalog
    assert catalog.factor_counts().rows() == [("place:kitchen", 3, 30.0), ("place:street", 3, 30.0)]
    by_video = catalog.factor_counts("video").drop("asset_id")
    assert by_video.rows() == [
        ("a.mp4", "place:kitchen", 2, 20.0),
        ("a.mp4", "place:street", 2, 20.0),
        ("b.mp4", "place:kitchen", 1, 10.0),
        ("b.mp4", "place:street", 1, 10.0),
    ]
    by_time = catalog.factor_counts("time", bin_seconds=20, video="a.mp4")
    assert by_time.select("bin_s", "factor", "entries").rows() == [
        (0.0, "place:kitchen", 1),
        (0.0, "place:street", 1),
        (20.0, "place:kitchen", 1),
        (20.0, "place:street", 1),
    ]
    for by, schema in COUNT_SCHEMAS.items():
        assert catalog.factor_counts(by, text="no such text").schema == schema
    with pytest.raises(UnknownNameError, match="way to count by 'day'"):
        catalog.factor_counts("day")
    with pytest.raises(UsageError, match="bin_seconds must be above 0"):
        catalog.factor_counts("time", bin_seconds=0)
    with pytest.raises(UsageError, match="bin_seconds must be above 0 and finite"):
        catalog.factor_counts("time", bin_seconds=float("inf"))


def test_a_second_that_several_entries_cover_counts_once(tagged: Library) -> None:
    tagged.write("a.mp4", ["A kitchen, said."], producer=SPEECH)
    tagged.tag(FIELDS, PLACES)
    by_video = tagged.catalog.factor_counts("video").filter(factor="place:kitchen").drop("asset_id")
    assert by_video.rows() == [("a.mp4", "place:kitchen", 3, 20.0), ("b.mp4", "place:kitchen", 1, 10.0)]
    assert ("place:kitchen", 4, 30.0) in tagged.catalog.factor_counts().rows()


def test_what_comes_together(tagged: Library) -> None:
    found = tagged.catalog.cooccurrence()
    assert found.schema == TOGETHER_SCHEMA
    ((first, second, entries, share, lift),) = found.rows()
    assert (first, second, entries) == ("place:kitchen", "place:street", 1)
    assert share == pytest.approx(1 / 5)
    assert lift == pytest.approx(6 / 9), "of six entries, three have the one and three the other"
    assert tagged.catalog.cooccurrence(video="b.mp4").is_empty()


class TestMigrated:
    """What a vocabulary was renamed to finds what was tagged before."""

    def moved(self, change: str, old: list[str], *factors: dict, new: list[str]):
        migration = {"since": 2, "change": change, "old": old, "new": new}
        return vocabulary(*factors, version=2, migrations=[migration])

    def test_renamed(self, tagged: Library) -> None:
        cookery = factor("cookery", words=["no such word"])
        words = self.moved("rename", ["place:kitchen"], cookery, STREET, new=["place:cookery"])
        tagged.tag(FIELDS, words)
        catalog = tagged.catalog
        assert len(catalog.entries(factors="place:cookery")) == 3
        assert len(catalog.entries(factors="place:kitchen")) == 3, "old tags stay readable"
        assert set(catalog.tags(factor="place:cookery")["factor_id"]) == {"place:kitchen"}
        assert catalog.factor_counts()["factor"].to_list() == ["place:cookery", "place:street"]
        assert catalog.vocabularies()["version"].to_list() == [1, 2]

    def test_merged_with_new_tags_each_entry_counts_once(self, tagged: Library) -> None:
        anywhere = factor("anywhere", words=["kitchen"])
        words = self.moved("merge", ["place:kitchen", "place:street"], anywhere, new=["place:anywhere"])
        tagged.tag(FIELDS, words)
        catalog = tagged.catalog
        assert len(catalog.entries(factors="place:anywhere")) == 5
        assert catalog.factor_counts().rows() == [("place:anywhere", 5, 50.0)]
        assert catalog.cooccurrence().is_empty()

    def test_split_maps_to_nothing_by_itself(self, tagged: Library) -> None:
        galley, bar = factor("galley", words=["x"]), factor("bar", words=["y"])
        words = self.moved("split", ["place:kitchen"], galley, bar, new=["place:galley", "place:bar"])
        tagged.tag(FIELDS, words)
        catalog = tagged.catalog
        assert catalog.entries(factors="place:galley or place:bar").is_empty()
        assert len(catalog.entries(factors="place:kitchen")) == 3
        assert catalog.split_factors() == {"place:kitchen": ("place:galley", "place:bar")}
