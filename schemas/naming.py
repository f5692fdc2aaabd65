"""How users call their videos, and where the files lie."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from .span import Span


def storable(text: str) -> str:
    """``text`` with the bytes of a file name that are not UTF-8 written as ``\\xff``, as Arrow needs it."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class FileStamp(NamedTuple):
    """What changes when a file is written to: the key under which its hash is remembered."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> FileStamp:
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


@dataclass(frozen=True, slots=True)
class Root:
    """A registered media folder or manifest, or the folder of a file that was named itself.

    ``location`` may change when a catalog moves.
    """

    root_id: str
    kind: Literal["folder", "manifest", "files"]
    location: str

    def row(self) -> dict[str, Any]:
        return asdict(self) | {"location": storable(self.location)}


@dataclass(frozen=True, slots=True)
class VideoName:
    """How users call an asset, and where its file was seen: ``path`` is relative to the root.

    ``missing_since``: when a run found the root without the file (ISO 8601, UTC); None while it is there.
    """

    root_id: str
    name: str
    asset_id: str
    path: str
    stamp: FileStamp
    clip: Span | None = None
    benchmark: str | None = None
    split: str | None = None
    missing_since: str | None = None

    def row(self) -> dict[str, Any]:
        clip = self.clip
        return {
            "root_id": self.root_id,
            "name": storable(self.name),
            "asset_id": self.asset_id,
            "path": storable(self.path),
            "size_bytes": self.stamp.size_bytes,
            "mtime_ns": self.stamp.mtime_ns,
            "ctime_ns": self.stamp.ctime_ns,
            "inode": self.stamp.inode,
            "clip_in_us": clip.start_us if clip else None,
            "clip_out_us": clip.end_us if clip else None,
            "benchmark": self.benchmark,
            "split": self.split,
            "missing_since": self.missing_since,
        }

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> VideoName:
        clipped = row["clip_in_us"] is not None
        return cls(
            root_id=row["root_id"],
            name=row["name"],
            asset_id=row["asset_id"],
            path=row["path"],
            stamp=FileStamp(row["size_bytes"], row["mtime_ns"], row["ctime_ns"], row["inode"]),
            clip=Span(row["clip_in_us"], row["clip_out_us"]) if clipped else None,
            benchmark=row["benchmark"],
            split=row["split"],
            missing_since=row["missing_since"],
        )
