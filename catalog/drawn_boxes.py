"""Boxes drawn on a frame: the inner edge of each line lies on the outermost pixels of its box."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from evicat.catalog.boxes import SIDE
from evicat.schemas.records import ObjectBox

Image = npt.NDArray[np.uint8]
COLOURS: Final = ((0, 230, 0), (255, 0, 255), (0, 200, 255), (255, 160, 0), (255, 255, 0), (90, 90, 255))
"""One for each name, again and again."""
LINES: Final = 400
"""Lines are one pixel wide for each so many of the picture's width, at least one."""


def draw_boxes(image: Image, boxes: Iterable[ObjectBox]) -> Image:
    """A copy of ``image`` with a rectangle for each box, and its name above it."""
    import cv2

    drawn = image.copy()
    height, width = image.shape[:2]
    thickness = max(1, width // LINES)
    colours: dict[str, tuple[int, int, int]] = {}
    for box in boxes:
        colour = colours.setdefault(box.name, COLOURS[len(colours) % len(COLOURS)])
        left, top, right, bottom = edges(box, width, height)
        for step in range(thickness):
            cv2.rectangle(drawn, (left - step, top - step), (right + step, bottom + step), colour)
        _label(drawn, box.name, (left, top - thickness), colour)
    return drawn


def edges(box: ObjectBox, width: int, height: int) -> tuple[int, int, int, int]:
    """First and last column and row of the pixels of a box: left, top, right, bottom, all inside."""
    left, right = _inside(box.x1, box.x2, width)
    top, bottom = _inside(box.y1, box.y2, height)
    return left, top, right, bottom


def _inside(first: float, last: float, size: int) -> tuple[int, int]:
    start = min(round(first * size / SIDE), size - 1)
    return start, max(start, round(last * size / SIDE) - 1)


def _label(image: Image, name: str, at: tuple[int, int], colour: tuple[int, int, int]) -> None:
    """The name above ``at``, or below it where the picture ends; letters that the font lacks become ``?``."""
    import cv2

    font, size = cv2.FONT_HERSHEY_SIMPLEX, max(0.45, image.shape[1] / 1600)
    (broad, tall), under = cv2.getTextSize(name, font, size, 1)
    high = tall + under + 2
    left, bottom = at[0], at[1] if at[1] >= high else at[1] + 2 * high
    cv2.rectangle(image, (left, bottom - high), (left + broad + 1, bottom - 1), (0, 0, 0), cv2.FILLED)
    cv2.putText(image, name, (left, bottom - under - 1), font, size, colour, 1, cv2.LINE_AA)
