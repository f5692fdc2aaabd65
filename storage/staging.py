"""Staged chunks: immutable files that wait for the next group commit, in the order of their names.

A sealed chunk is one Arrow file, a row per window result; facts of library and producers are JSON. The name
of a file ends in the digest of its content, so that no broken byte gets into a table. (Arrow, not Parquet: of
100 results with an entry each it writes and reads back in a quarter of the time, at the same size.)
"""

from __future__ import annotations

import hashlib
import io
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
from pydantic import Field

from evicat.schemas.entry import WindowResult
from evicat.schemas.identity import Unit
from evicat.schemas.model import Model

from .files import sync_folder, write_durably
from .rows import Row, result_from_row, result_row
from .tables import FIXED_TABLES, STAGED

log = logging.getLogger(__name__)

_META = b"evicat"
_FACTS = "facts"
BROKEN = ".broken"
"""How the name of a file that was set aside ends."""
ABANDONED_S = 3600.0
"""An unnamed file that is so old is no longer being written."""


class ChunkFacts(Model):
    """What a staged chunk says of its unit."""

    unit: Unit
    run_id: str
    embedder_id: str = ""
    complete_until_us: int | None = None
    """Set where the results of the unit, this chunk included, tile ``[0, complete_until_us)``."""


class FactRows(Model):
    """Rows of one small table, as a staged JSON file."""

    table: str = Field(pattern="^(" + "|".join(FIXED_TABLES) + ")$")
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class StagedChunk:
    """A staged chunk that was read; ``results`` has the schema ``STAGED``."""

    facts: ChunkFacts
    results: pa.Table


class StagingArea:
    """The folder of staged files of one catalog. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._last = max(map(_sequence, self.files()), default=0)

    def stage_chunk(self, facts: ChunkFacts, results: list[WindowResult]) -> Path:
        """Write a chunk durably; ``results`` may be empty where only completion is to be noted."""
        unit_id = facts.unit.unit_id
        rows = pa.Table.from_pylist([result_row(result, unit_id) for result in results], schema=STAGED)
        rows = rows.replace_schema_metadata({_META: facts.model_dump_json().encode()})
        content = io.BytesIO()
        with ipc.new_file(content, rows.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(rows)
        return self._stage(unit_id, content.getvalue(), "arrow")

    def stage_facts(self, table: str, rows: list[Row]) -> Path:
        """Write rows of a small table durably."""
        return self._stage(_FACTS, FactRows(table=table, rows=rows).model_dump_json().encode(), "json")

    def _stage(self, what: str, content: bytes, suffix: str) -> Path:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns())
            path = self.folder / f"{self._last:020d}-{what}-{_digest(content)}.{suffix}"
        write_durably(path, content)
        return path

    def files(self) -> list[Path]:
        """All staged files in the order in which they are to be committed."""
        return sorted(path for path in self.folder.glob("[0-9]*") if path.suffix in (".arrow", ".json"))

    def chunks_of(self, unit_id: str) -> list[StagedChunk]:
        """Readable staged chunks of a unit in order; later ones of this unit will sort behind them."""
        paths = sorted(self.folder.glob(f"[0-9]*-{unit_id}-*.arrow"))
        with self._lock:
            self._last = max([self._last, *map(_sequence, paths)])
        return [chunk for path in paths if isinstance(chunk := self.read(path), StagedChunk)]

    def read(self, path: Path) -> StagedChunk | FactRows | None:
        """Content of a staged file; None where it is broken: it is set aside with a warning.

        Raises:
            FileNotFoundError: it has been committed and removed meanwhile.
        """
        content = path.read_bytes()
        if _digest(content) != path.stem.rpartition("-")[2]:
            aside = path.with_name(path.name + BROKEN)
            path.replace(aside)
            log.warning("%s is broken: set aside as %s, %s", path, aside.name, _then(path))
            return None
        if path.suffix == ".json":
            return FactRows.model_validate_json(content)
        return _parse_chunk(content)

    def lost_facts(self) -> list[Path]:
        """Facts that were set aside: chunks may wait here whose producer or asset nothing tells of."""
        return sorted(self.folder.glob(f"[0-9]*-{_FACTS}-*.json{BROKEN}"))

    def has_chunks(self) -> bool:
        """Whether any chunk is staged."""
        return any(path.suffix == ".arrow" for path in self.files())

    def remove(self, committed: list[Path]) -> None:
        """Remove files in their order, durably, so that only the end of a batch can ever come back."""
        for path in committed:
            path.unlink()
        sync_folder(self.folder)

    def remove_abandoned(self) -> None:
        """Remove unnamed files that a crash left behind, once they are an hour old."""
        for path in self.folder.glob(".*.tmp"):
            if time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink(missing_ok=True)


def _then(path: Path) -> str:
    """What becomes of what a broken file held."""
    if path.suffix == ".arrow":
        return "its windows are done again"
    return (
        "and what it said of producers, videos, names or roots is missing until the next index of that "
        "media; results that cannot do without it wait until then"
    )


def _sequence(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _parse_chunk(content: bytes) -> StagedChunk:
    table = ipc.open_file(pa.BufferReader(content)).read_all()
    facts = ChunkFacts.model_validate_json(table.schema.metadata[_META])
    if table.schema.equals(STAGED):
        return StagedChunk(facts, table.replace_schema_metadata())
    whole = pa.concat_tables(  # an older release staged without columns that came later: they are null
        [STAGED.empty_table(), table.replace_schema_metadata()], promote_options="default"
    )
    return StagedChunk(facts, whole.cast(STAGED))


def results_of(chunk: StagedChunk) -> list[WindowResult]:
    """The results of a staged chunk as values."""
    return [
        result_from_row(row, row["entries"], row["vectors"], row["supports"] or ())
        for row in chunk.results.to_pylist()
    ]
