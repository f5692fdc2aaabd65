"""Facts of files that no catalog knows: probed side by side, and kept in the user's cache folder."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import ValidationError

from evicat.catalog.build import probe
from evicat.catalog.kit import Kit
from evicat.catalog.media.identity import hash_file
from evicat.catalog.sources import Source
from evicat.schemas.asset import Asset, clip_asset_id
from evicat.schemas.errors import AssetError, OutOfReachError, UnreadableMediaError, UsageError
from evicat.schemas.model import content_hash
from evicat.schemas.naming import FileStamp

CACHE_FILE = "probes.sqlite"
_TABLE = """CREATE TABLE IF NOT EXISTS probes (
    path BLOB, clip TEXT, stamp TEXT, release TEXT, facts TEXT, error TEXT, PRIMARY KEY (path, clip)
)"""
_HASHES = "CREATE TABLE IF NOT EXISTS hashes (path BLOB PRIMARY KEY, stamp TEXT, file_id TEXT)"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Probed:
    """A file that was looked at: its facts, or why it has none."""

    source: Source
    asset: Asset | None
    error: str = ""


class ProbeCache:
    """Probes by path, cut and stamp, in an SQLite file; those of another release of evicat do not count.

    Without a ``file`` nothing is kept.

    Raises:
        UsageError: the file is no such cache, or is damaged.
    """

    def __init__(self, file: Path | None) -> None:
        self._release = f"{version('evicat')} av {version('av')}"
        self._file = file
        with self.usable():
            self._database = sqlite3.connect(file or ":memory:", timeout=30)
            self._database.execute("PRAGMA synchronous = OFF")  # what a crash loses is probed again
            self._database.execute(_TABLE)
            self._database.execute(_HASHES)

    @classmethod
    def of_user(cls) -> tuple[ProbeCache, str]:
        """That of the user's cache folder; and why nothing is kept, where the folder cannot be written."""
        from platformdirs import user_cache_path

        folder = user_cache_path("evicat", appauthor=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return cls(None), f"probes are not kept: {folder}: {error.strerror}"
        if not os.access(folder, os.W_OK):
            return cls(None), f"probes are not kept: {folder} cannot be written"
        return cls(folder / CACHE_FILE), ""

    @contextmanager
    def usable(self) -> Iterator[None]:
        """Around what reads or writes the cache: what is wrong with it is said so."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise UsageError(f"{self._file} is no usable cache of probes ({error}); remove it") from None

    def get(self, source: Source, stamp: FileStamp) -> Probed | None:
        """What was found of this very file; None: probe it."""
        row = self._database.execute(
            "SELECT facts, error FROM probes WHERE path = ? AND clip = ? AND stamp = ? AND release = ?",
            (*_key(source), _text(stamp), self._release),
        ).fetchone()
        if row is None:
            return None
        try:
            asset = Asset.model_validate_json(row[0]) if row[0] else None
        except ValidationError:  # of a checkout of the same release in which an asset has other facts
            return None
        return Probed(source, asset, row[1])

    def put(self, found: Probed, stamp: FileStamp) -> None:
        facts = found.asset.model_dump_json() if found.asset else ""
        row = (*_key(found.source), _text(stamp), self._release, facts, found.error)
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO probes VALUES (?, ?, ?, ?, ?, ?)", row)

    def hash_of(self, path: Path, stamp: FileStamp) -> str | None:
        row = self._database.execute(
            "SELECT file_id FROM hashes WHERE path = ? AND stamp = ?", (os.fsencode(path), _text(stamp))
        ).fetchone()
        return row[0] if row else None

    def put_hash(self, path: Path, stamp: FileStamp, file_id: str) -> None:
        with self._database:
            row = (os.fsencode(path), _text(stamp), file_id)
            self._database.execute("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?)", row)

    def close(self) -> None:
        self._database.close()


def _key(source: Source) -> tuple[bytes, str]:
    clip = source.clip
    return os.fsencode(source.path), f"{clip.start_us}:{clip.end_us}" if clip else ""


def _text(stamp: FileStamp) -> str:
    return " ".join(map(str, stamp))


def look_at(
    sources: Collection[Source], kit: Kit, known_sizes: Collection[int], tell: Progress, warn: Progress
) -> Iterator[Probed]:
    """Facts of files, in no certain order; ``asset_id`` is the file's own only where another may be its copy.

    A file is hashed only if another one, or one of ``known_sizes`` that the catalog has, is of its size.
    ``tell`` hears how far it has come, ``warn`` that the next plan has to probe again.
    """
    cache, why_not = ProbeCache.of_user()
    if why_not:
        warn(why_not)
    with closing(cache), cache.usable():
        stamps: dict[Source, FileStamp] = {}
        for source in sources:
            try:
                stamps[source] = _stamp(source.path)
            except UnreadableMediaError as error:
                yield Probed(source, None, str(error))
        ids = _file_ids(stamps, known_sizes, cache, tell)
        for found in _probed(stamps, kit, cache, tell):
            yield _named(found, ids.get(found.source.path, ""))


def _stamp(path: Path) -> FileStamp:
    try:
        found = path.stat()
    except OSError as error:
        raise OutOfReachError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableMediaError(f"{path}: not a regular file")
    return FileStamp.of(found)


def _probed(stamps: dict[Source, FileStamp], kit: Kit, cache: ProbeCache, tell: Progress) -> Iterator[Probed]:
    missing = []
    for source, stamp in stamps.items():
        known = cache.get(source, stamp)
        if known:
            yield known
        else:
            missing.append(source)
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="probe") as pool:
        running = [pool.submit(_probe, source, stamps[source], kit) for source in missing]
        try:
            for number, future in enumerate(as_completed(running), start=1):
                tell(f"Probing new files: {number} of {len(missing)}")
                found, is_lasting = future.result()
                if is_lasting:
                    cache.put(found, stamps[found.source])
                yield found
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _probe(source: Source, stamp: FileStamp, kit: Kit) -> tuple[Probed, bool]:
    """Facts of a file, and whether they hold as long as it is not written to."""
    try:
        asset = probe(source.path, kit, "", stamp.size_bytes, source_id="", clip=source.clip)
    except AssetError as error:
        is_lasting = isinstance(error, UnreadableMediaError) and not isinstance(error, OutOfReachError)
        return Probed(source, None, str(error)), is_lasting
    return Probed(source, asset), True


def _named(found: Probed, file_id: str) -> Probed:
    """The same under the identity of its bytes, or, where nothing can be a copy of it, of its path."""
    if found.asset is None:
        return found
    source = found.source
    asset_id = file_id or content_hash(["new", os.fsencode(source.path).hex()])
    if source.clip:
        asset_id = clip_asset_id(asset_id, source.clip)
    return Probed(source, found.asset.model_copy(update={"asset_id": asset_id}))


def _file_ids(
    stamps: dict[Source, FileStamp], known_sizes: Collection[int], cache: ProbeCache, tell: Progress
) -> dict[Path, str]:
    """Identities of the files that may be copies; of one that cannot be read its probe says why."""
    files = {source.path: stamp for source, stamp in stamps.items()}
    sizes = Counter(stamp.size_bytes for stamp in files.values()) + Counter(known_sizes)
    doubtful = {path: stamp for path, stamp in files.items() if sizes[stamp.size_bytes] > 1}
    ids = {path: known for path, stamp in doubtful.items() if (known := cache.hash_of(path, stamp))}
    missing = [path for path in doubtful if path not in ids]
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="hash") as pool:
        futures = {pool.submit(hash_file, path): path for path in missing}
        for number, future in enumerate(as_completed(futures), start=1):
            tell(f"Comparing files of one size: {number} of {len(missing)}")
            path = futures[future]
            with suppress(OutOfReachError):
                ids[path], _ = future.result()
                cache.put_hash(path, doubtful[path], ids[path])
    return ids
