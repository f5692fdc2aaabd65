"""Exports: the entries of a view in files, whole or not at all, and counted again once they are written."""

from __future__ import annotations

import glob
import json
import os
import shutil
import socket
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from evicat.catalog.query import Catalog
from evicat.catalog.reading.arguments import names
from evicat.schemas.errors import IntegrityError, UnknownNameError, UsageError
from evicat.schemas.places import expanded
from evicat.storage.create import check_not_within

from .captions import write_captions
from .rows import Choice, choose
from .shards import write_shards
from .tables import write_jsonl, write_parquet, write_vectors

FORMATS = {
    "parquet": "a folder for each split, a file for each kind; `datasets`, DuckDB, polars and pandas read it",
    "jsonl": "the same as JSON lines",
    "webdataset": "shards of entries with the pictures that they cite",
    "srt": "subtitles, one file a video and kind",
    "vtt": "the same for browsers",
    "csv": "markers for editors, one file a video and kind",
}
"""Every format, and what it is."""
MANIFEST = "export.json"


@dataclass
class Exported:
    """What was written."""

    folder: Path
    form: str
    rows: dict[str, int] = field(default_factory=dict)
    """By split; 0 where no source fell into one."""
    files: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Entries that were chosen and not wanted: ``flagged``, ``partial``."""
    problems: list[str] = field(default_factory=list)
    """Pictures that could not be had."""

    def headline(self) -> str:
        splits = ", ".join(f"{count} {split}" for split, count in sorted(self.rows.items()))
        total = sum(self.rows.values())
        left = ", ".join(f"{count} {what}" for what, count in self.left_out.items() if count)
        files = "1 file" if self.files == 1 else f"{self.files} files"
        told = f"{total} entries ({splits}) in {files} in {self.folder}"
        return f"{told}; left out: {left}" if left else told


def export(
    catalog: Catalog,
    destination: str | Path,
    form: str,
    choice: Choice | None = None,
    *,
    vectors: bool = False,
    media_roots: Sequence[str | Path] = (),
) -> Exported:
    """Write the entries of a choice into ``destination``, a folder that is new or empty.

    ``export.json`` in it says from which head and by which choice. The files are read again and counted
    before the folder gets its name.

    Raises:
        UnknownNameError: no such format, or a name in the choice.
        UsageError: the destination holds something, vectors or splits are asked for with a format that has
            none, or nothing was chosen.
        IntegrityError: the files do not hold as many entries as were chosen.
    """
    if form not in FORMATS:
        raise UnknownNameError("format", form, list(FORMATS))
    if vectors and form not in ("parquet", "jsonl"):
        raise UsageError(f"vectors go with parquet or jsonl, not with {form}")
    choice = choice or Choice()
    if choice.shares and form in ("srt", "vtt", "csv"):
        raise UsageError(f"splits go with parquet, jsonl or webdataset: {form} has a file a video and kind")
    target = _free_folder(destination)
    chosen = choose(catalog, choice)
    if chosen.rows.is_empty():
        left = sum(chosen.left_out.values())
        raise UsageError(
            f"no entry is left to export ({left} were flagged or partial)" if left else "no entry fits"
        )
    folder = _folder_beside(target)
    try:
        done = _write(catalog, chosen.rows, folder, form, vectors, media_roots)
        done.left_out, done.rows = chosen.left_out, dict.fromkeys(choice.shares, 0) | done.rows
        _write_manifest(folder, catalog, form, choice, done)
        folder.chmod(0o755)
        if target.exists():
            target.rmdir()
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    done.folder = target
    return done


def _free_folder(destination: str | Path) -> Path:
    """Raises:
    UsageError: there is something, or a folder cannot be looked for there.
    """
    try:
        if "\0" in str(destination):
            raise OSError("no path holds a NUL character")
        target = expanded(destination).resolve()
        is_free = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    except (OSError, RuntimeError) as error:  # no access, a name too long; links in a circle
        raise UsageError(f"{str(destination)!r} cannot be exported to: {error}") from None
    check_not_within(target)
    if not is_free:
        raise UsageError(f"{target} exists and is not empty; name a new folder")
    if target.exists() and (target == Path.cwd() or target.is_mount()):  # whoever is in it would see nothing
        what = "the current folder" if target == Path.cwd() else "where a disk is mounted"
        raise UsageError(f"{target} is {what}, which the finished export cannot replace; name a folder in it")
    return target


def _folder_beside(target: Path) -> Path:
    """A new folder that becomes ``target`` once it is whole; what killed exports to it left is removed.

    Raises:
        UsageError: none can be made there.
    """
    own = f".{target.name[:100]}.{socket.gethostname()}-"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f"{glob.escape(own)}*"):
            process = left.name.removeprefix(own).partition(".")[0]
            if process.isdecimal() and not _is_running(int(process)):
                shutil.rmtree(left)
        return Path(tempfile.mkdtemp(prefix=f"{own}{os.getpid()}.", dir=target.parent))
    except OSError as error:
        raise UsageError(f"{target} cannot be made: {error.strerror}; name another folder") from None


def _is_running(process: int) -> bool:
    """Whether a process of this machine has this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _write(
    catalog: Catalog,
    rows: pl.DataFrame,
    folder: Path,
    form: str,
    vectors: bool,
    media_roots: Sequence[str | Path],
) -> Exported:
    splits = dict(rows.group_by("split").len().sort("split").iter_rows())
    done = Exported(folder, form, splits)
    if form == "parquet":
        files = write_parquet(rows, folder)
    elif form == "jsonl":
        files = write_jsonl(rows, folder)
    elif form == "webdataset":
        files, done.problems = write_shards(catalog, rows, folder, media_roots)
    else:
        files = write_captions(rows, folder, form)  # type: ignore[arg-type]  # the three that are left
    written = sum(map(_COUNT[form], files))
    if written != len(rows):
        raise IntegrityError(f"{len(rows)} entries were to be exported, but the files hold {written}")
    done.files = len(files) + (len(write_vectors(catalog, rows, folder)) if vectors else 0)
    return done


def _write_manifest(folder: Path, catalog: Catalog, form: str, choice: Choice, done: Exported) -> None:
    between = str(choice.between) if choice.between is not None else None
    facts: dict[str, Any] = {
        "format": form,
        "catalog_head": catalog.version,
        "view": catalog.view_name,
        "producers": catalog.active().to_dicts(),
        "choice": {
            **vars(choice),
            "video": None if choice.video is None else names("video", choice.video),
            "kind": None if choice.kind is None else names("kind", choice.kind),
            "factors": None if choice.factors is None else names("factors", choice.factors),
            "between": between,
            "shares": {name: float(share) for name, share in choice.shares.items()},
            "seed": int(choice.seed),
        },
        "rows": done.rows,
        "left_out": done.left_out,
    }
    (folder / MANIFEST).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _parquet_rows(file: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_rows)


def _lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(1 for _ in stream)


def _cues(file: Path) -> int:
    """No text holds this arrow; pysubs2 would take any line with two times for a cue."""
    with file.open(encoding="utf-8") as stream:
        return sum(" --> " in line for line in stream)


def _markers(file: Path) -> int:
    return len(pl.read_csv(file, infer_schema=False))


def _samples(file: Path) -> int:
    with tarfile.open(file) as shard:
        return sum(name.endswith(".json") for name in shard.getnames())


_COUNT: dict[str, Callable[[Path], int]] = {
    "parquet": _parquet_rows,
    "jsonl": _lines,
    "webdataset": _samples,
    "srt": _cues,
    "vtt": _cues,
    "csv": _markers,
}
