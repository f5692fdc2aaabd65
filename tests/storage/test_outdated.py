"""Which windows and chunks are outdated by entries that changed: one rule for all that change entries."""

import pyarrow as pa
import pytest

from evicat.schemas.entry import Outcome
from evicat.storage.outdated import READ, changed_entries, outdated
from evicat.storage.tables import COVERAGE, ENTRIES


def windows(kind, *spans, outcome="done", producer="reader", asset="a"):
    """Rows of ``coverage``."""
    facts = {"unit_id": "u", "asset_id": asset, "producer_id": producer, "kind": kind, "outcome": outcome}
    rows = [
        {field.name: 0 if pa.types.is_integer(field.type) or pa.types.is_floating(field.type) else ""
         for field in COVERAGE} | facts | {"start_s": float(start), "end_s": float(end)}
        for start, end in spans
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=COVERAGE)


def entries(*rows):
    schema = pa.schema([ENTRIES.field(name) for name in READ])
    facts = {"asset_id": "a", "producer_id": "source"}
    return pa.Table.from_pylist(
        [facts | {"entry_id": name, "text": text, "start_s": float(start), "end_s": float(end)}
         for name, text, start, end in rows], schema=schema,
    )  # fmt: skip


def change(start, end, *, producer="source", asset="a"):
    return {"asset_id": asset, "producer_id": producer, "start_s": float(start), "end_s": float(end)}


READS = {"reader": ("source", "other")}


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        (change(3, 7), [0.0]),
        (change(8, 12), [0.0, 10.0]),
        (change(10, 20), [10.0]),
        (change(20, 30), []),
        (change(3, 7, producer="other"), [0.0]),
        (change(3, 7, producer="unread"), []),
        (change(3, 7, asset="b"), []),
    ],
)
def test_a_described_window_is_stale_where_a_changed_entry_overlaps_it(changed, stale):
    found = outdated(windows("narrative", (0, 10), (10, 20)), READS, [changed])
    assert found.stale["start_s"].to_pylist() == stale
    assert set(found.stale["outcome"].to_pylist()) <= {"stale"}
    assert found.void.num_rows == 0


@pytest.mark.parametrize(
    ("changed", "void"), [(change(8, 12), [0]), (change(10, 12), [10_000_000]), (change(20, 21), [])]
)
def test_a_chunk_is_void_where_a_changed_entry_begins_in_it(changed, void):
    found = outdated(windows("embedding", (0, 10), (10, 20)), READS, [changed])
    assert found.void["window_start_us"].to_pylist() == void
    assert found.stale.num_rows == 0


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_what_says_what_the_window_held_becomes_stale(outcome):
    found = outdated(windows("narrative", (0, 10), outcome=outcome.value), READS, [change(0, 10)])
    assert bool(found.stale.num_rows) == (outcome in (Outcome.DONE, Outcome.PARTIAL, Outcome.EMPTY))


def test_a_window_of_a_producer_that_reads_nothing_stays():
    found = outdated(windows("local", (0, 10), producer="alone"), READS, [change(0, 10)])
    assert found.stale.num_rows == found.void.num_rows == 0


@pytest.mark.parametrize(
    ("before", "after", "spans"),
    [
        ([("e", "x", 0, 5)], [("e", "x", 0, 5)], []),
        ([("e", "x", 0, 5)], [("e", "y", 0, 5)], [(0, 5), (0, 5)]),
        ([("e", "x", 0, 5)], [("e", "x", 0, 6)], [(0, 5), (0, 6)]),
        ([("e", "x", 0, 5)], [], [(0, 5)]),
        ([], [("e", "x", 0, 5)], [(0, 5)]),
    ],
)
def test_an_entry_changes_with_its_text_and_its_times(before, after, spans):
    found = changed_entries(entries(*before), entries(*after))
    assert [(row["start_s"], row["end_s"]) for row in found] == spans
