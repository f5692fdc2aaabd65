"""What is outdated where entries came, went, or changed their text or time.

An embedded chunk is void, vectors and coverage, if such an entry begins in it: vectors never outlive what
they embed. So are the supports of an asset. A described window is stale if such an entry overlaps it, and
keeps its own entries until it is made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from evicat.schemas.entry import Outcome
from evicat.schemas.span import to_us

from .rows import Row
from .tables import COVERAGE, DERIVED, WINDOWS
from .transact import join

MEANING = ["entry_id", "text", "start_s", "end_s"]
"""Columns of an entry that its vectors and its readers depend on."""
_READ = ["asset_id", "producer_id", "start_s", "end_s"]
"""Columns of an entry that tell who read it."""
READ = list(dict.fromkeys([*MEANING, *_READ]))
"""Columns of entries that :func:`changed_entries` compares."""


@dataclass(frozen=True)
class Outdated:
    """What is to be made again."""

    stale: pa.Table
    """Rows of ``coverage``, marked as stale."""
    void: pa.Table
    """Embedded chunks and results of support units, as ``WINDOWS``."""


def changed_entries(before: pa.Table, after: pa.Table) -> list[Row]:
    """Asset, producer and span of the entries that differ; of one that was moved, both spans."""
    before, after = (entries.select(READ) for entries in (before, after))
    found = (join(one, other, MEANING, "left anti") for one, other in ((before, after), (after, before)))
    return [row for entries in found for row in entries.select(_READ).to_pylist()]


def outdated(windows: pa.Table, reads: Mapping[str, Sequence[str]], changed: Iterable[Row]) -> Outdated:
    """What of ``windows``, rows of ``coverage``, read a ``changed`` entry.

    Args:
        reads: By producer of a window, the producers that it reads.
    """
    spans: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in changed:
        spans[row["asset_id"], row["producer_id"]].append((row["start_s"], row["end_s"]))
    stale: list[Row] = []
    void = []
    for row in windows.to_pylist() if spans else ():
        sources = [(row["asset_id"], source) for source in reads.get(row["producer_id"], ())]
        read = [span for source in sources for span in spans.get(source, ())]
        if row["kind"] in DERIVED:
            if any(row["start_s"] <= start < row["end_s"] for start, _ in read):
                void.append({"unit_id": row["unit_id"], "window_start_us": to_us(row["start_s"])})
        elif any(start < row["end_s"] and row["start_s"] < end for start, end in read):
            stale.append(row)
    return Outdated(as_stale(stale), pa.Table.from_pylist(void, schema=WINDOWS))


def as_stale(windows: Iterable[Row]) -> pa.Table:
    """Rows of ``coverage``, marked as stale; without those whose outcome stays what it is."""
    rows = [
        {name: row[name] for name in COVERAGE.names} | {"outcome": Outcome.STALE.value}
        for row in windows
        if Outcome(row["outcome"]).may_be_stale
    ]
    return pa.Table.from_pylist(rows, schema=COVERAGE)
