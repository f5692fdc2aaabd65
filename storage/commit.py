"""The committer: drains staged files into one transaction per table, then moves the head.

Whoever runs this holds the commit lock. Nothing is written before all checks of a batch have passed, and
the head moves last: a crash in between leaves tables ahead of the head, which the next start rolls back. A
crash after it leaves files of that batch alone, which are committed again to the same effect.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.errors import IntegrityError

from .factors import refresh_factors
from .head import Head, check_complete, write_head
from .layout import Layout
from .rows import Row
from .staging import FactRows, StagedChunk, StagingArea
from .tables import DERIVED, FIXED_TABLES, SUPPORT, TAG, table_spec
from .transact import ROW, Tables, check_keys, distinct
from .unit_changes import Changes, unit_changes

log = logging.getLogger(__name__)

BATCH_BYTES = 256 * 1024 * 1024
"""Staged bytes that go into one transaction at most."""

READ = ("local", "speech", "sound")
"""Kinds that narratives read."""


@dataclass
class Batch:
    """Staged files that one transaction per table can hold: no two of them touch the same rows."""

    paths: list[Path] = field(default_factory=list)
    chunks: list[StagedChunk] = field(default_factory=list)
    facts: list[FactRows] = field(default_factory=list)
    size_bytes: int = 0
    _windows: dict[str, set[int]] = field(default_factory=dict)
    _inputs: dict[str, str] = field(default_factory=dict)
    _embedded: set[str] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)  # assets with narratives, which have read other units
    _supported: set[str] = field(default_factory=set)  # assets with supports, which have read all of them

    def takes(self, chunk: StagedChunk) -> bool:
        """Whether ``chunk`` is independent of what is here: their order makes no difference."""
        unit = chunk.facts.unit
        same_inputs = self._inputs.get(unit.unit_id, unit.inputs_hash) == unit.inputs_hash
        starts = chunk.results["start_us"].to_pylist()
        fresh = self._windows.get(unit.unit_id, set()).isdisjoint(starts)
        is_read = (
            unit.unit_id in self._embedded
            or (unit.kind in READ and unit.asset_id in self._told)
            or (unit.kind not in DERIVED and unit.asset_id in self._supported)
        )
        return same_inputs and fresh and not is_read

    def add(self, path: Path, content: StagedChunk | FactRows) -> None:
        self.paths.append(path)
        self.size_bytes += path.stat().st_size
        if isinstance(content, FactRows):
            self.facts.append(content)
            return
        unit = content.facts.unit
        self.chunks.append(content)
        self._inputs[unit.unit_id] = unit.inputs_hash
        self._windows.setdefault(unit.unit_id, set()).update(distinct(content.results["start_us"]))
        if unit.kind == "narrative":
            self._told.add(unit.asset_id)
        if unit.kind == SUPPORT:
            self._supported.add(unit.asset_id)
        if content.facts.embedder_id:
            vectors = pc.list_flatten(content.results["vectors"])
            self._embedded.update(distinct(pc.struct_field(vectors, "unit_id")))


def open_tables(layout: Layout) -> Tables:
    """Tables at the head; what is ahead of it is rolled back, and the head follows.

    Raises:
        IntegrityError: the head lacks tables, or names some that are not there.
    """
    tables = Tables(layout)
    check_complete(tables.head, layout)
    move_head(layout, tables)
    return tables


def drain(layout: Layout, staging: StagingArea) -> Head:
    """Commit every staged file and return the head after it.

    Where a file of facts broke, chunks stay staged that nothing in the catalog explains (:class:`Known`).

    Raises:
        IntegrityError: a batch or a table contradicts itself; the head stays where it was.
    """
    tables = open_tables(layout)
    for batch in _batches(tables, staging):
        _commit(layout, staging, tables, batch)
    return tables.head


@dataclass(frozen=True)
class Known:
    """Producers and assets that the tables or staged facts tell of.

    Whoever writes a chunk has staged them before. Where such a file broke, the chunk would make tables that
    contradict each other; it waits until the next run over its media, which stages what is not known.
    """

    reads: dict[str, list[str]]
    """What each producer reads."""
    assets: set[str]

    @classmethod
    def of(cls, tables: Tables, staging: StagingArea) -> Known:
        stored = tables.dataset("producers").to_table(columns=["producer_id", "reads"]).to_pylist()
        known = cls(
            {row["producer_id"]: row["reads"] for row in stored},
            set(tables.dataset("videos").to_table(columns=["asset_id"])["asset_id"].to_pylist()),
        )
        for path in staging.files():
            content = staging.read(path) if path.suffix == ".json" else None
            if isinstance(content, FactRows) and content.table == "producers":
                known.reads.update({row["producer_id"]: row["reads"] for row in content.rows})
            if isinstance(content, FactRows) and content.table == "videos":
                known.assets.update(row["asset_id"] for row in content.rows)
        return known

    def explain(self, chunk: StagedChunk) -> bool:
        """Whether they tell of all that ``chunk`` is made of."""
        unit = chunk.facts.unit
        return unit.asset_id in self.assets and self._has(unit.producer_id)

    def _has(self, producer_id: str) -> bool:
        return producer_id in self.reads and all(map(self._has, self.reads[producer_id]))


def _batches(tables: Tables, staging: StagingArea) -> Iterator[Batch]:
    batch = Batch()
    facts_were_lost = bool(staging.lost_facts())
    known: Known | None = None
    waiting: list[Path] = []
    for path in staging.files():
        content = staging.read(path)
        if content is None:
            facts_were_lost = facts_were_lost or path.suffix == ".json"
            continue
        if facts_were_lost and isinstance(content, StagedChunk):
            known = known or Known.of(tables, staging)
            if not known.explain(content):
                waiting.append(path)
                continue
        conflicts = isinstance(content, StagedChunk) and not batch.takes(content)
        if conflicts or batch.size_bytes > BATCH_BYTES:
            yield batch
            batch = Batch()
        batch.add(path, content)
    if batch.paths:
        yield batch
    if waiting:
        log.warning(
            "%d staged files wait, as facts of their producers or videos were lost (%s is the first): "
            "index the same media again, and they are committed without being made anew",
            len(waiting),
            waiting[0],
        )


def _commit(layout: Layout, staging: StagingArea, tables: Tables, batch: Batch) -> None:
    changes = _fact_changes(tables, batch.facts)
    if batch.chunks:
        changes |= unit_changes(tables, batch.chunks)
    for name, change in changes.items():
        check_keys(name, change.new)
    for name, change in changes.items():
        tables.ensure(name, change.new.schema)
        tables.replace(name, change.new, change.doomed)
    _audit(tables, changes)
    _follow_tags(tables, changes)
    move_head(layout, tables)
    staging.remove(batch.paths)


def _fact_changes(tables: Tables, facts: list[FactRows]) -> dict[str, Changes]:
    """New rows of the small tables; of several with one key the last counts."""
    latest: dict[str, dict[tuple[str, ...], Row]] = {}
    for staged in facts:
        spec = table_spec(staged.table)
        for row in staged.rows:
            latest.setdefault(staged.table, {})[tuple(row[name] for name in spec.key)] = row
    return {name: _keyed_change(tables, name, rows) for name, rows in latest.items()}


def _keyed_change(tables: Tables, name: str, rows: dict[tuple[str, ...], Row]) -> Changes:
    spec = table_spec(name)
    new = pa.Table.from_pylist(list(rows.values()), schema=FIXED_TABLES[name])
    stored = tables.find(name, spec.lookup, sorted({row[spec.lookup] for row in rows.values()}), spec.key)
    doomed = [row[ROW] for row in stored.to_pylist() if tuple(row[column] for column in spec.key) in rows]
    return Changes(new, doomed)


def _audit(tables: Tables, changes: dict[str, Changes]) -> None:
    """Check what was written: keys of all touched units are unique, and no entry is missing."""
    for name, change in changes.items():
        lookup = table_spec(name).lookup
        touched = distinct(change.new[lookup])
        if touched:
            tables.check_unique(name, lookup, touched)
    if "units" not in changes:
        return
    expected = {row["unit_id"]: row["entries"] for row in changes["units"].new.to_pylist()}
    found = tables.find("entries", "unit_id", list(expected), ["unit_id"])
    counts = Counter(found["unit_id"].to_pylist())
    for unit_id, count in expected.items():
        if counts[unit_id] != count:
            raise IntegrityError(
                f"table 'entries': unit {unit_id} has {counts[unit_id]} rows, its coverage says {count}"
            )


def _follow_tags(tables: Tables, changes: dict[str, Changes]) -> None:
    """Entries follow where tags went, or where other taggers are active now."""
    views = changes["views"].new["kind"].to_pylist() if "views" in changes else []
    if TAG in views or ("tags" in changes and len(changes["tags"].doomed)):
        refresh_factors(tables)


def move_head(layout: Layout, tables: Tables) -> None:
    """Make the versions that were written the ones that readers open; nothing where they are so already."""
    versions = tables.versions()
    if versions != tables.head.tables:
        tables.head = tables.head.following(versions)
        write_head(layout, tables.head)
