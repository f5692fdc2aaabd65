"""What earlier heads still hold of producers, made fit to stand beside what the tables hold now.

A unit comes back whole, from one head. So what its own windows were told of each other still holds, and
only what it read of other units may have changed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.errors import CatalogError, IntegrityError
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.span import to_us

from .head import Head, earlier_heads
from .layout import Layout
from .ledger import UnitState, to_microseconds, unit_rows
from .outdated import READ, changed_entries, outdated
from .reader import Reader
from .snapshots import check_schema, check_versions, snapshots
from .sql import sql_in
from .tables import COVERAGE, DERIVED, ENTRIES, UNITS, holds_derived, table_spec
from .transact import Tables, distinct, join


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

    def rows(self, table: str, column: str, values: Collection[str]) -> pa.Table:
        found: pa.Table = self.reader.dataset(table).to_table(filter=sql_in(column, sorted(values)))
        return found


def newest_holding(layout: Layout, tables: Tables, wanted: Mapping[str, Collection[str]]) -> dict[str, Held]:
    """The newest head, also of a snapshot, that holds units which the tables lack, for each of ``wanted``.

    Args:
        wanted: Producers, by what they are wanted as. What no head holds more of is not in the answer.
    """
    producers = sorted({producer for each in wanted.values() for producer in each})
    present = distinct(tables.find("units", "producer_id", producers, ["unit_id"])["unit_id"])
    seen = {tables.head.tables["units"]}
    found: dict[str, Held] = {}
    for head in _heads(layout):
        if len(found) == len(wanted):
            break
        if head.tables["units"] in seen:
            continue
        seen.add(head.tables["units"])
        with suppress(IntegrityError):  # its versions were cleaned up
            reader = Reader(layout, head)
            units = _as(UNITS, reader.dataset("units").to_table())
            made = frozenset(distinct(units["producer_id"]))
            lacking = _without(units, "unit_id", present)
            rest = {name: each for name, each in wanted.items() if name not in found}
            held = {name: Held(reader, _only(lacking, "producer_id", rest[name]), made) for name in rest}
            held = {name: each for name, each in held.items() if each.units.num_rows}
            if held:
                check_versions(reader, f"head {head.number}")
            found |= held
    return found


def _heads(layout: Layout) -> Iterator[Head]:
    """Newest first; what only a snapshot keeps is older than all that is kept for its age."""
    yield from earlier_heads(layout)
    for snapshot in sorted(snapshots(layout), key=lambda each: -each.head.number):
        with suppress(CatalogError):  # kept by a migration: its tables lack columns
            check_schema(snapshot)
            yield snapshot.head


def each_once(found: Collection[Held]) -> list[Held]:
    """The same units, newest head first: of a unit that several hold, the newest counts."""
    taken: set[str] = set()
    kept = []
    for held in sorted(found, key=lambda each: -each.number):
        units = _without(held.units, "unit_id", taken)
        taken.update(distinct(units["unit_id"]))
        if units.num_rows:
            kept.append(Held(held.reader, units, held.made))
    return kept


def gather(found: Sequence[Held], tables: Tables, producers: Mapping[str, Producer]) -> dict[str, pa.Table]:
    """Rows to add, by table. Windows that read what has changed since are stale; what is derived stays away.

    Args:
        found: Each unit once.
        producers: Whose units these are, by id.
    """
    entries = [each.rows("entries", "unit_id", distinct(each.units["unit_id"])) for each in found]
    returning = pa.concat_tables([_as(ENTRIES, each) for each in (ENTRIES.empty_table(), *entries)])
    sources = _sources(found, tables)
    parts: dict[str, list[pa.Table]] = {
        "units": [UNITS.empty_table()], "coverage": [COVERAGE.empty_table()], "entries": [returning]
    }  # fmt: skip
    for held in found:
        for name, rows in _fit(held, tables, producers, returning, sources).items():
            parts.setdefault(name, []).append(rows)
    return {name: pa.concat_tables(rows) for name, rows in parts.items()}


def _fit(
    held: Held,
    tables: Tables,
    producers: Mapping[str, Producer],
    returning: pa.Table,
    sources: set[tuple[str, str]],
) -> dict[str, pa.Table]:
    """Units, coverage, vectors and supports of one head, without what is outdated."""
    orphans = _orphans(held.units, producers, sources)
    units = _without(held.units, "unit_id", orphans)
    before = _as(COVERAGE, held.rows("coverage", "unit_id", distinct(units["unit_id"])))
    reads = {producer_id: producer.reads for producer_id, producer in producers.items()}
    changed = changed_entries(*_then_and_now(held, tables, reads, returning))
    found = outdated(before, reads, changed)
    stale = found.stale.select(["unit_id"]).append_column(
        "window_start_us", to_microseconds(found.stale["start_s"])
    )
    gone = pa.concat_tables([found.void, stale.cast(found.void.schema)])
    starts = to_microseconds(before["start_s"])
    coverage = pa.concat_tables([_without_windows(before, before["unit_id"], starts, gone), found.stale])
    touched = distinct(gone["unit_id"])
    derived = _derived(_only(units, "unit_id", touched), before, coverage)
    units = pa.concat_tables([_without(units, "unit_id", touched), derived])
    fit = {"units": units, "coverage": coverage}
    for name in held.reader.names():
        if holds_derived(name):
            owner = table_spec(name).lookup
            rows = held.rows(name, owner, distinct(units["unit_id"]))
            fit[name] = _without_windows(rows, rows[owner], rows["window_start_us"], found.void)
    return fit


def _then_and_now(
    held: Held, tables: Tables, reads: Mapping[str, Sequence[str]], returning: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Entries that the units of a head read: as they were then, and as they are with what is returning."""
    own = distinct(held.units["producer_id"])
    read = sorted({each for producer_id in own for each in reads[producer_id]})
    then = held.reader.dataset("entries").to_table(columns=READ, filter=sql_in("producer_id", read))
    now = tables.find("entries", "producer_id", read, READ).select(READ)
    return then, pa.concat_tables([now, _only(returning, "producer_id", read).select(READ).cast(now.schema)])


