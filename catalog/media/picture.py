"""From a decoded frame to the picture that a viewer sees: upright, square pixels, RGB, scaled down."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import hdr

Image = npt.NDArray[np.uint8]

UNSPECIFIED: Final = 2
BT709: Final = 1
BT601: Final = 5
"""Colour matrices, by their codes in ITU-T H.273."""
LARGE_WIDTH: Final = 1280
LARGE_HEIGHT: Final = 576


class PictureMaker:
    """Converts the frames of one stream; each picture costs one pass of swscale.

    - Colour matrix and range are those that the frame states. Where it states no matrix, large pictures
      (1280 wide or more than 576 high) are BT.709 and others BT.601, as players take them.
    - HDR (PQ and HLG) is tone-mapped by :func:`evicat.catalog.media.hdr.to_sdr`.
    - Of an interlaced frame the first field is shown, stretched: no moment is shown that never was.
    - What is transparent shows black behind it.
    """

    def __init__(self, sample_aspect_ratio: str) -> None:
        numerator, denominator = map(int, sample_aspect_ratio.split(":"))
        self._aspect = Fraction(numerator, denominator)
        self._scalers: dict[tuple[int, str], Any] = {}

    def image(self, frame: Any, max_width: int) -> Image:
        """``(height, width, 3)`` uint8 of an ``av.VideoFrame``, with ``width <= max_width``."""
        turn = orientation(frame)
        width, height = displayed_size(frame.width, frame.height, self._aspect, sideways=turn[0] % 2 == 1)
        if width > max_width:
            width, height = max_width, max(1, round(height * max_width / width))
        if turn[0] % 2:
            width, height = height, width
        shown = first_field(frame) if frame.interlaced_frame else frame
        if frame.color_trc in hdr.TRANSFERS:
            deep = self._scaled(shown, max_width, width, height, "rgb48le", frame)
            return _turned(hdr.to_sdr(deep, frame.color_trc, frame.color_primaries), turn)
        if has_alpha(frame.format):
            return _turned(on_black(self._scaled(shown, max_width, width, height, "rgba", frame)), turn)
        return _turned(self._scaled(shown, max_width, width, height, "rgb24", frame), turn)

    def _scaled(
        self, shown: Any, max_width: int, width: int, height: int, pixels: str, frame: Any
    ) -> npt.NDArray[Any]:
        from av.video.reformatter import Interpolation, VideoReformatter

        scaler = self._scalers.setdefault((max_width, pixels), VideoReformatter())
        scaled = scaler.reformat(
            shown,
            width=width,
            height=height,
            format=pixels,
            src_colorspace=matrix(frame),
            interpolation=Interpolation.BICUBIC,
            threads=1,
        )
        array: npt.NDArray[Any] = scaled.to_ndarray()
        return array


def matrix(frame: Any) -> int | None:
    """The colour matrix to assume of a frame that states none (H.273 code); None: what it states."""
    if frame.colorspace != UNSPECIFIED or frame.format.is_rgb:
        return None
    return BT709 if frame.width >= LARGE_WIDTH or frame.height > LARGE_HEIGHT else BT601


def has_alpha(pixels: Any) -> bool:
    """Whether an ``av.VideoFormat`` can be transparent; a palette's colours can."""
    return bool(pixels.has_palette) or any(part.is_alpha for part in pixels.components)


def on_black(image: npt.NDArray[np.uint8]) -> Image:
    """``(height, width, 4)`` RGBA, its alpha not multiplied in, over black."""
    colour = image[:, :, :3].astype(np.uint16) * image[:, :, 3:]
    return ((colour + 127) // 255).astype(np.uint8)


def first_field(frame: Any) -> Any:
    """The even lines of an ``av.VideoFrame`` as a frame of half its height."""
    import av

    field = av.VideoFrame(frame.width, (frame.height + 1) // 2, frame.format.name)
    for source, target in zip(frame.planes, field.planes, strict=True):
        lines = _lines(source)[::2]
        into = _lines(target)
        rows, width = min(len(lines), len(into)), min(lines.shape[1], into.shape[1])
        into[:rows, :width] = lines[:rows, :width]
        into[rows:] = into[rows - 1]
    for name in ("colorspace", "color_range", "color_trc", "color_primaries"):
        setattr(field, name, getattr(frame, name))
    return field


def _lines(plane: Any) -> npt.NDArray[np.uint8]:
    """A view into a plane, one row of bytes per line."""
    rows = plane.buffer_size // plane.line_size
    return np.frombuffer(plane, np.uint8, rows * plane.line_size).reshape(rows, plane.line_size)


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
