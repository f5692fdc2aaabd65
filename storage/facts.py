"""The small tables of a catalog, held in memory: units, videos, names, roots, producers."""

from __future__ import annotations

import threading
from typing import Any

from evicat.schemas.identity import Producer, Unit
from evicat.schemas.naming import FileStamp, Root, VideoName, storable
from evicat.schemas.span import Span, to_us

from .library import Video
from .reader import Reader
from .rows import Row, producer_from_row
from .tables import table_spec

RETRIED = ("failed", "refused", "stale")
"""Counts of outcomes that a run may be asked to make again."""
_COLUMNS: dict[str, list[str] | None] = {
    "units": ["unit_id", "inputs_hash", "complete", *RETRIED],
    "videos": None,
    "names": None,
    "roots": None,
    "producers": None,
    "views": None,
}
"""The tables that are held, and which of their columns; None: all."""


class _Mirror:
    """Rows by table and key, and names by the place of their file."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Row]] = {table: {} for table in _COLUMNS}
        self.places: dict[tuple[str, str, Span | None], VideoName] = {}

    def put(self, table: str, row: Row) -> None:
        self.rows[table][_key(table, row)] = row
        if table == "names":
            name = VideoName.from_row(row)
            self.places[name.root_id, name.path, name.clip] = name


class Facts:
    """What planning asks for every asset, so it must cost no query. Threads may share it.

    It mirrors one head, and on top of that what this process added and nobody has committed yet.
    """

    def __init__(self, reader: Reader) -> None:
        self._lock = threading.Lock()
        self._fresh: list[tuple[str, Row]] = []
        self._mirror = _Mirror()
        self.load(reader)

    def load(self, reader: Reader) -> None:
        """Mirror the head of ``reader`` from now on."""
        loaded = {
            table: reader.dataset(table).to_table(columns=columns).to_pylist()
            for table, columns in _COLUMNS.items()
        }
        with self._lock:
            # Lookups take no lock: they must see the old mirror or the new one, never a half-filled one.
            mirror = _Mirror()
            for table, rows in loaded.items():
                for row in rows:
                    mirror.put(table, row)
            for table, row in self._fresh:
                mirror.put(table, row)
            self._mirror = mirror

    def holds(self, table: str, row: Row) -> bool:
        """Whether a row is there already, word for word."""
        with self._lock:
            return self._mirror.rows[table].get(_key(table, row)) == row

    def add(self, table: str, row: Row) -> None:
        """Take in a row that is staged."""
        with self._lock:
            self._mirror.put(table, row)
            self._fresh.append((table, row))

    def fresh_count(self) -> int:
        """How many additions are not yet known to be committed."""
        with self._lock:
            return len(self._fresh)

    def settle(self, count: int) -> None:
        """The first ``count`` additions are committed."""
        with self._lock:
            del self._fresh[:count]

    def note_unit(self, unit: Unit, *, complete: bool) -> None:
        row = {"unit_id": unit.unit_id, "inputs_hash": unit.inputs_hash, "complete": complete}
        self.add("units", row | dict.fromkeys(RETRIED, 0))

    def is_complete(self, unit: Unit) -> bool:
        row = self._mirror.rows["units"].get((unit.unit_id,))
        return row is not None and row["complete"] and row["inputs_hash"] == unit.inputs_hash

    def outcomes(self, unit: Unit) -> set[str]:
        """Outcomes among :data:`RETRIED` that windows of the unit have."""
        row = self._mirror.rows["units"].get((unit.unit_id,))
        return {name for name in RETRIED if row and row[name]}

    def view(self, name: str) -> dict[tuple[str, str], str]:
        """The active producer of each kind and scale."""
        rows = (row for row in self._values("views") if row["view"] == name)
        return {(row["kind"], row["scale"]): row["producer_id"] for row in rows}

    def duration_us(self, asset_id: str) -> int | None:
        """Length of an asset's timeline; None where the asset is not registered or has none."""
        row = self._mirror.rows["videos"].get((asset_id,))
        return None if row is None or row["duration_s"] is None else to_us(row["duration_s"])

    def producer(self, producer_id: str) -> Producer | None:
        row = self._mirror.rows["producers"].get((producer_id,))
        return producer_from_row(row) if row else None

    def roots(self) -> list[Root]:
        return [Root(**row) for row in self._values("roots")]

    def names(self) -> list[VideoName]:
        return [VideoName.from_row(row) for row in self._values("names")]

    def videos(self) -> list[Video]:
        return [Video.from_row(row) for row in self._values("videos")]

    def known_asset_id(self, root_id: str, path: str, stamp: FileStamp, clip: Span | None) -> str | None:
        name = self._mirror.places.get((root_id, storable(path), clip))
        return name.asset_id if name and name.stamp == stamp else None

    def _values(self, table: str) -> list[Row]:
        with self._lock:
            return [row for _, row in sorted(self._mirror.rows[table].items(), key=lambda item: item[0])]


def _key(table: str, row: Row) -> tuple[Any, ...]:
    return tuple(row[column] for column in table_spec(table).key)
