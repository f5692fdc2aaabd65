"""Which media files a request means: files, folders, globs, manifests."""

from __future__ import annotations

import csv
import glob
import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from evicat.catalog.media import MEDIA_SUFFIXES
from evicat.schemas.errors import UsageError
from evicat.schemas.model import Model, content_hash
from evicat.schemas.naming import FileStamp, Root, VideoName, storable
from evicat.schemas.span import Span, to_us

RootKind = Literal["folder", "manifest", "files"]
MANIFEST_SUFFIXES = frozenset({".csv", ".jsonl"})


@dataclass(frozen=True, slots=True)
class Source:
    """One video as the user names it: where its bytes are, and what a manifest says about it."""

    root: Path
    """The folder or manifest that it was found through; a file's own folder where it was named itself."""
    root_kind: RootKind
    name: str
    """Video name: the path relative to the root, or the manifest's id."""
    path: Path
    benchmark: str | None = None
    split: str | None = None
    source_id: str | None = None
    clip: Span | None = None
    expected_duration_s: float | None = None
    subtitle: Path | None = None
    subtitle_offset_us: int = 0
    language: str | None = None
    """Spoken language, where the manifest says it."""

    @property
    def own_root(self) -> Root:
        """The root as a catalog registers it: one location is one root, however it was named."""
        return _root(str(self.root), self.root_kind)

    @property
    def place(self) -> str:
        """Where the file lies, relative to the root (to the folder of a manifest)."""
        if self.root_kind == "folder":  # found below it: no need to resolve what the paths have in common
            return str(self.path)[len(str(self.root)) :].lstrip(os.sep)
        return os.path.relpath(self.path, self.root.parent if self.root_kind == "manifest" else self.root)

    def naming(self, asset_id: str, stamp: FileStamp) -> VideoName:
        """The name of ``asset_id`` that this source is."""
        return VideoName(
            root_id=self.own_root.root_id,
            name=self.name,
            asset_id=asset_id,
            path=self.place,
            stamp=stamp,
            clip=self.clip,
            benchmark=self.benchmark,
            split=self.split,
        )


@lru_cache(maxsize=1024)
def _root(location: str, kind: RootKind) -> Root:
    return Root(content_hash(location), kind, location)


class ManifestRow(Model):
    """One line of a manifest. Paths are relative to the manifest's folder."""

    id: str = Field(min_length=1)
    path: str = Field(min_length=1)
    benchmark: str | None = None
    split: str | None = None
    source_id: str | None = None
    in_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    out_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    duration_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    subtitle: str | None = None
    subtitle_offset_s: float = Field(default=0.0, allow_inf_nan=False)
    language: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _points_in_order(self) -> ManifestRow:
        if (self.in_s is None) != (self.out_s is None):
            raise ValueError("in_s and out_s must stand together")
        if self.in_s is not None and self.out_s is not None and to_us(self.out_s) <= to_us(self.in_s):
            raise ValueError(f"out_s must be > in_s, got in_s={self.in_s}, out_s={self.out_s}")
        return self


def find(requests: list[str]) -> tuple[list[Source], list[str]]:
    """Every video that ``requests`` mean, in order, each once; and a message for each that means none.

    A folder is walked through, links included and loops ended; hidden files (also ``._name``) are left out.

    Raises:
        UsageError: a manifest does not fit, or two of its rows have one id.
    """
    sources: dict[tuple[Path, str], Source] = {}
    problems: list[str] = []
    for request in requests:
        unreadable: list[str] = []
        found = list(_expand(request, unreadable))
        problems += unreadable
        if not found and not unreadable:
            problems.append(_nothing(request))
        for source in found:
            first = sources.setdefault((source.root, source.name), source)
            if first.path != source.path:
                problems.append(f"{source.path!r} is left out: its name reads like that of {first.path!r}")
    return list(sources.values()), problems


def folders(requests: list[str]) -> list[Root]:
    """The roots that folders and manifests among ``requests`` are, whatever is in them."""
    found = []
    for request in requests:
        path = Path(request).absolute()
        if path.is_dir():
            found.append(_root(str(path), "folder"))
        elif path.is_file() and path.suffix.lower() in MANIFEST_SUFFIXES:
            found.append(_root(str(path), "manifest"))
    return found


