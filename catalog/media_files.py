"""Finding the file of an asset: where it was registered, or anywhere below folders that a user names.

An asset is its bytes, so a file that was moved, renamed or brought to another machine is found by its size
and then its hash. Nothing is written: where a file lies is no part of a catalog's content.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from evicat.catalog.media.identity import hash_file
from evicat.schemas.asset import Asset, clip_asset_id
from evicat.schemas.errors import UnreadableMediaError, UsageError
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.places import expanded


class MediaFiles:
    """Where the files of assets lie now; a file is hashed once at most.

    Raises:
        UsageError: one of ``media_roots`` is no folder.
    """

    def __init__(
        self, roots: Sequence[Root], names: Sequence[VideoName], media_roots: Sequence[str | Path] = ()
    ) -> None:
        self._roots = {root.root_id: root for root in roots}
        self._names: dict[str, list[VideoName]] = defaultdict(list)
        for name in names:
            self._names[name.asset_id].append(name)
        self._folders = [expanded(folder).absolute() for folder in media_roots]
        for folder in self._folders:
            if not folder.is_dir():
                raise UsageError(f"media root {folder} is not a folder")
        self._hashes: dict[Path, str] = {}
        self.unreadable: list[str] = []
        """Files that might have been the one looked for, and why they could not be read."""

    def find(self, asset: Asset) -> Path | None:
        """The file that holds ``asset`` (for a cut, the whole file); None: nowhere."""
        for name in self._names[asset.asset_id]:
            path = self._registered(name)
            if path and self._is_it(path, asset, name.stamp):
                return path
        return next((path for path in self._by_size[asset.size_bytes] if self._is_it(path, asset)), None)

    def looked_at(self, asset: Asset) -> list[str]:
        """Where the file of ``asset`` was looked for, for people."""
        places = [path for name in self._names[asset.asset_id] if (path := self._registered(name))]
        return [str(path) for path in dict.fromkeys([*places, *self._folders])]

    def _registered(self, name: VideoName) -> Path | None:
        """The path that a name stands for; None where this catalog does not know the place of its root."""
        root = self._roots.get(name.root_id)
        if root is None or not root.location:
            return None
        location = Path(root.location)
        folder = location.parent if root.kind == "manifest" else location
        return Path(os.path.normpath(folder / name.path))

    def _is_it(self, path: Path, asset: Asset, stamp: FileStamp | None = None) -> bool:
        """Whether a file holds the bytes of ``asset``: by its stamp, else by its size and hash."""
        try:
            found = path.stat()
        except OSError:
            return False
        if found.st_size != asset.size_bytes or not path.is_file():
            return False
        if stamp is not None and FileStamp.of(found) == stamp:
            return True
        file_id = self._hash(path)
        return file_id is not None and asset.asset_id == (
            clip_asset_id(file_id, asset.clip) if asset.clip else file_id
        )

    def _hash(self, path: Path) -> str | None:
        if path not in self._hashes:
            try:
                self._hashes[path] = hash_file(path)[0]
            except UnreadableMediaError as error:
                if str(error) not in self.unreadable:
                    self.unreadable.append(str(error))
                return None
        return self._hashes[path]

    @cached_property
    def _by_size(self) -> dict[int, list[Path]]:
        """Every file below the media roots, by its size in bytes."""
        found: dict[int, list[Path]] = defaultdict(list)
        for folder in self._folders:
            for path in self._files(folder):
                try:
                    found[path.stat().st_size].append(path)
                except OSError as error:
                    self.unreadable.append(f"{path}: {error.strerror}")
        return found

    def _files(self, top: Path) -> Iterator[Path]:
        """Files below ``top`` in order, links included and loops ended."""

        def note(error: OSError) -> None:
            self.unreadable.append(f"{error.filename}: {error.strerror}")

        seen: set[str] = set()
        for folder, folders, files in os.walk(top, followlinks=True, onerror=note):
            real = os.path.realpath(folder)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
            folders.sort()
            yield from (Path(folder, file) for file in sorted(files))
