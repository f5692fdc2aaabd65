"""From a source to its asset: what is known is not read again, and what failed is not tried again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from evicat.catalog.media.identity import hash_file
from evicat.catalog.sources import Source
from evicat.schemas.asset import Asset, clip_asset_id
from evicat.schemas.errors import AssetError, UnreadableMediaError
from evicat.schemas.model import content_hash
from evicat.schemas.span import US
from evicat.storage.library import FileStamp, Root, VideoName
from evicat.storage.store import Store

Probe = Callable[[Source, str, int], Asset]
"""``(source, asset_id of the whole file, size in bytes)`` -> facts."""

LENGTH_TOLERANCE_S = 1.0
"""A manifest's duration may differ from the file's by this, or by 1 %, whichever is more."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which asset a source is. ``file_id`` is that of the whole file; empty where it was not read."""

    asset_id: str
    file_id: str
    size_bytes: int


class Library:
    """The files of a run, and what the catalog knows of them. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = {video.asset_id: video for video in store.videos()}

    def identify(self, source: Source) -> Identity:
        """Which asset a source is; hashed only if it is new or was written to, then named in the catalog.

        Raises:
            UnreadableMediaError: it cannot be read.
        """
        try:
            stamp = FileStamp.of(source.path.stat())
        except OSError as error:
            raise UnreadableMediaError(f"{source.path}: {error.strerror}") from None
        kind, location = source.root_kind, str(source.root)
        root = Root(content_hash([kind, location]), kind, location)
        path = os.path.relpath(source.path, source.root if kind != "manifest" else source.root.parent)
        known_id = self._store.known_asset_id(root.root_id, path, stamp, source.clip)
        if known_id and known_id in self._known:
            return Identity(known_id, "", stamp.size_bytes)
        file_id, size_bytes = hash_file(source.path)
        asset_id = clip_asset_id(file_id, source.clip) if source.clip else file_id
        self._store.add_root(root)
        self._store.add_name(_name(source, root, asset_id, path, stamp))
        return Identity(asset_id, file_id, size_bytes)

    def asset(self, source: Source, identity: Identity, probe: Probe) -> Asset:
        """Facts of an asset; it is probed only if its bytes were never seen.

        Raises:
            AssetError: it cannot be used, or could not when these bytes were first seen.
        """
        video = self._known.get(identity.asset_id)
        if video and video.asset:
            return video.asset
        if video:
            raise AssetError(f"{video.message} (unchanged since then, so not tried again)")
        try:
            asset = probe(source, identity.file_id, identity.size_bytes)
        except AssetError as error:
            self._store.add_video_failed(identity.asset_id, identity.size_bytes, error)
            raise
        self._store.add_asset(asset)
        return asset


def _name(source: Source, root: Root, asset_id: str, path: str, stamp: FileStamp) -> VideoName:
    return VideoName(
        root_id=root.root_id,
        name=source.name,
        asset_id=asset_id,
        path=path,
        stamp=stamp,
        clip=source.clip,
        benchmark=source.benchmark,
        split=source.split,
    )


def doubts(source: Source, asset: Asset) -> str:
    """What a user should know of a file that was used all the same; empty where all is well."""
    if asset.decoded_until_us is not None:
        header_s = (asset.header_duration_us or 0) / US
        return f"ends at {asset.decoded_until_us / US:.2f} s, but its header promises {header_s:.2f} s"
    wanted_s, length_s = source.expected_duration_s, asset.duration_us / US
    if wanted_s and abs(length_s - wanted_s) > max(LENGTH_TOLERANCE_S, wanted_s / 100):
        return f"is {length_s:.2f} s long, but the manifest says {wanted_s:.2f} s"
    return ""
