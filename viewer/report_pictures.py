"""The pictures of a report page: which of the cited frames, how large, within a bound of bytes."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evicat.catalog.media.jpeg import jpeg
from evicat.catalog.query import Catalog
from evicat.catalog.reading.media import scaled
from evicat.schemas.errors import AssetError

from .page_model import PageEntry, VideoPage
from .page_places import placeless

PAGE_BYTES: Final = 7_800_000
"""Of a whole page; pictures get what the text leaves."""
LEAST_BYTES: Final = 3_000
"""A JPEG file gets so many on average, at least; where there are more frames than that allows, some have no
picture."""
SIZES: Final = ((480, 75), (400, 72), (320, 70), (256, 66), (200, 62), (160, 56), (128, 45), (96, 35))
"""Width in pixels and quality that are tried, best first."""
_OVERHEAD: Final = 24
"""Bytes of a picture's key and marks in the page."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures by the PTS of their frames, as base64 of JPEG. ``note``: why some are not there."""

    by_pts: dict[str, str] = field(default_factory=dict)
    note: str = ""
    problem: str = ""
    """What went wrong, with paths, which the page leaves out; empty where all that was wanted decoded."""

    def as_json(self) -> dict[str, Any]:
        return {"by_pts": self.by_pts, "note": self.note}


def take_pictures(
    catalog: Catalog, page: VideoPage, room: int, media_roots: Sequence[str | Path] = ()
) -> Pictures:
    """Decode cited frames and make pictures of them that take at most ``room`` bytes of the page.

    Every entry gets one before any gets two: that with boxes, or its middle one. What a picture leaves of its
    share goes to those after it.
    """
    ranked = list(_ranked(page.entries))
    most = max(0, room) * 3 // 4 // (LEAST_BYTES + _OVERHEAD)
    chosen = ranked[:most]
    if not chosen:
        note = "There is no room for pictures in this page." if ranked else ""
        return Pictures(note=note, problem=note)
    shares = _Shares(room * 3 // 4 - _OVERHEAD * len(chosen), len(chosen))
    made: dict[str, str] = {}
    problem = ""
    try:
        for frame in _frames(catalog, page, chosen, media_roots):
            made[str(frame[0])] = base64.b64encode(shares.picture(frame[1])).decode()
    except AssetError as error:
        problem = str(error)
    missing = len(chosen) - len(made)
    if missing and not problem:
        problem = f"{missing} of {len(chosen)} cited frames do not decode any more"
    told = placeless(catalog, media_roots)(problem)
    return Pictures(made, _note(len(ranked), len(chosen), told), problem)


def _note(cited: int, chosen: int, problem: str) -> str:
    if problem:
        return f"Pictures are missing: {problem}."
    if chosen < cited:
        return (
            f"{chosen} of {cited} frames have a picture, so that the page stays small; "
            "evicat show --frames writes all of them."
        )
    return ""


def _ranked(entries: Sequence[PageEntry]) -> Iterator[tuple[int, int]]:
    """Entry and PTS of every cited frame, each PTS once, in the order in which they get pictures."""
    queues = [(index, _order(entry)) for index, entry in enumerate(entries) if entry.frames]
    seen: set[int] = set()
    for rank in range(max((len(queue) for _, queue in queues), default=0)):
        for index, queue in queues:
            if rank < len(queue) and queue[rank] not in seen:
                seen.add(queue[rank])
                yield index, queue[rank]


def _order(entry: PageEntry) -> list[int]:
    """PTS of an entry's frames: those with boxes first, of these and of others the middle ones."""
    boxed = {round(box.time_s, 6) for box in entry.boxes}
    spread = _spread(len(entry.frames))
    order = sorted(spread, key=lambda index: round(entry.frames[index].time_s, 6) not in boxed)
    return [entry.frames[index].pts for index in order]


def _spread(count: int) -> list[int]:
    """Indexes below ``count``: the middle, then the middles of both halves, and so on."""
    halves, found = [(0, count)], []
    while halves:
        start, end = halves.pop(0)
        if start < end:
            middle = (start + end) // 2
            found.append(middle)
            halves += [(start, middle), (middle + 1, end)]
    return found


def _frames(
    catalog: Catalog,
    page: VideoPage,
    chosen: Sequence[tuple[int, int]],
    media_roots: Sequence[str | Path],
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """PTS and picture of the chosen frames, in one pass over the file."""
    wanted: dict[int, list[int]] = {}
    for index, pts in chosen:
        wanted.setdefault(index, []).append(pts)
    rows = [
        {
            "entry_id": page.entries[index].entry_id,
            "asset_id": page.asset_id,
            "shown_width": min(page.entries[index].shown_width or SIZES[0][0], SIZES[0][0]),
            "frames": [{"pts": pts} for pts in own],
        }
        for index, own in sorted(wanted.items())
    ]
    for _, frames in catalog.cited_pictures(rows, media_roots=media_roots):
        yield from ((frame.pts, frame.image) for frame in frames)


class _Shares:
    """Gives each picture an equal part of the bytes that are left."""

    def __init__(self, room: int, pictures: int) -> None:
        self._room, self._left = room, pictures

    def picture(self, image: npt.NDArray[np.uint8]) -> bytes:
        """The best JPEG file that fits into the share; the smallest where none does."""
        share = self._room // max(1, self._left)
        made = b""
        for width, quality in SIZES:
            made = jpeg(scaled(image, width), quality)
            if len(made) <= share:
                break
        self._room -= len(made)
        self._left -= 1
        return made
