"""The small tables of a catalog, held in memory: units, videos, names, roots, producers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from evicat.schemas.identity import Producer, Unit
from evicat.schemas.naming import FileStamp, Root, VideoName, storable
from evicat.schemas.span import Span, to_us

from .library import Video
from .reader import Reader
from .rows import Row, producer_from_row
from .tables import FIXED_TABLES, table_spec

RETRIED = ("failed", "refused", "stale")
"""Counts of outcomes that a run may be asked to make again."""
_UNIT = ("asset_id", "producer_id", "condition_id")
"""What identifies a unit; its id is the hash of it, which planning has no need to compute."""
_COLUMNS: dict[str, tuple[str, ...]] = {
    "units": (*_UNIT, "inputs_hash", "complete", *RETRIED),
    **{name: tuple(FIXED_TABLES[name].names) for name in ("videos", "names", "roots", "producers", "views")},
}
"""The tables that are held, and which of their columns."""
_KEYS = {name: _UNIT if name == "units" else table_spec(name).key for name in _COLUMNS}
_PLACE = ("root_id", "path", "clip_in_us", "clip_out_us")
_STAMPED = ("asset_id", *FileStamp._fields)


def _picks(columns: tuple[str, ...], names: Iterable[str]) -> Any:
    """What takes the values of ``names`` out of a tuple with ``columns``; always a tuple."""
    places = [columns.index(name) for name in names]
    return itemgetter(*places) if len(places) > 1 else lambda values: (values[places[0]],)


_KEY_OF = {name: _picks(columns, _KEYS[name]) for name, columns in _COLUMNS.items()}
_PLACE_OF = _picks(_COLUMNS["names"], _PLACE)
_STAMPED_OF = _picks(_COLUMNS["names"], _STAMPED)


class _Mirror:
    """Rows by table and key, and stamped assets by the place of their file.

    A row is a tuple in the order of ``_COLUMNS``: a library of 10,000 films has 80,000 of them, which are
    loaded anew at every start and after every commit, and most of which nobody ever asks for.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = {table: {} for table in _COLUMNS}
        self.places: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def put(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        self.rows[table].update(zip(map(_KEY_OF[table], rows), rows, strict=True))
        if table == "names":
            self.places.update(zip(map(_PLACE_OF, rows), map(_STAMPED_OF, rows), strict=True))


class Facts:
    """What planning asks for every asset, so it must cost no query. Threads may share it.

    It mirrors one head, and on top of that what this process added and nobody has committed yet.
    """

    def __init__(self, reader: Reader) -> None:
        self._lock = threading.Lock()
        self._fresh: list[tuple[str, tuple[Any, ...]]] = []
        self._mirror = _Mirror()
        self._stored: dict[str, tuple[int, list[tuple[Any, ...]]]] = {}  # by table: its version, its rows
        self.load(reader)

    def load(self, reader: Reader) -> None:
        """Mirror the head of ``reader`` from now on."""
        stored = dict(self._stored)
        for table in _COLUMNS:
            version = reader.dataset(table).version
            if table not in stored or stored[table][0] != version:
                stored[table] = version, _read(reader, table)
        with self._lock:
            # Lookups take no lock: they must see the old mirror or the new one, never a half-filled one.
            mirror = _Mirror()
            for table, (_, rows) in stored.items():
                mirror.put(table, rows)
            for table, values in self._fresh:
                mirror.put(table, [values])
            self._stored, self._mirror = stored, mirror

    def holds(self, table: str, row: Row) -> bool:
        """Whether a row is there already, word for word."""
        values = _values(table, row)
        return self._mirror.rows[table].get(_KEY_OF[table](values)) == values

    def add(self, table: str, row: Row) -> None:
        """Take in a row that is staged."""
        values = _values(table, row)
        with self._lock:
            self._mirror.put(table, [values])
            self._fresh.append((table, values))

    def fresh_count(self) -> int:
        """How many additions are not yet known to be committed."""
        with self._lock:
            return len(self._fresh)

    def settle(self, count: int) -> None:
        """The first ``count`` additions are committed."""
        with self._lock:
            del self._fresh[:count]

    def note_unit(self, unit: Unit, *, complete: bool) -> None:
        row: Row = {name: getattr(unit, name) for name in _UNIT}
        row |= {"inputs_hash": unit.inputs_hash, "complete": complete}
        self.add("units", row | dict.fromkeys(RETRIED, 0))

    def is_complete(self, unit: Unit) -> bool:
        return self.has(unit.asset_id, {unit.producer_id: unit.inputs_hash}, unit.condition_id)

    def has(self, asset_id: str, inputs: Mapping[str, str], condition_id: str = "") -> bool:
        """Whether what these producers make of an asset is complete; ``inputs``: producer -> inputs_hash."""
        units = self._mirror.rows["units"]
        for producer_id, inputs_hash in inputs.items():
            found = units.get((asset_id, producer_id, condition_id))
            if found is None or found[3:5] != (inputs_hash, True):
                return False
        return True

    def knows(self, unit: Unit) -> bool:
        """Whether a head that was mirrored, or this process, has anything of the unit."""
        return (unit.asset_id, unit.producer_id, unit.condition_id) in self._mirror.rows["units"]

    def outcomes(self, unit: Unit) -> set[str]:
        """Outcomes among :data:`RETRIED` that windows of the unit have."""
        found = self._mirror.rows["units"].get((unit.asset_id, unit.producer_id, unit.condition_id))
        return {name for name, count in zip(RETRIED, found[5:], strict=True) if count} if found else set()

    def view(self, name: str) -> dict[tuple[str, str], str]:
        """The active producer of each kind and scale."""
        rows = (row for row in self._all("views") if row["view"] == name)
        return {(row["kind"], row["scale"]): row["producer_id"] for row in rows}

    def duration_us(self, asset_id: str) -> int | None:
        """Length of an asset's timeline; None where the asset is not registered or has none."""
        row = self._row("videos", asset_id)
        return None if row is None or row["duration_s"] is None else to_us(row["duration_s"])

    def producer(self, producer_id: str) -> Producer | None:
        row = self._row("producers", producer_id)
        return producer_from_row(row) if row else None

    def roots(self) -> list[Root]:
        return [Root(**row) for row in self._all("roots")]

    def names(self) -> list[VideoName]:
        return [VideoName.from_row(row) for row in self._all("names")]

    def named(self) -> dict[tuple[str, str], str]:
        """The asset that each name stands for, by root and name."""
        with self._lock:
            return {key: row[2] for key, row in self._mirror.rows["names"].items()}

    def videos(self) -> list[Video]:
        return [Video.from_row(row) for row in self._all("videos")]

    def known_asset_id(self, root_id: str, path: str, stamp: FileStamp, clip: Span | None) -> str | None:
        cut = (clip.start_us, clip.end_us) if clip else (None, None)
        found = self._mirror.places.get((root_id, storable(path), *cut))
        if found is None:
            return None
        return found[0] if found[1:] == stamp else None

    def _row(self, table: str, key: str) -> Row | None:
        found = self._mirror.rows[table].get((key,))
        return dict(zip(_COLUMNS[table], found, strict=True)) if found else None

    def _all(self, table: str) -> list[Row]:
        """Rows in the order of their keys."""
        with self._lock:
            rows = sorted(self._mirror.rows[table].items(), key=itemgetter(0))
        return [dict(zip(_COLUMNS[table], values, strict=True)) for _, values in rows]


def _values(table: str, row: Row) -> tuple[Any, ...]:
    return tuple([row[column] for column in _COLUMNS[table]])


def _read(reader: Reader, table: str) -> list[tuple[Any, ...]]:
    """All rows of a table. By columns: a row at a time takes ten times as long."""
    rows = reader.dataset(table).to_table(columns=list(_COLUMNS[table]))
    return list(zip(*(_as_list(column) for column in rows.columns), strict=True))


def _as_list(column: Any) -> list[Any]:
    """Values of an Arrow column; through NumPy where that changes none of them, as it is far faster."""
    import pyarrow.types as types

    if column.null_count == len(column):
        return [None] * len(column)
    values: list[Any]
    if column.null_count or types.is_list(column.type):
        values = column.to_pylist()
    else:
        values = column.to_numpy().tolist()
    return values
