"""Whether a box of one frame is found again in another, near the place where it was."""

from __future__ import annotations

from typing import Final

import numpy as np

from evicat.catalog.media.frame import Frame
from evicat.schemas.records import ObjectBox

from .looks import Luma, correlation

_CONTRAST: Final = 4.0
"""Standard deviation of brightness, 0 to 255, below which a box shows nothing."""
_EMPTY: Final = 0.3
_FILLED: Final = 0.6
"""A piece is empty, or filled, by its standard deviation as a share of the whole box's."""
_REACH: Final = 0.5
"""How far a box may have moved, as a share of its height."""


def find_again(known: Frame, box: ObjectBox, other: Frame) -> tuple[ObjectBox, float]:
    """Where ``other`` looks most like ``box`` of ``known``, and how much: from 0 to 1.

    The likeness is the lowest correlation of brightness over the pieces of the box, each about as wide as
    high: one letter of a long line must not be outvoted by the rest. A piece that is empty in ``known`` must
    only not be filled in ``other``, for noise correlates with nothing. Frames of different sizes are not
    compared, and a box that shows nothing is not found: both give 0.
    """
    import cv2

    height, width = known.image.shape[:2]
    left, top, right, bottom = _pixels(box, width, height)
    pattern = _luma(known, left, top, right, bottom)
    if known.image.shape != other.image.shape or float(pattern.std()) < _CONTRAST:
        return box, 0.0
    reach = max(1, round(_REACH * (bottom - top)))
    from_x, from_y = max(0, left - reach), max(0, top - reach)
    around = _luma(other, from_x, from_y, min(width, right + reach), min(height, bottom + reach))
    _, _, _, (x, y) = cv2.minMaxLoc(cv2.matchTemplate(around, pattern, cv2.TM_CCOEFF_NORMED))
    found = around[y : y + pattern.shape[0], x : x + pattern.shape[1]]
    moved = _moved(box, (from_x + x - left) * 1000 / width, (from_y + y - top) * 1000 / height)
    return moved, _likeness(pattern, found)


def _likeness(pattern: Luma, found: Luma) -> float:
    height, width = pattern.shape
    contrast, count = float(pattern.std()), max(1, round(width / height))
    pieces = zip(np.array_split(pattern, count, axis=1), np.array_split(found, count, axis=1), strict=True)
    return max(min(_alike(before, after, contrast) for before, after in pieces), 0.0)


def _alike(before: Luma, after: Luma, contrast: float) -> float:
    if float(before.std()) < _EMPTY * contrast:
        return 1.0 if float(after.std()) < _FILLED * contrast else 0.0
    return min(correlation(before, after), 1.0)


def _pixels(box: ObjectBox, width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right and bottom in pixels, half-open; at least one pixel."""
    left, top = int(box.x1 * width / 1000), int(box.y1 * height / 1000)
    right, bottom = round(box.x2 * width / 1000), round(box.y2 * height / 1000)
    return left, top, max(left + 1, right), max(top + 1, bottom)


def _luma(frame: Frame, left: int, top: int, right: int, bottom: int) -> Luma:
    import cv2

    piece = np.ascontiguousarray(frame.image[top:bottom, left:right])
    return np.asarray(cv2.cvtColor(piece, cv2.COLOR_RGB2GRAY), dtype=np.float32)


def _moved(box: ObjectBox, across: float, down: float) -> ObjectBox:
    """The box this much further to the right and down, in 1000 x 1000."""
    x1, x2 = (round(min(max(x + across, 0.0), 1000.0), 1) for x in (box.x1, box.x2))
    y1, y2 = (round(min(max(y + down, 0.0), 1000.0), 1) for y in (box.y1, box.y2))
    return box.model_copy(update={"x1": x1, "x2": x2, "y1": y1, "y2": y2})
