"""From a decoded frame to the picture that a viewer sees: upright, square pixels, RGB, scaled down."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]


class PictureMaker:
    """Converts the frames of one stream; each picture costs one pass of swscale.

    Colour matrix and range are those that the frame states, else FFmpeg's defaults (BT.601, limited).
    """

    def __init__(self, sample_aspect_ratio: str) -> None:
        numerator, denominator = map(int, sample_aspect_ratio.split(":"))
        self._aspect = Fraction(numerator, denominator)
        self._scalers: dict[int, Any] = {}

    def image(self, frame: Any, max_width: int) -> Image:
        """``(height, width, 3)`` uint8 of an ``av.VideoFrame``, with ``width <= max_width``."""
        from av.video.reformatter import Interpolation, VideoReformatter

        turn = orientation(frame)
        width, height = displayed_size(frame.width, frame.height, self._aspect, sideways=turn[0] % 2 == 1)
        if width > max_width:
            width, height = max_width, max(1, round(height * max_width / width))
        if turn[0] % 2:
            width, height = height, width
        scaler = self._scalers.setdefault(max_width, VideoReformatter())
        scaled = scaler.reformat(
            frame, width=width, height=height, format="rgb24", interpolation=Interpolation.BICUBIC, threads=1
        )
        image: Image = scaled.to_ndarray()
        return _turned(image, turn)


def displayed_size(width: int, height: int, aspect: Fraction, *, sideways: bool) -> tuple[int, int]:
    """Width and height as seen: pixels made square by stretching the width, then turned."""
    width = max(1, round(width * aspect))
    return (height, width) if sideways else (width, height)


Turn = tuple[int, bool, bool]
"""Quarter turns counterclockwise, then whether left and right, and top and bottom, are swapped."""


def orientation(frame: Any) -> Turn:
    """How a frame is to be turned, by its display matrix; the same cases as FFmpeg's automatic rotation."""
    from av.sidedata.sidedata import Type

    data = frame.side_data.get(Type.DISPLAYMATRIX)
    if data is None:
        return (0, False, False)
    matrix = np.frombuffer(bytes(data), np.int32)
    quarter = round(frame.rotation / 90) % 4
    if quarter == 0:
        return (0, False, bool(matrix[4] < 0))
    if quarter == 2:
        return (0, bool(matrix[0] < 0), bool(matrix[4] < 0))
    is_mirrored = matrix[3] < 0 if quarter == 1 else matrix[3] > 0
    return (4 - quarter, False, True) if is_mirrored else (quarter, False, False)


def _turned(image: Image, turn: Turn) -> Image:
    quarters, swap_sides, swap_ends = turn
    image = np.rot90(image, quarters)
    if swap_sides:
        image = image[:, ::-1]
    if swap_ends:
        image = image[::-1]
    return np.ascontiguousarray(image)
