"""Traces as Parquet files beside a catalog: ``traces/<trace id>.parquet``, one row per step.

They lie in the catalog's folder but in none of its tables: no head lists them, and maintenance leaves them
alone.
"""

from __future__ import annotations

import difflib
import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evicat.readers.trace import Trace, TraceStep
from evicat.schemas.errors import IntegrityError, UsageError
from evicat.storage.disk import full_disk_told
from evicat.storage.files import write_durably
from evicat.storage.layout import Layout

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("trace_id", pa.string()),
    ("catalog", pa.string()),
    ("version", pa.int64()),
    ("view", pa.string()),
    ("video", pa.string()),
    ("question", pa.string()),
    ("index", pa.int32()),
    ("raw", pa.string()),
    ("tool", pa.string()),
    ("valid", pa.bool_()),
    ("error_class", pa.string()),
    ("error", pa.string()),
    ("arguments", pa.string()),
    ("entry_ids", pa.list_(pa.string())),
    ("spans", pa.list_(pa.struct([("start_s", pa.float64()), ("end_s", pa.float64())]))),
    ("frames", pa.list_(pa.struct([("pts", pa.int64()), ("time_s", pa.float64())]))),
    ("boundary", pa.string()),
    ("tokens", pa.struct([("prompt", pa.int32()), ("completion", pa.int32())])),
    ("seconds", pa.float64()),
    ("text", pa.string()),
]
TRACE_SCHEMA = pa.schema(_COLUMNS)
"""One row per step; the first six columns say of every row whose step it is. ``arguments`` is JSON."""

_OF_TRACE = ("trace_id", "catalog", "version", "view", "video", "question")
_TRACE_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


@dataclass(frozen=True)
class TraceStore:
    """The traces of one catalog."""

    folder: Path

    @classmethod
    def of(cls, uri: str) -> TraceStore:
        """The traces beside a catalog; their folder is made by the first that is stored.

        Raises:
            CatalogError: there is no catalog that this release can use.
        """
        layout = Layout.of(uri)
        layout.check_is_catalog()
        return cls(layout.root / "traces")

    def save(self, trace: Trace) -> None:
        """Store a trace, in place of an earlier state of it; one without steps leaves no file.

        Raises:
            UsageError: its id is no plain name.
            DiskFullError: no room; its earlier state is kept.
        """
        path = self._path(trace.trace_id)
        if not trace.steps:
            return
        written = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(_rows(trace), schema=TRACE_SCHEMA), written, compression="zstd")
        with full_disk_told(self.folder.parent):
            self.folder.mkdir(exist_ok=True)
            write_durably(path, written.getvalue())

    def ids(self) -> list[str]:
        """Ids of all traces, the one written last at the end."""
        found = [path for path in self.folder.glob("*.parquet") if _TRACE_ID.fullmatch(path.stem)]
        return [path.stem for path in sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.stem))]

    def load(self, trace_id: str) -> Trace:
        """A trace by its id, or by the first characters of it where no other has them.

        Raises:
            UsageError: there is none, or several begin so.
            IntegrityError: its file is broken.
        """
        path = self._path(self._whole_id(trace_id))
        try:
            table = pq.read_table(io.BytesIO(path.read_bytes()))
        except pa.ArrowException as error:
            raise IntegrityError(f"{path} is broken ({error}); remove it") from None
        if not table.schema.equals(TRACE_SCHEMA) or not table.num_rows:
            raise IntegrityError(f"{path} is no trace: its columns are not those of one, or it has no row")
        return _trace(table.to_pylist())

    def _path(self, trace_id: str) -> Path:
        if not _TRACE_ID.fullmatch(trace_id):
            raise UsageError(f"a trace's id has letters, digits, - and _ only, got {trace_id!r}")
        return self.folder / f"{trace_id}.parquet"

    def _whole_id(self, begins: str) -> str:
        known = self.ids()
        found = [each for each in known if each.startswith(begins)] if begins else []
        if begins in known:
            return begins
        if len(found) == 1:
            return found[0]
        if found:
            some = ", ".join(found[:5])
            raise UsageError(f"{len(found)} traces begin with {begins!r}: {some}; give more of it")
        near = difflib.get_close_matches(begins, known, n=3, cutoff=0.3)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise UsageError(f"no trace {begins!r}{hint}. List them with: evicat trace list")


@dataclass
class Recorder:
    """Stores a trace while it grows: after every ``every`` steps, and at the end."""

    store: TraceStore
    every: int = 4
    _stored: dict[str, int] = field(default_factory=dict)

    def keep(self, trace: Trace, *, ended: bool = False) -> None:
        """Store it where enough was added since it was stored last, or it has ended."""
        unsaved = len(trace.steps) - self._stored.get(trace.trace_id, 0)
        if unsaved >= self.every or (ended and unsaved):
            self.store.save(trace)
            self._stored[trace.trace_id] = len(trace.steps)


def _rows(trace: Trace) -> list[dict[str, Any]]:
    shared = {name: getattr(trace, name) for name in _OF_TRACE}
    return [shared | _row(step) for step in trace.steps]


def _row(step: TraceStep) -> dict[str, Any]:
    return {
        "index": step.index,
        "raw": step.raw,
        "tool": step.tool,
        "valid": step.valid,
        "error_class": step.error_class,
        "error": step.error,
        "arguments": json.dumps(step.arguments, ensure_ascii=False),
        "entry_ids": list(step.entry_ids),
        "spans": [{"start_s": start, "end_s": end} for start, end in step.spans],
        "frames": [{"pts": pts, "time_s": time_s} for pts, time_s in step.frames],
        "boundary": step.boundary,
        "tokens": {"prompt": step.tokens[0], "completion": step.tokens[1]},
        "seconds": step.seconds,
        "text": step.text,
    }


def _trace(rows: list[dict[str, Any]]) -> Trace:
    return Trace(**{name: rows[0][name] for name in _OF_TRACE}, steps=tuple(_step(row) for row in rows))


def _step(row: dict[str, Any]) -> TraceStep:
    own = {name: value for name, value in row.items() if name not in _OF_TRACE}
    own["arguments"] = json.loads(row["arguments"])
    own["entry_ids"] = tuple(row["entry_ids"])
    own["spans"] = tuple((span["start_s"], span["end_s"]) for span in row["spans"])
    own["frames"] = tuple((frame["pts"], frame["time_s"]) for frame in row["frames"])
    own["tokens"] = (row["tokens"]["prompt"], row["tokens"]["completion"])
    return TraceStep(**own)
