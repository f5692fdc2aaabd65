"""What an earlier head still holds of producers, made fit to stand beside what the tables hold now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.entry import Outcome
from evicat.schemas.errors import IntegrityError
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.span import to_us

from .head import Head, earlier_heads
from .layout import Layout
from .ledger import UnitState, unit_rows
from .reader import Reader
from .rows import Row
from .snapshots import check_versions, snapshots
from .sql import sql_in
from .tables import COVERAGE, EMBEDDING, UNITS, VECTORS
from .transact import Tables, distinct

_MEANING = ["entry_id", "text", "start_s", "end_s"]
"""Columns of an entry that its vectors and its readers depend on."""
_READ = ["asset_id", "producer_id", "start_s", "end_s"]
"""Columns of an entry that tell who read it."""
_MAY_BE_STALE = (Outcome.DONE, Outcome.PARTIAL, Outcome.EMPTY)
Spans = dict[tuple[str, str], list[tuple[float, float]]]
"""Spans by asset and producer."""


@dataclass(frozen=True)
class Held:
    """Units that an earlier head holds and the tables do not."""

    reader: Reader
    units: pa.Table
    made: frozenset[str]
    """Producers that had units at that head."""

    @property
    def number(self) -> int:
        return self.reader.version


def newest_holding(layout: Layout, tables: Tables, producers: Collection[str]) -> Held | None:
    """The newest head, also of a snapshot, with units of these producers that the tables lack."""
    present = distinct(tables.find("units", "producer_id", sorted(producers), ["unit_id"])["unit_id"])
    seen = {tables.head.tables["units"]}
    for head in _heads(layout):
        if head.tables["units"] in seen:
            continue
        seen.add(head.tables["units"])
        with suppress(IntegrityError):  # its versions were cleaned up
            reader = Reader(layout, head)
            units = reader.dataset("units").to_table(columns=UNITS.names)
            own = units.filter(_among(units["producer_id"], producers))
            lacking = own.filter(pc.invert(_among(own["unit_id"], present)))
            if lacking.num_rows:
                check_versions(reader, f"head {head.number}")
                return Held(reader, lacking, frozenset(distinct(units["producer_id"])))
    return None


def _heads(layout: Layout) -> Iterator[Head]:
    """Newest first; what only a snapshot keeps is older than all that is kept for its age."""
    yield from earlier_heads(layout)
    yield from sorted((each.head for each in snapshots(layout)), key=lambda head: -head.number)


def gather(held: Held, tables: Tables, producers: dict[str, Producer]) -> dict[str, pa.Table]:
    """Rows to add, by table. Windows that read what has changed since are stale; vectors of it stay away."""
    unit_ids = distinct(held.units["unit_id"])
    coverage = _rows(held.reader, "coverage", "unit_id", unit_ids)
    entries = _rows(held.reader, "entries", "unit_id", unit_ids)
    changed = _changed(held.reader, tables, producers, entries)
    outdated = _outdated(coverage, producers, changed)
    void = {row["unit_id"] for row in outdated if row["kind"] == EMBEDDING}
    void |= _orphans(held, tables, producers)
    coverage = coverage.filter(pc.invert(_among(coverage["unit_id"], void)))
    units = held.units.filter(pc.invert(_among(held.units["unit_id"], void)))
    stale = {(row["unit_id"], row["start_s"]) for row in outdated if row["kind"] != EMBEDDING}
    if stale:
        units, coverage = _with_stale(units, coverage, stale)
    rows = {"units": units, "coverage": coverage, "entries": entries}
    kept = distinct(units["unit_id"])
    for name in held.reader.names():
        if name.startswith(VECTORS):
            rows[name] = _rows(held.reader, name, "embed_unit_id", kept)
    return rows


def _rows(reader: Reader, table: str, column: str, values: list[str]) -> pa.Table:
    rows: pa.Table = reader.dataset(table).to_table(filter=sql_in(column, values))
    return rows


def _among(column: Any, values: Collection[str]) -> Any:
    return pc.is_in(column, pa.array(sorted(values), pa.string()))


def _changed(then: Reader, tables: Tables, producers: dict[str, Producer], returning: pa.Table) -> Spans:
    """Where entries that these producers read came, went or changed since, once ``returning`` is back."""
    read = sorted({each for producer in producers.values() for each in producer.reads})
    columns = list(dict.fromkeys([*_MEANING, *_READ]))
    before = then.dataset("entries").to_table(columns=columns, filter=sql_in("producer_id", read))
    now = tables.find("entries", "producer_id", read, columns).select(columns)
    returned = returning.filter(_among(returning["producer_id"], read)).select(columns)
    now = pa.concat_tables([now, returned.cast(now.schema)])
    spans: Spans = defaultdict(list)
    for one, other in ((before, now), (now, before)):
        lost = one.join(other.select(_MEANING), keys=_MEANING, join_type="left anti") if one.num_rows else one
        for row in lost.to_pylist():
            spans[row["asset_id"], row["producer_id"]].append((row["start_s"], row["end_s"]))
    return spans


def _outdated(coverage: pa.Table, producers: dict[str, Producer], changed: Spans) -> list[Row]:
    """Coverage rows whose window read something ``changed``."""
    if not changed:
        return []
    found = []
    for row in coverage.select(
        ["unit_id", "asset_id", "producer_id", "kind", "start_s", "end_s"]
    ).to_pylist():
        reads = producers[row["producer_id"]].reads
        spans = [span for read in reads for span in changed.get((row["asset_id"], read), ())]
        if any(start < row["end_s"] and row["start_s"] < end for start, end in spans):
            found.append(row)
    return found


def _orphans(held: Held, tables: Tables, producers: dict[str, Producer]) -> set[str]:
    """Embedding units whose source is neither there nor coming back."""
    there = tables.dataset("units").to_table(columns=["asset_id", "producer_id"]).to_pylist()
    coming = held.units.select(["unit_id", "asset_id", "producer_id", "kind"]).to_pylist()
    sources = {(row["asset_id"], row["producer_id"]) for row in (*there, *coming)}
    return {
        row["unit_id"]
        for row in coming
        if row["kind"] == EMBEDDING
        and not any((row["asset_id"], read) in sources for read in producers[row["producer_id"]].reads)
    }


def _with_stale(
    units: pa.Table, coverage: pa.Table, stale: set[tuple[str, float]]
) -> tuple[pa.Table, pa.Table]:
    """Units and coverage after these windows, by unit and start, have become stale."""
    rows = coverage.to_pylist()
    for row in rows:
        if (row["unit_id"], row["start_s"]) in stale and Outcome(row["outcome"]) in _MAY_BE_STALE:
            row["outcome"] = Outcome.STALE.value
    coverage = pa.Table.from_pylist(rows, schema=COVERAGE)
    ends: dict[str, float] = {}
    for row in rows:
        ends[row["unit_id"]] = max(row["end_s"], ends.get(row["unit_id"], 0.0))
    states = [
        UnitState(
            Unit(**{name: row[name] for name in Unit.model_fields}),
            row["run_id"],
            to_us(ends.get(row["unit_id"], 0.0)) if row["complete"] else None,
        )
        for row in units.to_pylist()
    ]
    return unit_rows(states, coverage), coverage
