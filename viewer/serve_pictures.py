"""Pictures of the frames that entries cite, decoded when a page asks for them, and kept for the next one."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from evicat.catalog.media.clock import Clock
from evicat.catalog.media.frames import Wanted, read_windows
from evicat.catalog.media.jpeg import jpeg
from evicat.catalog.media.worker import WorkerPool
from evicat.schemas.asset import Asset
from evicat.schemas.errors import BusyError, UnreadableMediaError
from evicat.schemas.recipe import Profile
from evicat.schemas.span import Span

DECODERS = 2
"""Files that are decoded at the same time."""
MOST_WAITING = 512
"""Pictures that are waited for at the same time."""
AT_ONCE = 64
"""Pictures of one file that one pass over it brings at most."""
KEPT_BYTES = 64 * 2**20
QUALITY = 82


class Key(NamedTuple):
    """What a picture depends on: the bytes of the file, the frame, and how wide it is made at most."""

    asset_id: str
    pts: int
    width: int


class Kept:
    """The pictures that were asked for last, up to a number of bytes. Threads may share it."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[Key, bytes] = OrderedDict()
        self.bytes = 0

    def get(self, key: Key) -> bytes | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: Key, picture: bytes) -> None:
        with self._lock:
            self.bytes += len(picture) - len(self._held.pop(key, b""))
            self._held[key] = picture
            while self.bytes > self._most:
                self.bytes -= len(self._held.popitem(last=False)[1])


Waiting = dict[Key, "asyncio.Future[bytes]"]


class Pictures:
    """Decodes in worker processes. What is asked of a file while it is decoded comes in its next pass."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._pool = WorkerPool()
        self._decoders = anyio.CapacityLimiter(DECODERS)
        self._kept = Kept()
        self._waiting: dict[str, Waiting] = {}
        self._passes: dict[str, asyncio.Task[None]] = {}

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def kept(self, key: Key) -> bytes | None:
        """A picture that was decoded before."""
        return self._kept.get(key)

    async def decoded(self, key: Key, path: Path, asset: Asset) -> bytes:
        """The frame of ``asset``, whose file is ``path``, as JPEG.

        Raises:
            AssetError: the file cannot be decoded, or has no frame at this PTS any more.
            BusyError: too many pictures are waited for.
        """
        if sum(map(len, self._waiting.values())) >= MOST_WAITING:
            raise BusyError(f"{MOST_WAITING} pictures are waited for already; look again in a moment")
        waiting = self._waiting.setdefault(key.asset_id, {})
        if key not in waiting:
            waiting[key] = asyncio.get_running_loop().create_future()
        if key.asset_id not in self._passes:
            self._passes[key.asset_id] = asyncio.create_task(self._bring(path, asset))
        return await asyncio.shield(waiting[key])

    async def _bring(self, path: Path, asset: Asset) -> None:
        """Passes over one file until nobody waits for pictures of it."""
        waiting = self._waiting[asset.asset_id]
        while waiting:
            async with self._decoders:
                batch = dict(sorted(waiting.items(), key=lambda each: each[0].pts)[:AT_ONCE])
                told = partial(_tell, asyncio.get_running_loop(), batch)
                work = asyncio.to_thread(self._decode, path, asset, list(batch), told)
                [failed] = await asyncio.gather(work, return_exceptions=True)
            for key, future in batch.items():
                waiting.pop(key)
                if not future.done():
                    future.set_exception(
                        failed or UnreadableMediaError(f"PTS {key.pts} is no frame of this file any more")
                    )
                    future.exception()  # nobody may be left who asked
        del self._waiting[asset.asset_id], self._passes[asset.asset_id]

    def _decode(
        self, path: Path, asset: Asset, keys: Sequence[Key], told: Callable[[Key, bytes], None]
    ) -> None:
        """One pass; tells every picture as soon as it is there."""
        if asset.video is None:
            raise UnreadableMediaError("this file has no picture")
        clock = Clock.of(asset.video)
        times = [clock.time_us(key.pts) for key in keys]
        wanted = [
            Wanted(Span(time, time + 1), (time,), key.width) for time, key in zip(times, keys, strict=True)
        ]
        profile = self._profile
        found = read_windows(
            self._pool,
            path,
            asset,
            wanted,
            timeout_s=profile.decode_timeout_seconds,
            decoder=profile.decoder,
        )
        for index, frames in found:
            if frames and frames[0].pts == keys[index].pts:
                picture = jpeg(frames[0].image, QUALITY)
                self._kept.put(keys[index], picture)
                told(keys[index], picture)


def _tell(loop: asyncio.AbstractEventLoop, batch: Waiting, key: Key, picture: bytes) -> None:
    """Hand a picture to whoever waits for it, from the thread that decodes."""
    loop.call_soon_threadsafe(_settle, batch[key], picture)


def _settle(future: asyncio.Future[bytes], picture: bytes) -> None:
    if not future.done():
        future.set_result(picture)
