"""Media files over HTTP: only the files of assets, only while they hold the bytes that were indexed."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from evicat.schemas.asset import Asset
from evicat.schemas.naming import FileStamp
from evicat.viewer.app_catalogs import Catalogs, Opened

LOOK_AGAIN_S = 5.0
"""Seconds for which a file that was not found is not looked for again: that may mean to hash files."""
_RANGE = re.compile(r"bytes\s*=\s*(?:[0-9]{1,18}-[0-9]{0,18}|-[0-9]{1,18})\s*", re.IGNORECASE)
_BYTES = re.compile(r"bytes\s*=", re.IGNORECASE)
_WEB_CODECS: Final = {"vp8", "vp9", "av1", "opus", "vorbis"}
_TYPES: Final = {
    "mov": ("video/mp4", "audio/mp4"),
    "matroska": ("video/x-matroska", "audio/x-matroska"),
    "ogg": ("video/ogg", "audio/ogg"),
    "mp3": ("audio/mpeg", "audio/mpeg"),
    "wav": ("audio/wav", "audio/wav"),
    "flac": ("audio/flac", "audio/flac"),
    "aac": ("audio/aac", "audio/aac"),
    "avi": ("video/x-msvideo", "video/x-msvideo"),
    "mpegts": ("video/mp2t", "video/mp2t"),
    "mpeg": ("video/mpeg", "audio/mpeg"),
    "asf": ("video/x-ms-asf", "video/x-ms-asf"),
    "flv": ("video/x-flv", "video/x-flv"),
}
"""By the first name of a container: with picture, and without."""


def media_type(asset: Asset) -> str:
    """The content type of an asset's file, by what it was found to be; never by its name."""
    codecs = {stream.codec for stream in (asset.video, asset.audio) if stream}
    if asset.container.startswith("matroska") and codecs <= _WEB_CODECS:
        return "video/webm" if asset.video else "audio/webm"
    with_picture, without = _TYPES.get(asset.container.partition(",")[0], ("application/octet-stream",) * 2)
    return with_picture if asset.video else without


class Found(NamedTuple):
    """Where a file lies, and the stamp that it had when its bytes were looked at."""

    path: Path
    stamp: FileStamp


class Files:
    """Where the files of assets lie; one whose stamp changed is looked at again. Threads may share it."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._lock = threading.Lock()
        self._looking: dict[str, threading.Lock] = {}
        self._found: dict[str, Found] = {}
        self._lost: dict[str, float] = {}

    def find(self, opened: Opened, asset: Asset) -> Found | None:
        """The file of an asset; None where no file with its bytes is found.

        A file that is not what its stamp says is hashed, which takes a second for each GB.
        """
        key = asset.asset_id
        with self._lock:
            looking = self._looking.setdefault(key, threading.Lock())
        with looking:
            known = self._found.get(key)
            if known and _stamp(known.path) == known.stamp:
                return known
            if time.monotonic() - self._lost.get(key, -LOOK_AGAIN_S) < LOOK_AGAIN_S:
                return None
            self._found.pop(key, None)
            place = self._look(opened, asset)
            if place is None:
                self._lost[key] = time.monotonic()
            else:
                self._found[key] = place
            return place

    def is_looking_for(self, asset_id: str) -> bool:
        """Whether the file of this asset is being looked for, so that :meth:`find` would wait for that."""
        with self._lock:
            looking = self._looking.get(asset_id)
        return looking is not None and looking.locked()

    def _look(self, opened: Opened, asset: Asset) -> Found | None:
        path = opened.catalog.media_files(self._catalogs.media_roots).find(asset)
        stamp = _stamp(path) if path else None
        return Found(path, stamp) if path and stamp else None


def _stamp(path: Path) -> FileStamp | None:
    try:
        return FileStamp.of(path.stat())
    except OSError:
        return None


class MediaResponse(FileResponse):
    """The bytes of an asset, whole or one range of them; RFC 9110 lets a server refuse all other ranges.

    Its ETag is the asset's identity, which is that of the bytes.
    """

    def __init__(self, place: Found, asset: Asset) -> None:
        super().__init__(
            place.path,
            stat_result=place.path.stat(),
            media_type=media_type(asset),
            headers={"etag": f'"{asset.asset_id}"', "cache-control": "private, max-age=3600"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Headers(scope=scope).get("range")
        if asked is not None and (scope["method"] != "GET" or not _BYTES.match(asked)):
            headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
            scope = {**scope, "headers": headers}  # units that are not known, and ranges of HEAD, are ignored
        elif asked is not None and not _RANGE.fullmatch(asked):
            await self._unsatisfied(scope, receive, send)
            return
        await super().__call__(scope, receive, send)

    async def _unsatisfied(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = self.headers["content-length"]
        headers = {"content-range": f"bytes */{size}", "accept-ranges": "bytes"}
        refusal = Response("Ask for one range of bytes.\n", 416, headers, "text/plain")
        await refusal(scope, receive, send)
