"""The frames that entries cite, decoded again from the media and written as pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evicat.catalog.drawn_boxes import draw_boxes
from evicat.catalog.media.clock import Clock
from evicat.catalog.media.frames import Shown, Wanted, decode_windows
from evicat.catalog.media.jpeg import jpeg
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import Span

JPEG_QUALITY = 92

Decode = Callable[[Path, Asset, Sequence[Wanted]], Iterable[Shown]]


@dataclass(frozen=True, slots=True)
class Citation:
    """A frame that an entry cites. ``width`` is that at which it was shown; None: its own."""

    entry_id: str
    pts: int
    width: int | None
    boxes: tuple[ObjectBox, ...] = ()
    """Boxes of the entry in this frame that are to be drawn."""


@dataclass
class Written:
    """What became of the citations."""

    files: list[Path] = field(default_factory=list)
    not_decoded: list[Citation] = field(default_factory=list)
    """Those at whose PTS the file has no frame (any more)."""


def write_frames(
    path: Path,
    asset: Asset,
    citations: Iterable[Citation],
    folder: Path,
    *,
    decode: Decode = decode_windows,
) -> Written:
    """Write each cited frame as ``ENTRY_SECONDS.jpg`` into ``folder``, in one pass over the file.

    Raises:
        AssetError: the file cannot be decoded.
    """
    written = Written()
    video = asset.video
    by_frame: dict[tuple[int, int], list[Citation]] = defaultdict(list)
    for citation in citations:
        if video is None:
            written.not_decoded.append(citation)
        else:
            by_frame[citation.pts, citation.width or video.width].append(citation)
    if video is None or not by_frame:
        return written
    folder.mkdir(parents=True, exist_ok=True)
    keys = sorted(by_frame)
    wanted = [_wanted(video, pts, width) for pts, width in keys]
    for index, frames in decode(path, asset, wanted):
        citing = by_frame[keys[index]]
        if not frames or frames[0].pts != keys[index][0]:
            written.not_decoded += citing
            continue
        plain = jpeg(frames[0].image, JPEG_QUALITY)
        for citation in citing:
            drawn = draw_boxes(frames[0].image, citation.boxes) if citation.boxes else None
            picture = plain if drawn is None else jpeg(drawn, JPEG_QUALITY, sharp=True)
            file = folder / f"{citation.entry_id}_{frames[0].time_us / 1e6:013.6f}s.jpg"
            file.write_bytes(picture)
            written.files.append(file)
    written.files.sort()
    return written


def _wanted(video: VideoFacts, pts: int, width: int) -> Wanted:
    """The window of one microsecond in which the frame of this PTS begins."""
    time_us = Clock.of(video).time_us(pts)
    return Wanted(Span(time_us, time_us + 1), (time_us,), width)
