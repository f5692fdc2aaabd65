"""Journals: every finished window goes to disk at once, one JSON line each, until its chunk is staged."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from pydantic import ValidationError

from evicat.schemas.entry import WindowResult
from evicat.schemas.identity import Unit
from evicat.schemas.model import Model

from .files import sync_folder

log = logging.getLogger(__name__)


class JournalLine(Model):
    """One result with all that staging it needs, so that any later process can do so."""

    unit: Unit
    run_id: str
    embedder_id: str = ""
    """Whose table the vectors belong to; empty where the unit is no embedding."""
    result: WindowResult


class Journal:
    """The journal of one unit: written and read by whoever holds the unit's claim."""

    def __init__(self, folder: Path, unit_id: str) -> None:
        self.path = folder / f"{unit_id}.jsonl"

    def append(self, line: JournalLine) -> None:
        """Return only when ``line`` survives a crash; after an error the journal is as it was."""
        is_new = not self.path.exists()
        with self.path.open("ab", buffering=0) as stream:
            before = stream.seek(0, os.SEEK_END)
            try:
                _write_all(stream.fileno(), line.model_dump_json().encode() + b"\n")
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(before)
                raise
        if is_new:
            sync_folder(self.path.parent)

    def read(self) -> list[JournalLine]:
        """All whole lines in order. A broken line is skipped with a warning: its window is pending again."""
        if not self.path.exists():
            return []
        lines = (
            self._parse(number, raw) for number, raw in enumerate(self.path.read_bytes().split(b"\n"), 1)
        )
        return [line for line in lines if line]

    def _parse(self, number: int, raw: bytes) -> JournalLine | None:
        if not raw.strip():
            return None
        try:
            return JournalLine.model_validate_json(raw)
        except ValidationError:
            log.warning("%s: line %d is cut or broken; its window is done again", self.path, number)
            return None

    def remove(self) -> None:
        """Its windows are staged: the journal has done its work."""
        self.path.unlink(missing_ok=True)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