def _sources(found: Sequence[Held], tables: Tables) -> set[tuple[str, str]]:
    """Asset and producer of every unit that is there or comes back."""
    columns = ["asset_id", "producer_id"]
    there = tables.dataset("units").to_table(columns=columns)
    units = [there, *(each.units.select(columns) for each in found)]
    return {(row["asset_id"], row["producer_id"]) for rows in units for row in rows.to_pylist()}


def _orphans(units: pa.Table, producers: Mapping[str, Producer], sources: set[tuple[str, str]]) -> set[str]:
    """Derived units nothing of whose sources is there or coming back."""
    return {
        row["unit_id"]
        for row in units.select(["unit_id", "asset_id", "producer_id", "kind"]).to_pylist()
        if row["kind"] in DERIVED
        and not any((row["asset_id"], read) in sources for read in producers[row["producer_id"]].reads)
    }


def _derived(units: pa.Table, before: pa.Table, coverage: pa.Table) -> pa.Table:
    """Rows of these units as ``coverage`` makes them; what has none left is as if it was never made."""
    ends = before.group_by("unit_id").aggregate([("end_s", "max")]).to_pylist()
    ends_s = {row["unit_id"]: row["end_s_max"] for row in ends}
    left = set(distinct(coverage["unit_id"]))
    states = [
        UnitState(
            Unit(**{name: row[name] for name in Unit.model_fields}),
            row["run_id"],
            to_us(ends_s[row["unit_id"]]) if row["complete"] else None,
        )
        for row in units.to_pylist()
        if row["unit_id"] in left
    ]
    own = _only(coverage, "unit_id", [state.unit.unit_id for state in states])
    return unit_rows(states, own)


def _without_windows(rows: pa.Table, units: Any, starts_us: Any, windows: pa.Table) -> pa.Table:
    """``rows``, whose unit and start of window stand in two columns, without those of ``windows``."""
    if not windows.num_rows:
        return rows
    places = pa.table(
        {"unit_id": units, "window_start_us": starts_us, "at": pa.array(range(rows.num_rows), pa.int64())}
    )
    kept = join(places, windows, ["unit_id", "window_start_us"], "left anti")["at"]
    return rows.take(kept)


def _only(rows: pa.Table, column: str, values: Collection[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], pa.array(sorted(values), pa.string())))


def _without(rows: pa.Table, column: str, values: Collection[str]) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows[column], pa.array(sorted(values), pa.string()))))


def _as(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Rows in the order of the columns of a schema: a migrated table has its own."""
    return rows.select(schema.names).cast(schema)
