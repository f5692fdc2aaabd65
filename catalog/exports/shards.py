"""Entries with the pictures that they cite, as WebDataset shards."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evicat.catalog.cited_frames import JPEG_QUALITY
from evicat.catalog.media.jpeg import jpeg
from evicat.catalog.query import Catalog
from evicat.schemas.errors import AssetError

SHARD_SAMPLES = 1_000
SHARD_BYTES = 1 << 30
"""A shard is closed when it has so many samples, or so many bytes."""


class ShardWriter:
    """Samples into ``NAME-000000.tar`` and on; the same samples give the same bytes."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._tar: tarfile.TarFile | None = None
        self._samples = self._bytes = 0
        self.files: list[Path] = []

    def write(self, key: str, parts: Sequence[tuple[str, bytes]]) -> None:
        """One sample; ``parts`` are its files, by what follows the key in their names."""
        if self._tar is None or self._samples >= SHARD_SAMPLES or self._bytes >= SHARD_BYTES:
            self._open_next()
        assert self._tar is not None
        for suffix, content in parts:
            info = tarfile.TarInfo(f"{key}.{suffix}")
            info.size = len(content)
            self._tar.addfile(info, io.BytesIO(content))
            self._bytes += len(content)
        self._samples += 1

    def _open_next(self) -> None:
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{self._name}-{len(self.files):06d}.tar"
        self._tar = tarfile.open(file, "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  # closed with the shard
        self._samples = self._bytes = 0
        self.files.append(file)

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()
            self._tar = None


def write_shards(
    catalog: Catalog, rows: pl.DataFrame, folder: Path, media_roots: Sequence[str | Path] = ()
) -> tuple[list[Path], list[str]]:
    """Shards of each split, and what pictures could not be had.

    A sample is ``KEY.json`` and ``KEY.00.jpg`` and on, for each frame that the entry cites, at the size at
    which it was shown; the key is the entry's id with ``_`` for its dots. An entry whose file is out of reach
    is written without pictures.
    """
    files: list[Path] = []
    problems: list[str] = []
    for (split,), part in rows.sort("split", maintain_order=True).group_by("split", maintain_order=True):
        writer = ShardWriter(folder / str(split), str(split))
        try:
            for (_,), of_asset in part.group_by("asset_id", maintain_order=True):
                for row, pictures in _illustrated(catalog, of_asset.to_dicts(), media_roots, problems):
                    key = row["entry_id"].replace(".", "_")
                    content = json.dumps(row | {"pictures": len(pictures)}, ensure_ascii=False).encode()
                    parts = [(f"{number:02d}.jpg", picture) for number, picture in enumerate(pictures)]
                    writer.write(key, [("json", content), *parts])
        finally:
            writer.close()
        files += writer.files
    return files, problems


def _illustrated(
    catalog: Catalog, rows: list[dict[str, Any]], media_roots: Sequence[str | Path], problems: list[str]
) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Each row of one asset with its pictures, in one pass over its file: bare ones first."""
    yield from ((row, []) for row in rows if not row["frames"])
    waiting = {row["entry_id"]: row for row in rows if row["frames"]}
    try:
        for entry_id, frames in catalog.cited_pictures(list(waiting.values()), media_roots=media_roots):
            row = waiting.pop(entry_id)
            if lost := len(row["frames"]) - len(frames):
                problems.append(f"{entry_id}: {lost} of {len(row['frames'])} cited frames do not decode")
            yield row, [jpeg(frame.image, JPEG_QUALITY) for frame in frames]
    except AssetError as error:
        problems.append(str(error))
    yield from ((row, []) for row in waiting.values())
