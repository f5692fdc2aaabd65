"""Pictures and cuts of what entries cite, from the source media."""

from __future__ import annotations

import base64
import html
import math
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from evicat.catalog.media.clock import Clock
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Shown, Wanted, frame_times, read_windows
from evicat.catalog.media.jpeg import jpeg
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.media_files import MediaFiles
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.errors import UnreadableMediaError, UsageError
from evicat.schemas.naming import Root, VideoName
from evicat.schemas.span import US, Span, format_time, to_us

from . import arguments
from .shown import Shown as ShownRows

MAX_FRAMES = 64
THUMBNAIL = 240
"""Pixels: width of a picture in a notebook."""
THUMBNAIL_QUALITY = 85


@dataclass(frozen=True)
class Frames(Sequence[Frame]):
    """Frames of one span in time order; a notebook shows them with their times."""

    video: str
    span: Span
    frames: tuple[Frame, ...]

    def __len__(self) -> int:
        return len(self.frames)

    @overload
    def __getitem__(self, index: int) -> Frame: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Frame, ...]: ...

    def __getitem__(self, index: int | slice) -> Frame | tuple[Frame, ...]:
        return self.frames[index]

    def __iter__(self) -> Iterator[Frame]:
        return iter(self.frames)

    @property
    def times_s(self) -> list[float]:
        return [frame.time_s for frame in self.frames]

    def _repr_html_(self) -> str:
        pictures = "".join(_figure(frame) for frame in self.frames)
        return f"<div><b>{html.escape(self.video)}</b> {self.span}<br>{pictures or 'no frames'}</div>"


def _figure(frame: Frame) -> str:
    picture = base64.b64encode(jpeg(scaled(frame.image, THUMBNAIL), THUMBNAIL_QUALITY)).decode()
    return (
        '<figure style="display:inline-block;margin:4px;text-align:center">'
        f'<img src="data:image/jpeg;base64,{picture}" width="{min(THUMBNAIL, frame.width)}">'
        f"<figcaption>{format_time(frame.time_us)}</figcaption></figure>"
    )


def times_of(span: Span, *, n: int | None, fps: float | None, max_frames: int) -> tuple[int, ...]:
    """The instants to look at: the middles of ``n`` equal parts, or of parts of ``1 / fps`` seconds.

    Where ``fps`` asks for more than ``max_frames``, so many are spread evenly.

    Raises:
        UsageError: both or numbers that do not fit.
    """
    if n is not None and fps is not None:
        raise UsageError("n and fps both say how many frames: give one of them")
    if fps is not None and not 0 < arguments.number(fps) < math.inf:
        raise UsageError(f"fps must be above 0, got {fps!r}")
    max_frames = arguments.whole("max_frames", max_frames, 1)
    if n is not None and not 1 <= arguments.number(n) <= max_frames:
        raise UsageError(f"n must be from 1 to max_frames ({max_frames}), got {n!r}")
    count = (
        arguments.whole("n", n, 1)
        if n is not None
        else 8
        if fps is None
        else max(1, round(span.duration_us / US * fps))
    )
    return frame_times(span, min(count, max_frames))


def _citing(row: dict[str, Any], video: VideoFacts, width: int) -> Wanted:
    """The frames that an entry cites, as a window that reaches from the first to the last of them."""
    clock = Clock.of(video)
    times = sorted({clock.time_us(frame["pts"]) for frame in row["frames"]})
    return Wanted(Span(times[0], times[-1] + 1), tuple(times), row["shown_width"] or width)


