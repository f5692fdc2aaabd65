"""What a batch of staged chunks changes in the tables of entries, windows, units, supports and vectors.

The rules:

- Results replace the stored rows of the same windows of their unit. Where the ``inputs_hash`` of the unit
  changed, all its stored rows go.
- Where an entry of a stored unit comes, goes, or changes its text or time, what read it is outdated. An
  embedded chunk goes, vectors and coverage: it is pending again, and vectors never outlive what they
  embed. So do supports and tags. A described window becomes stale, and keeps its entries until it is made
  again. So does a window that was told of a narrative before it, in its own unit.
- A unit row is derived from what is then in coverage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.errors import IntegrityError
from evicat.schemas.identity import Unit
from evicat.schemas.span import to_us

from .ledger import UnitState, coverage_rows, to_microseconds, unit_rows
from .outdated import READ, Outdated, as_stale, changed_entries, outdated
from .own_past import read_their_past, told_of
from .rows import Row
from .staging import StagedChunk
from .tables import COVERAGE, ENTRIES, SUPPORTS, TAGS, UNITS, VECTORS, WINDOWS, vectors_schema, vectors_table
from .transact import ROW, Tables, distinct, join

_WINDOW = WINDOWS.names


@dataclass(frozen=True)
class Changes:
    """Rows that a table gains, and addresses of those that it loses."""

    new: pa.Table
    doomed: Any = ()


@dataclass
class Stored:
    """Unit and coverage rows, as they are before the batch, of all units that it touches."""

    units: dict[str, Row] = field(default_factory=dict)
    coverage: pa.Table = field(
        default_factory=lambda: _with_window_start(COVERAGE.append(pa.field(ROW, pa.uint64())).empty_table())
    )

    def load(self, tables: Tables, unit_ids: Iterable[str]) -> None:
        missing = sorted(set(unit_ids) - set(self.units))
        found = tables.find("units", "unit_id", missing, UNITS.names).to_pylist()
        self.units |= {row["unit_id"]: row for row in found}
        if found:
            rows = tables.find("coverage", "unit_id", [row["unit_id"] for row in found], COVERAGE.names)
            self.coverage = pa.concat_tables([self.coverage, _with_window_start(rows)])

    def complete_until_us(self, unit_id: str) -> int | None:
        """Where the unit ends, if it is complete."""
        if unit_id not in self.units or not self.units[unit_id]["complete"]:
            return None
        end_s = pc.max(
            self.coverage.filter(pc.equal(self.coverage["unit_id"], pa.scalar(unit_id)))["end_s"]
        ).as_py()
        return 0 if end_s is None else to_us(end_s)


def unit_changes(tables: Tables, chunks: list[StagedChunk]) -> dict[str, Changes]:
    """Changes per table, for chunks none of which touches a window of another.

    Raises:
        IntegrityError: vectors of another length than the table of their embedder.
    """
    new_coverage = pa.concat_tables(
        [coverage_rows(chunk.results, chunk.facts.unit, chunk.facts.run_id) for chunk in chunks]
    )
    new_entries = pa.concat_tables([ENTRIES.empty_table(), *(_nested(chunk, "entries") for chunk in chunks)])
    new_windows = _windows(_with_window_start(new_coverage))
    stored = Stored()
    stored.load(tables, {chunk.facts.unit.unit_id for chunk in chunks})

    void = pa.concat_tables([new_windows, _void_by_inputs(stored, chunks)])
    doomed_entries = _doomed_entries(tables, join(stored.coverage, void, _WINDOW, "left semi"))
    changed = changed_entries(doomed_entries, _of_stored(stored, new_entries.select(["unit_id", *READ])))
    found = _outdated(tables, stored, changed, new_windows)
    later = _told_of_other_narratives(tables, stored, changed, new_coverage)
    later = join(later, found.stale, ["unit_id", "start_s"], "left anti").select(COVERAGE.names)
    stale = pa.concat_tables([found.stale, later.cast(COVERAGE)])
    void = pa.concat_tables([void, found.void, _windows(_with_window_start(stale))])
    new_coverage = pa.concat_tables([new_coverage, stale])

    doomed_coverage = join(stored.coverage, void, _WINDOW, "left semi")
    kept_coverage = join(stored.coverage, void, _WINDOW, "left anti").select(COVERAGE.names).cast(COVERAGE)
    units = unit_rows(_states(stored, chunks), pa.concat_tables([kept_coverage, new_coverage]))
    doomed_windows = doomed_coverage.select(_WINDOW)
    vectors = _vector_changes(tables, chunks, doomed_windows)
    return vectors | {
        "supports": _support_changes(tables, chunks, doomed_windows),
        "tags": _void_tags(tables, doomed_windows),
        "entries": Changes(new_entries, doomed_entries[ROW]),
        "coverage": Changes(new_coverage, doomed_coverage[ROW]),
        "units": Changes(units, [row[ROW] for row in stored.units.values()]),
    }


def _outdated(tables: Tables, stored: Stored, changed: list[Row], new_windows: pa.Table) -> Outdated:
    """What read a ``changed`` entry. Loads the units of it into ``stored``.

    Windows that this batch writes are up to date: whoever wrote them read what was there then.
    """
    reads = _reads(tables, {row["producer_id"] for row in changed})
    units = _readers(tables, {row["asset_id"] for row in changed}, reads)
    stored.load(tables, units)
    candidates = join(stored.coverage, new_windows, _WINDOW, "left anti")
    candidates = candidates.filter(pc.is_in(candidates["unit_id"], pa.array(units, pa.string())))
    return outdated(candidates, reads, changed)


def _told_of_other_narratives(
    tables: Tables, stored: Stored, changed: list[Row], new_coverage: pa.Table
) -> pa.Table:
    """Coverage rows, marked stale, of windows that were told of a narrative of their own that ``changed``."""
    producers = read_their_past(tables, {row["producer_id"] for row in changed})
    starts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in changed:
        if row["producer_id"] in producers:
            starts[row["asset_id"], row["producer_id"]].append(row["start_s"])
    made = {
        (row["unit_id"], row["start_s"]) for row in new_coverage.select(["unit_id", "start_s"]).to_pylist()
    }
    stale: list[Row] = []
    for (asset_id, producer_id), starts_s in starts.items():
        own = (pc.field("asset_id") == asset_id) & (pc.field("producer_id") == producer_id)
        before = stored.coverage.filter(own).select(COVERAGE.names).to_pylist()
        kept = [row for row in before if (row["unit_id"], row["start_s"]) not in made]
        windows = [*kept, *new_coverage.filter(own).to_pylist()]
        stale += told_of(starts_s, windows, made)
    return as_stale(stale)


def _reads(tables: Tables, producers: Collection[str]) -> dict[str, list[str]]:
    """By producer that reads one of these: all producers that it reads."""
    if not producers:
        return {}
    rows = tables.dataset("producers").to_table(columns=["producer_id", "reads"]).to_pylist()
    return {row["producer_id"]: row["reads"] for row in rows if set(producers) & set(row["reads"])}


def _readers(tables: Tables, assets: Collection[str], producers: Collection[str]) -> list[str]:
    """Stored units of these assets and producers."""
    if not assets or not producers:
        return []
    units = tables.find("units", "asset_id", sorted(assets), ["unit_id", "producer_id"])
    own = units.filter(pc.is_in(units["producer_id"], pa.array(sorted(producers), pa.string())))
    return distinct(own["unit_id"])


def _of_stored(stored: Stored, entries: pa.Table) -> pa.Table:
    """The entries of units that were stored before: others may have read these units already."""
    units = pa.array(distinct(stored.coverage["unit_id"]), pa.string())
    return entries.filter(pc.is_in(entries["unit_id"], units))


def _void_by_inputs(stored: Stored, chunks: list[StagedChunk]) -> pa.Table:
    """Windows of the units whose inputs changed: all that are stored."""
    changed = {
        unit.unit_id
        for unit in (chunk.facts.unit for chunk in chunks)
        if unit.unit_id in stored.units and stored.units[unit.unit_id]["inputs_hash"] != unit.inputs_hash
    }
    rows = stored.coverage.filter(pc.is_in(stored.coverage["unit_id"], pa.array(changed, pa.string())))
    return _windows(rows)


def _doomed_entries(tables: Tables, void_coverage: pa.Table) -> pa.Table:
    """Stored entries of the windows that go, with what their vectors depend on."""
    units = distinct(void_coverage.filter(pc.greater(void_coverage["entries"], pa.scalar(0)))["unit_id"])
    rows = tables.find("entries", "unit_id", units, [*_WINDOW, *READ])
    return join(rows, void_coverage.select(_WINDOW), _WINDOW, "left semi")


def _vector_changes(tables: Tables, chunks: list[StagedChunk], void: pa.Table) -> dict[str, Changes]:
    new: dict[str, list[pa.Table]] = {}
    for chunk in chunks:
        if chunk.facts.embedder_id:
            new.setdefault(vectors_table(chunk.facts.embedder_id), []).append(_nested(chunk, "vectors"))
    units = distinct(void["unit_id"])
    changes = {}
    for name in {*new, *_vector_tables(tables)}:
        schema = _vector_schema(tables, name, new.get(name, []))
        if schema is None:
            continue
        rows = pa.concat_tables(
            [schema.empty_table(), *(_cast(name, part, schema) for part in new.get(name, []))]
        )
        doomed: Any = ()
        if name in tables.names() and units:
            stored = tables.find(name, "embed_unit_id", units, ["embed_unit_id", "window_start_us"])
            doomed = join(_as_window(stored), void, _WINDOW, "left semi")[ROW]
        changes[name] = Changes(rows, doomed)
    return changes


def _support_changes(tables: Tables, chunks: list[StagedChunk], void: pa.Table) -> Changes:
    new = pa.concat_tables([SUPPORTS.empty_table(), *(_nested(chunk, "supports") for chunk in chunks)])
    columns = ["support_unit_id", "window_start_us"]
    stored = tables.find("supports", "support_unit_id", distinct(void["unit_id"]), columns)
    stored = stored.rename_columns({"support_unit_id": "unit_id"})
    return Changes(new, join(stored, void, _WINDOW, "left semi")[ROW])


def _void_tags(tables: Tables, void: pa.Table) -> Changes:
    """Tags are never staged: what makes them commits them (``tags.py``). Here they only go."""
    columns = ["tag_unit_id", "window_start_us"]
    stored = tables.find("tags", "tag_unit_id", distinct(void["unit_id"]), columns)
    stored = stored.rename_columns({"tag_unit_id": "unit_id"})
    return Changes(TAGS.empty_table(), join(stored, void, _WINDOW, "left semi")[ROW])


def _vector_schema(tables: Tables, name: str, parts: list[pa.Table]) -> pa.Schema | None:
    """The schema of a vector table; None where there is no table yet and no vector tells its length."""
    if name in tables.names():
        schema: pa.Schema = tables.dataset(name).schema
        return schema
    lengths = (pc.max(pc.list_value_length(part["vector"])).as_py() for part in parts)
    dimension = next((length for length in lengths if length is not None), None)
    return None if dimension is None else vectors_schema(dimension)


def _cast(name: str, vectors: pa.Table, schema: pa.Schema) -> pa.Table:
    dimension = schema.field("vector").type.list_size
    for length in distinct(pc.list_value_length(vectors["vector"])):
        if length not in (None, dimension):
            raise IntegrityError(f"table {name!r} holds vectors of {dimension} numbers, got one of {length}")
    return vectors.cast(schema)


def _states(stored: Stored, chunks: list[StagedChunk]) -> list[UnitState]:
    states = {}
    for unit_id, row in stored.units.items():
        unit = Unit(**{name: row[name] for name in Unit.model_fields})
        states[unit_id] = UnitState(unit, row["run_id"], stored.complete_until_us(unit_id))
    for chunk in chunks:
        facts = chunk.facts
        before = states.get(facts.unit.unit_id)
        same_inputs = before and before.unit.inputs_hash == facts.unit.inputs_hash
        until_us = before.complete_until_us if before and same_inputs else None
        declared = facts.complete_until_us if facts.complete_until_us is not None else until_us
        states[facts.unit.unit_id] = UnitState(facts.unit, facts.run_id, declared)
    return list(states.values())


def _nested(chunk: StagedChunk, column: str) -> pa.Table:
    """The rows nested in ``column`` of a chunk."""
    nested: Any = pc.list_flatten(chunk.results[column])
    rows = nested.combine_chunks()
    return pa.table(rows.flatten(), schema=pa.schema(list(rows.type)))


def _windows(rows: pa.Table) -> pa.Table:
    return rows.select(_WINDOW).cast(WINDOWS)


def _with_window_start(coverage: pa.Table) -> pa.Table:
    return coverage.append_column("window_start_us", to_microseconds(coverage["start_s"]))


def _as_window(vectors: pa.Table) -> pa.Table:
    return vectors.rename_columns({"embed_unit_id": "unit_id"})


def _vector_tables(tables: Tables) -> list[str]:
    return [name for name in tables.names() if name.startswith(VECTORS)]
