"""Views: what is shown, and the interventions that are made of citations."""

import polars as pl
import pytest

from evicat.catalog.reading.views import matched_removal
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
NEWER = Producer(kind="local", scale="local-10s", component="words", version=2)
NARRATIVE = Producer(kind="narrative", scale="narrative-30s", component="tales", version=1)


def test_the_view_without_narratives_and_the_one_with_them(shelf):
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    shelf.write("a.mp4", NARRATIVE, [(0, 30, "Cars pass.")])
    catalog = shelf.catalog
    assert set(catalog.entries()["kind"]) == {"local", "narrative"}
    assert set(catalog.view("w/o narrative").entries()["kind"]) == {"local"}
    assert set(catalog.view("+narrative").entries()["kind"]) == {"local", "narrative"}
    assert catalog.view("w/o narrative").search("cars", mode="text").is_empty()
    assert catalog.view("default").entries().equals(catalog.entries())


def test_a_view_shows_one_producer_of_each_kind_and_scale(shelf):
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    shelf.write("a.mp4", NEWER, [(0, 10, "a crimson car")])
    catalog = shelf.catalog
    assert catalog.entries()["text"].to_list() == ["a red car"]
    assert catalog.entries(producer=NEWER.producer_id[:8])["text"].to_list() == ["a crimson car"]
    assert catalog.scan().select("text").collect()["text"].to_list() == ["a red car"]


def test_an_unknown_view_is_told_with_the_known(shelf):
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    with pytest.raises(UnknownNameError, match=r"view 'best'.*default.*w/o narrative"):
        shelf.catalog.view("best")


def entries(*rows):
    return pl.DataFrame(
        [
            {
                "entry_id": name,
                "asset_id": "a",
                "start_s": float(start),
                "end_s": float(end),
                "text": "x" * length,
            }
            for name, start, end, length in rows
        ]
    )


def test_a_random_removal_is_like_what_was_cited():
    even = [(f"short{n}", n * 10, n * 10 + 10, 100) for n in range(20)]
    odd = [(f"long{n}", n * 100, n * 100 + 100, 1000) for n in range(20)]
    shown = entries(*even, *odd)
    chosen = matched_removal(shown, ["short3", "long4"], seed=7)
    assert len(chosen) == 2
    assert sum(name.startswith("long") for name in chosen) == 1
    assert matched_removal(shown, ["short3", "long4"], seed=7) == chosen
    assert len({tuple(matched_removal(shown, ["short3", "long4"], seed=seed)) for seed in range(5)}) > 1


def test_a_removal_needs_citations_that_are_shown():
    shown = entries(("e", 0, 1, 5))
    with pytest.raises(UsageError, match="nothing to match"):
        matched_removal(shown, [], seed=0)
    with pytest.raises(UsageError, match="ghost is cited"):
        matched_removal(shown, ["ghost"], seed=0)


def test_removals_go_on_from_one_another(shelf):
    ids = shelf.write("a.mp4", LOCAL, [(at, at + 10, f"text {at}") for at in range(0, 50, 10)])
    catalog = shelf.catalog
    assert len(catalog.without(ids[:1]).without(ids[1:2]).entries()) == 3
    assert catalog.only(ids[:2]).without(ids[:1]).entries()["entry_id"].to_list() == ids[1:2]
    random = catalog.without_random(ids[:2], seed=1)
    assert len(random.entries()) == 3
    assert random.entries().equals(catalog.without_random(ids[:2], seed=1).entries())
