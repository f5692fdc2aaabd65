"""From a source to its asset: what is known is not read again, and what is no media is not tried again."""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from evicat.catalog.media.identity import hash_file
from evicat.catalog.sources import Source
from evicat.schemas.asset import Asset, clip_asset_id
from evicat.schemas.errors import (
    AssetError,
    DecoderCrashedError,
    DecodeStalledError,
    OutOfReachError,
    UnreadableMediaError,
)
from evicat.schemas.naming import FileStamp, VideoName, storable
from evicat.schemas.span import US
from evicat.storage.library import Video
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
    naming: VideoName | None = None
    """How the source is to be called when all is made of it; None: it is called so already."""


class Library:
    """The files of a run, and what the catalog knows of them. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = {video.asset_id: video for video in store.videos()}
        self._roots = {root.root_id: root for root in store.roots()}
        self._hashes: dict[tuple[Path, FileStamp], tuple[str, int]] = {}
        self._named = store.named()
        self._places: dict[str, list[Path]] | None = None
        self._lock = threading.Lock()

    def identify(self, source: Source) -> Identity:
        """Which asset a source is; hashed only if it is new or was written to.

        It is named so at once, unless the name stands for other bytes so far: then it does so when
        all is made of the new ones (``Identity.naming``), and shows the old until then.

        Raises:
            UnreadableMediaError: it cannot be read.
        """
        stamp = _stamp(source.path)
        root = source.own_root
        known_root = self._roots.get(root.root_id)
        is_placed = known_root is not None and known_root.location  # what was handed on knows no places
        if known_root is None or not is_placed or (known_root.kind == "files" and root.kind != "files"):
            self._roots[root.root_id] = root
            self._store.add_root(root)
        asset_id = self._store.known_asset_id(root.root_id, source.place, stamp, source.clip)
        known = self._known.get(asset_id or "")
        if known and (known.facts or self._is_given_up(known)):
            asset_id, file_id, size_bytes = known.asset_id, "", stamp.size_bytes
        else:
            file_id, size_bytes = self._hash(source.path, stamp)
            asset_id = clip_asset_id(file_id, source.clip) if source.clip else file_id
        naming = source.naming(asset_id, stamp)
        if self._named.get((root.root_id, storable(source.name)), asset_id) != asset_id:
            return Identity(asset_id, file_id, size_bytes, naming)
        self._store.add_name(naming)
        return Identity(asset_id, file_id, size_bytes)

    def places(self, asset_id: str, found: Iterable[Path]) -> list[Path]:
        """Where the files of an asset lie: those that this run found, and those that the catalog knows.

        In an order that does not depend on the run, so that of several side-cars the same one is read.
        """
        with self._lock:
            if self._places is None:
                self._places = self._known_places()
        return sorted({*found, *self._places.get(asset_id, ())})

    def _known_places(self) -> dict[str, list[Path]]:
        """Files of assets that have several names; of others, the run has found the only one."""
        names = [name for name in self._store.names() if name.missing_since is None]
        count = Counter(name.asset_id for name in names)
        places: dict[str, list[Path]] = defaultdict(list)
        for name in names:
            root = self._roots.get(name.root_id)
            if count[name.asset_id] > 1 and root and root.location:
                base = Path(root.location)
                base = base.parent if root.kind == "manifest" else base
                places[name.asset_id].append(Path(os.path.normpath(base / name.path)))
        return places

    def _is_given_up(self, video: Video) -> bool:
        """Whether a file that could not be read is not worth another try."""
        is_no_media = video.error_class == UnreadableMediaError("").error_class
        return is_no_media and "failed" not in self._store.retry

    def _hash(self, path: Path, stamp: FileStamp) -> tuple[str, int]:
        """Hash of a file, once per run however many clips are cut from it."""
        if (path, stamp) not in self._hashes:
            self._hashes[path, stamp] = hash_file(path)
        return self._hashes[path, stamp]

    def asset(self, source: Source, identity: Identity, probe: Probe) -> Asset:
        """Facts of an asset; it is probed only if its bytes were never seen.

        Raises:
            AssetError: it cannot be used, and that is recorded. What may be the machine's fault (a decoder
                that stalled or died) is tried again in the next run, bytes that are no media are not.
        """
        video = self._known.get(identity.asset_id)
        known = video.asset if video else None
        if video and known is None and self._is_given_up(video):
            raise AssetError(f"{video.message} (unchanged since then, so not tried again)")
        try:
            asset = known or probe(source, identity.file_id, identity.size_bytes)
        except OutOfReachError:
            raise  # nothing is wrong with these bytes
        except (UnreadableMediaError, DecodeStalledError, DecoderCrashedError) as error:
            self._store.add_video_failed(identity.asset_id, identity.size_bytes, error)
            raise
        if source.source_id and source.source_id != asset.source_id:
            asset = asset.model_copy(update={"source_id": source.source_id})
        if asset is not known:
            self._store.add_asset(asset)
        return asset


def _stamp(path: Path) -> FileStamp:
    try:
        found = path.stat()
    except OSError as error:
        raise OutOfReachError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableMediaError(f"{path}: not a regular file")
    return FileStamp.of(found)


def failed_windows(store: Store, asset_ids: set[str], producer_ids: set[str]) -> int:
    """How many windows of these assets failed in an earlier run, as the catalog has it now."""
    units = store.reader().dataset("units")
    columns = ["asset_id", "producer_id", "failed", "refused"]
    rows = units.to_table(filter="failed > 0 OR refused > 0", columns=columns).to_pylist()
    mine = (row for row in rows if row["asset_id"] in asset_ids and row["producer_id"] in producer_ids)
    return sum(row["failed"] + row["refused"] for row in mine)


def alike(sources: list[Source]) -> list[list[Source]]:
    """Sources in groups that may hold copies of each other (files of one size), the largest files first.

    What takes longest is begun first: the end of a run does not wait for one long film alone.
    """
    groups: dict[tuple[int, object], list[Source]] = defaultdict(list)
    for source in sources:
        try:
            groups[source.path.stat().st_size, ""].append(source)
        except OSError:
            groups[0, (source.path, source.name)].append(source)
    return [group for _, group in sorted(groups.items(), key=lambda item: -item[0][0])]


def doubts(source: Source, asset: Asset) -> str:
    """What a user should know of a file that was used all the same; empty where all is well."""
    if asset.decoded_until_us is not None:
        header_s = (asset.header_duration_us or 0) / US
        return f"ends at {asset.decoded_until_us / US:.2f} s, but its header promises {header_s:.2f} s"
    wanted_s, length_s = source.expected_duration_s, asset.duration_us / US
    if "clip_overruns" in asset.flags:
        return f"is cut at {length_s:.2f} s: its out point lies beyond the end of the file"
    if wanted_s and abs(length_s - wanted_s) > max(LENGTH_TOLERANCE_S, wanted_s / 100):
        return f"is {length_s:.2f} s long, but the manifest says {wanted_s:.2f} s"
    return ""