def _expand(request: str, unreadable: list[str]) -> Iterator[Source]:
    if not request:
        return
    path = Path(request).absolute()
    if path.exists():
        yield from _at(path, unreadable)
    else:
        for match in sorted(glob.glob(request, recursive=True)):  # noqa: PTH207 (Path.glob is relative)
            yield from _at(Path(match).absolute(), unreadable)


def _at(path: Path, unreadable: list[str]) -> Iterator[Source]:
    if path.is_dir():
        yield from _folder(path, unreadable)
    elif path.suffix.lower() in MANIFEST_SUFFIXES:
        yield from read_manifest(path)
    else:
        yield single(path)


def single(path: Path) -> Source:
    """A file that is named itself; its root is its folder."""
    path = path.absolute()
    return Source(root=path.parent, root_kind="files", name=storable(path.name), path=path)


def _folder(root: Path, unreadable: list[str]) -> Iterator[Source]:
    def note(error: OSError) -> None:
        unreadable.append(f"cannot read folder {error.filename}: {error.strerror}")

    seen: set[str] = set()
    tops = deque([os.fspath(root)])
    while tops:  # links come after all real folders, so that a film is called by its real path
        for folder, names, files in os.walk(tops.popleft(), onerror=note):
            real = os.path.realpath(folder)
            if real in seen:
                names.clear()
                continue
            seen.add(real)
            names[:] = sorted(name for name in names if not name.startswith("."))
            tops += [link for name in names if os.path.islink(link := os.path.join(folder, name))]  # noqa: PTH114, PTH118
            here = Path(folder)
            below = "" if here == root else f"{here.relative_to(root).as_posix()}/"
            for name in sorted(files):
                if not name.startswith(".") and _suffix(name) in MEDIA_SUFFIXES:
                    video = storable(f"{below}{name}")
                    yield Source(root=root, root_kind="folder", name=video, path=here / name)


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 (asked for every file: no Path is made for it)


def _nothing(request: str) -> str:
    if Path(request).is_dir():
        return f"no media in folder {request}: looked for {' '.join(sorted(MEDIA_SUFFIXES))}"
    if Path(request).is_file():
        return f"no rows in manifest {request}"
    return f"no such file, folder or pattern: {request}"


def read_manifest(file: Path) -> list[Source]:
    """Rows of a CSV (with a header line) or JSONL manifest; see :class:`ManifestRow` for the columns.

    Raises:
        UsageError: a row does not fit (file, line, field and value are named), or an id stands twice.
    """
    sources: dict[str, Source] = {}
    for line, raw in _rows(file):
        try:
            row = ManifestRow.model_validate(raw)
        except ValidationError as error:
            item = error.errors()[0]
            field = ".".join(map(str, item["loc"])) or "row"
            raise UsageError(f"{file}, line {line}, {field}: {item['msg']}, got {item['input']!r}") from None
        if row.id in sources:
            raise UsageError(f"{file}, line {line}: id {row.id!r} stands twice; ids must be unique")
        sources[row.id] = _source(file, row)
    return list(sources.values())


def _source(file: Path, row: ManifestRow) -> Source:
    clip = None if row.in_s is None or row.out_s is None else Span.from_seconds(row.in_s, row.out_s)
    return Source(
        root=file,
        root_kind="manifest",
        name=row.id,
        path=(file.parent / row.path),
        benchmark=row.benchmark,
        split=row.split,
        source_id=row.source_id,
        clip=clip,
        expected_duration_s=row.duration_s,
        subtitle=file.parent / row.subtitle if row.subtitle else None,
        subtitle_offset_us=to_us(row.subtitle_offset_s),
        language=row.language,
    )


def _rows(file: Path) -> list[tuple[int, Any]]:
    try:
        return list(_csv_rows(file) if file.suffix.lower() == ".csv" else _json_rows(file))
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 at byte {error.start}; save the manifest as UTF-8") from None
    except (OSError, csv.Error) as error:
        raise UsageError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _csv_rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream, restkey="(more columns than the header)")
        for raw in reader:
            yield reader.line_num, {key: value for key, value in raw.items() if value not in ("", None)}


def _json_rows(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open(encoding="utf-8-sig") as stream:
        for line, text in enumerate(stream, start=1):
            if text.strip():
                try:
                    yield line, json.loads(text)
                except json.JSONDecodeError as error:
                    raise UsageError(f"{file}, line {line}: not JSON: {error}") from None