def cropped(image: npt.NDArray[np.uint8], box: Sequence[float]) -> npt.NDArray[np.uint8]:
    """The part of a picture in ``box``: ``(x1, y1, x2, y2)`` in 1000 x 1000, widened to whole pixels.

    Raises:
        UsageError: the box is reversed, empty, or outside.
    """
    try:
        x1, y1, x2, y2 = (float(value) for value in box)
    except (TypeError, ValueError):
        raise UsageError(f"a box has four numbers (x1, y1, x2, y2), got {box!r}") from None
    if not (0 <= x1 < x2 <= 1000 and 0 <= y1 < y2 <= 1000):
        raise UsageError(f"a box must have 0 <= x1 < x2 <= 1000, and y alike; got {tuple(box)}")
    height, width = image.shape[:2]
    left, top = int(x1 * width // 1000), int(y1 * height // 1000)
    right, bottom = -int(-x2 * width // 1000), -int(-y2 * height // 1000)
    return image[top : max(bottom, top + 1), left : max(right, left + 1)]


def scaled(image: npt.NDArray[np.uint8], width: int) -> npt.NDArray[np.uint8]:
    """``image`` at most ``width`` pixels wide, its sides in proportion."""
    import cv2

    if image.shape[1] <= width:
        return image
    height = max(1, round(image.shape[0] * width / image.shape[1]))
    small: npt.NDArray[np.uint8] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return small


class SourceMedia:
    """Pictures of what a catalog shows, each decoded in a worker process from the file where it lies now."""

    def __init__(self, shown: ShownRows) -> None:
        self._shown = shown

    def files(self, media_roots: Sequence[str | Path] = ()) -> MediaFiles:
        """Finds the files of assets: where they were registered, or anywhere below ``media_roots``."""
        roots = [Root(**row) for row in self._shown.read("roots").to_dicts()]
        names = [VideoName.from_row(row) for row in self._shown.read("names").to_dicts()]
        return MediaFiles(roots, names, media_roots)

    def of_entry(self, entry: dict[str, Any], width: int | None, roots: Sequence[str | Path]) -> Frames:
        """The frames that an entry cites."""
        span = Span.from_seconds(entry["start_s"], entry["end_s"])
        cited = tuple(to_us(frame["time_s"]) for frame in entry["frames"])
        return self.of_span(entry["asset_id"], span, cited, width, roots)

    def of_span(
        self,
        asset_id: str,
        span: Span,
        times_us: tuple[int, ...],
        width: int | None,
        roots: Sequence[str | Path],
    ) -> Frames:
        """The frames on display at ``times_us``, upright, at most ``width`` pixels wide.

        Raises:
            UsageError: the asset has no picture.
            AssetError: the file was not found, or cannot be decoded.
        """
        asset, path = self._file(asset_id, roots)
        if asset.video is None:
            raise UsageError(f"{path} has no picture")
        if width is not None and width < 1:
            raise UsageError(f"width must be at least 1, got {width}")
        wanted = [Wanted(span, times_us, width or asset.video.width)]
        found = self._decode(path, asset, wanted)
        frames = next((frames for _, frames in found), ())
        return Frames(self._shown.names.get(asset_id, asset_id), span, frames)

    def cited(
        self, rows: Sequence[dict[str, Any]], roots: Sequence[str | Path]
    ) -> Iterator[tuple[str, tuple[Frame, ...]]]:
        """The frames that entries of one asset cite, as they are complete, in one pass over its file.

        Raises:
            AssetError: the file was not found, or cannot be decoded.
        """
        if not rows:
            return
        asset, path = self._file(rows[0]["asset_id"], roots)
        if asset.video is None:
            return
        width = asset.video.width
        wanted = [_citing(row, asset.video, width) for row in rows]
        for index, frames in self._decode(path, asset, wanted):
            cited = {frame["pts"] for frame in rows[index]["frames"]}
            yield rows[index]["entry_id"], tuple(frame for frame in frames if frame.pts in cited)

    def _decode(self, path: Path, asset: Asset, wanted: Sequence[Wanted]) -> Iterator[Shown]:
        profile = self._shown.profile
        return read_windows(
            self._workers,
            path,
            asset,
            wanted,
            timeout_s=profile.decode_timeout_seconds,
            decoder=profile.decoder,
        )

    def clip(self, asset_id: str, span: Span, target: Path, roots: Sequence[str | Path]) -> Path:
        """A span as a file of its own; raises as :func:`.cut.write_clip` does, or for a lost file."""
        from .cut import write_clip

        asset, path = self._file(asset_id, roots)
        write_clip(path, asset, span, target, self._workers, self._shown.profile)
        return target

    def duration_us(self, asset_id: str) -> int:
        """Length of an asset's timeline.

        Raises:
            UnreadableMediaError: its file could not be read.
        """
        return self._asset(asset_id).duration_us

    def _asset(self, asset_id: str) -> Asset:
        asset = self._shown.asset(asset_id)
        if asset is None:
            name = self._shown.names.get(asset_id, asset_id)
            raise UnreadableMediaError(f"the file of {name} could not be read when it was indexed")
        return asset

    def _file(self, asset_id: str, media_roots: Sequence[str | Path]) -> tuple[Asset, Path]:
        asset = self._asset(asset_id)
        media = self.files(media_roots)
        path = media.find(asset)
        if path is None:
            looked = ", ".join(media.looked_at(asset)) or "nowhere: this catalog knows no place of it"
            name = self._shown.names.get(asset_id, asset_id)
            raise UnreadableMediaError(
                f"the media of {name} was not found (asset {asset_id}, {asset.size_bytes} bytes). Looked in "
                f"{looked}. Name the folder that holds it, under whatever name, with --media-root (Python: "
                "media_roots)"
            )
        return asset, path

    @cached_property
    def _workers(self) -> WorkerPool:
        pool = WorkerPool()
        weakref.finalize(self, pool.close)
        return pool
