"""The cast of a video as a frame, read from what its narratives hold."""

import polars as pl

from evicat.catalog.cast import CAST_SCHEMA, cast_frame
from evicat.catalog.describers.cast import Seen, running_cast
from evicat.schemas.records import NarrativeRecord
from evicat.schemas.span import US, Span

COLUMNS = ["entry_id", "scale", "producer_id", "start_s", "end_s", "record"]


def told(*windows, most=20, producer="p"):
    """Narratives of 30 s each, one for every list of those seen; ``None``: that window has no narrative."""
    rows, cast = [], ()
    for number, seen in enumerate(windows):
        span = Span(number * 30 * US, (number + 1) * 30 * US)
        if seen is None:
            continue
        cast = running_cast(cast, seen, span, most)
        record = NarrativeRecord(narrative="x", cast=cast).model_dump_json()
        rows.append((f"e{number}", "narrative-30s", producer, span.start_s, span.end_s, record))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def summary(frame):
    return frame.select("identity", "first_seen_s", "last_seen_s", "formerly", "entries").rows()


def test_everybody_has_one_row_with_first_and_last_time_and_former_names():
    narratives = told(
        [Seen("the visitor", "a red coat"), Seen("Eve", "")],
        [Seen("Eve", "red hair")],
        [Seen("Paul", "", "the visitor")],
        [Seen("Paul", "a torn red coat")],
    )
    frame = cast_frame(narratives.sample(fraction=1, shuffle=True, seed=1))
    assert summary(frame) == [
        ("Eve", 0.0, 60.0, [], ["e0", "e1"]),
        ("Paul", 0.0, 120.0, ["the visitor"], ["e0", "e2", "e3"]),
    ]
    assert frame["descriptor"].to_list() == ["red hair", "a torn red coat"]


def test_who_left_a_full_cast_and_comes_back_is_the_same():
    narratives = told([Seen("Eve", "")], [Seen("Paul", "")], None, [Seen("Eve", "")], most=1)
    assert summary(cast_frame(narratives)) == [
        ("Eve", 0.0, 120.0, [], ["e0", "e3"]),
        ("Paul", 30.0, 60.0, [], ["e1"]),
    ]


def test_producers_have_casts_of_their_own():
    both = pl.concat([told([Seen("Eve", "")]), told([Seen("eve", "")], producer="q")])
    assert cast_frame(both)["identity"].to_list() == ["Eve", "eve"]


def test_without_narratives_the_frame_has_its_columns():
    empty = cast_frame(told())
    assert (empty.schema, len(empty)) == (CAST_SCHEMA, 0)
