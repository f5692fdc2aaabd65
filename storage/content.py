"""The content hash: equal for two catalogs that were built alike, on whichever machine and in whatever order.

Each row gives 2048 bits (SHAKE-256 over its values as JSON), and those of all rows of a table are added up:
the sum depends on the rows and on how often each stands there, not on their order, and one number is all
that is held in memory (AdHash; Bellare and Micciancio, EUROCRYPT 1997).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evicat.schemas.model import content_hash

from .reader import Reader
from .sql import sql_in
from .tables import DERIVED

_BYTES = 256
_BATCH_ROWS = 4096
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class _Part:
    """What counts of one table."""

    columns: tuple[str, ...]
    """By their values."""
    whether: tuple[str, ...] = ()
    """By whether they are set."""
    where: str = ""
    """Which rows, as a filter; empty: all."""


_PARTS = {
    "entries": _Part(
        (
            *("asset_id", "producer_id", "condition_id", "kind", "scale", "start_s", "end_s"),
            *("text", "record", "frames", "objects", "flags", "boundary"),
        )
    ),
    "coverage": _Part(
        ("unit_id", "asset_id", "producer_id", "kind", "scale", "start_s", "end_s", "outcome"),
        where=f"NOT ({sql_in('kind', sorted(DERIVED))})",
    ),
    "videos": _Part(("asset_id", "duration_s")),
    "names": _Part(
        ("name", "asset_id", "clip_in_us", "clip_out_us", "benchmark", "split"), whether=("missing_since",)
    ),
}
"""What "equal" means between two builds. No vectors, supports, timings, attempts, run ids, paths."""


def content_hash_of(reader: Reader) -> str:
    """The content hash of a catalog at the head of ``reader``: 32 hexadecimal digits."""
    return content_hash({table: _sum_of(reader, table, part) for table, part in _PARTS.items()})


def _sum_of(reader: Reader, table: str, part: _Part) -> str:
    total = 0
    for row in _rows(reader, table, part):
        total += int.from_bytes(hashlib.shake_256(_json(row).encode()).digest(_BYTES), "big")
    return f"{total % (1 << 8 * _BYTES):x}"


def _rows(reader: Reader, table: str, part: _Part) -> Iterator[tuple[Any, ...]]:
    scanner = reader.dataset(table).scanner(
        columns=[*part.columns, *part.whether], filter=part.where or None, batch_size=_BATCH_ROWS
    )
    for batch in scanner.to_batches():
        columns = [batch.column(name).to_pylist() for name in part.columns]
        columns += [batch.column(name).is_valid().to_pylist() for name in part.whether]
        yield from zip(*columns, strict=True)
