"""What callers hand in: numpy's, polars' and paths are taken; what does not fit is told, never ignored."""

from pathlib import PurePath

import numpy as np
import polars as pl
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import Producer

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory, making_shelf):
    shelf = making_shelf(tmp_path_factory.mktemp("arguments") / "catalog")
    shelf.write("a/b.mp4", LOCAL, [(0, 10, "a red car"), (10, 20, "Ὀδυσσεύς, İstanbul, STRASSE")])
    return shelf.catalog


@pytest.mark.parametrize(
    "video", [["a/b.mp4"], ("b.mp4",), np.array(["b.mp4"]), pl.Series(["b.mp4"]), PurePath("a", "b.mp4")]
)
def test_names_come_in_any_collection_or_as_a_path(catalog, video):
    assert len(catalog.entries(video)) == 2


def test_numbers_may_be_those_of_numpy(catalog):
    assert len(catalog.search("car", mode="text", limit=np.int64(1), per_video=np.int32(1))) == 1
    assert len(catalog.entries(between=np.array([0, 5]))) == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: c.entries(3), "video must be a text, or several, got 3"),
        (lambda c: c.entries([None]), "video must be a text, got None"),
        (lambda c: c.entries(kind=b"local"), "kind must be a text"),
        (lambda c: c.entries(producer=3), "producer must be a text"),
        (lambda c: c.entries(text=["car"]), "text must be a text"),
        (lambda c: c.entries(between=(0, 10**400)), "between"),
        (lambda c: c.search(None), "query must be a text, got None"),
        (lambda c: c.search("car", mode="text", limit=2.5), "limit must be a whole number from 1 to 10000"),
        (lambda c: c.moments("car", limit=0), "limit must be from 1 to 10000, got 0"),
        (lambda c: c.search("car", mode="text", per_video=float("nan")), "per_video must be a whole number"),
        (lambda c: c.moments("car", mode="text", gap=float("nan")), "gap must be at least 0 seconds"),
        (lambda c: c.together(c.entries(), c.entries(), within=-1), "within must be at least 0 seconds"),
        (lambda c: c.related(c.entries(), c.entries(), "after", within=float("nan")), "within must be"),
        (lambda c: c.related(c.moments("car", mode="text"), c.entries(), "after"), "related to entries"),
        (lambda c: c.entry(None), "entry must be a text"),
    ],
)
def test_what_does_not_fit_is_told_by_its_name(catalog, call, said):
    with pytest.raises(UsageError, match=said):
        call(catalog)


@pytest.mark.parametrize("intervention", ["only", "without"])
def test_one_entry_id_alone_is_not_taken_for_its_letters(catalog, intervention):
    one = catalog.entries()["entry_id"][0]
    with pytest.raises(UsageError, match="must be a list"):
        getattr(catalog, intervention)(one)


def test_a_head_may_be_named_by_its_number(catalog):
    assert Catalog.open(catalog._uri, at=catalog.version).version == catalog.version


@pytest.mark.parametrize("part", ["ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς", "Σ", "İSTANBUL", "i̇stanbul", "strasse"])
def test_letters_of_any_script_are_looked_for_in_any_case(catalog, part):
    assert catalog.entries(text=part)["start_s"].to_list() == [10.0]
