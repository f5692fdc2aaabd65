"""Moments, relations in time, and pairs."""

import polars as pl
import pytest

from evicat.catalog.reading.columns import HIT_SCHEMA, MOMENT_SCHEMA, RELATED_SCHEMA
from evicat.catalog.reading.hits import moments, related, together
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)


GIVEN = ("entry_id", "video", "asset_id", "start_s", "end_s", "score", "text")


def found(*rows):
    """Hits from ``(asset, start, end, score)``."""
    frame = pl.DataFrame(
        [
            {"entry_id": f"{asset}.{start}.{number}", "video": f"{asset}.mp4", "asset_id": asset,
             "start_s": float(start), "end_s": float(end), "score": score, "text": f"{asset} {start}"}
            for number, (asset, start, end, score) in enumerate(rows)
        ],
        schema={name: HIT_SCHEMA[name] for name in GIVEN},
    )  # fmt: skip
    missing = [
        pl.lit(None, kind).alias(name) for name, kind in HIT_SCHEMA.items() if name not in frame.columns
    ]
    return frame.with_columns(missing).select(HIT_SCHEMA.names())


def spans(frame):
    return frame.select("asset_id", "start_s", "end_s").rows()


def test_what_touches_or_overlaps_is_one_moment_and_the_best_of_it_counts():
    made = moments(found(("a", 0, 10, 0.2), ("a", 10, 20, 0.9), ("a", 15, 18, 0.1), ("b", 10, 20, 0.5)))
    assert spans(made) == [("a", 0.0, 20.0), ("b", 10.0, 20.0)]
    assert made["score"].to_list() == [0.9, 0.5]
    assert made["text"].to_list() == ["a 10", "b 10"]
    assert made["entry_ids"].list.len().to_list() == [3, 1]


def test_a_long_hit_bridges_what_lies_within_it():
    assert spans(moments(found(("a", 0, 100, 0.2), ("a", 10, 20, 0.9), ("a", 90, 110, 0.1)))) == [
        ("a", 0.0, 110.0)
    ]


def test_a_gap_may_be_allowed():
    two = found(("a", 0, 10, 0.2), ("a", 12, 20, 0.9))
    assert len(moments(two)) == 2
    assert spans(moments(two, gap_s=2)) == [("a", 0.0, 20.0)]
    with pytest.raises(UsageError, match="at least 0"):
        moments(two, gap_s=-1)


def test_nothing_gives_nothing_of_the_same_schema():
    assert moments(found()).schema == MOMENT_SCHEMA
    assert related(found(), found(), "after").schema == RELATED_SCHEMA
    assert together(found(), found(), 5).schema == RELATED_SCHEMA


@pytest.mark.parametrize(
    ("relation", "starts"), [("before", [0, 5]), ("after", [20, 40]), ("during", [12]), ("overlaps", [8, 12])]
)
def test_relations_are_those_of_half_open_spans(relation, starts):
    anchor = found(("a", 10, 20, None))
    hits = found(
        ("a", 0, 5, None), ("a", 5, 10, None), ("a", 8, 11, None), ("a", 12, 15, None), ("a", 20, 30, None),
        ("a", 40, 50, None), ("b", 12, 15, None),
    )  # fmt: skip
    assert sorted(related(anchor, hits, relation)["start_s"]) == starts


def test_the_gap_is_told_and_bounded():
    anchor, hits = (
        found(("a", 10, 20, None)),
        found(("a", 20, 30, None), ("a", 29, 31, None), ("a", 31, 33, None)),
    )
    near = related(anchor, hits, "after", 10)
    assert near.select("start_s", "gap_s").rows() == [(20.0, 0.0), (29.0, 9.0)]
    assert near["anchor_start_s"].to_list() == [10.0, 10.0]


def test_a_hit_stands_in_no_relation_to_itself():
    hits = found(("a", 0, 10, None), ("a", 5, 15, None))
    assert len(related(hits, hits, "overlaps")) == 2


def test_two_things_happen_together_within_a_span():
    cars, doors = found(("a", 0, 4, None), ("a", 60, 64, None)), found(("a", 6, 8, None), ("a", 2, 3, None))
    pairs = together(cars, doors, 8)
    assert pairs.select("anchor_start_s", "start_s").rows() == [(0.0, 2.0), (0.0, 6.0)]
    assert together(cars, doors, 7).select("start_s").rows() == [(2.0,)]


def test_unknown_relations_and_negative_distances_are_told():
    with pytest.raises(UnknownNameError, match=r"relation 'near'.*before"):
        related(found(), found(), "near")
    with pytest.raises(UsageError, match="at least 0"):
        related(found(), found(), "after", -1)


def test_what_is_seen_within_ten_seconds_of_what_is_said(shelf):
    shelf.write("a.mp4", SPEECH, [(12, 15, "mind the gap"), (70, 72, "mind the gap")])
    shelf.write("a.mp4", LOCAL, [(at, at + 10, f"picture {at}") for at in range(0, 100, 10)])
    catalog = shelf.catalog
    said = catalog.occurrences("mind gap", kind="speech")
    assert said["start_s"].to_list() == [12.0, 70.0]
    seen = catalog.related(said, catalog.entries(kind="local"), "after", within=10)
    assert seen.select("anchor_start_s", "text").rows() == [
        (12.0, "picture 20"), (70.0, "picture 80"),
    ]  # fmt: skip
    assert catalog.together(said, catalog.entries(kind="local"), within=10)["text"].to_list() == [
        "picture 10", "picture 70",
    ]  # fmt: skip
