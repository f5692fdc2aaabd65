"""Frames as the small JPEG files that wait for their turn and go to a model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evicat.catalog.boxes import Placed
from evicat.catalog.media.frame import Frame


class PackedFrame(Frame):
    """A frame that holds a JPEG file instead of pixels, so that hundreds of windows can wait in memory.

    ``taken`` is how many frames were taken of its window, of which those that are packed are shown;
    ``inside`` is where the displayed picture lies where it was padded.
    """

    __slots__ = ("_height", "_width", "inside", "jpeg", "taken")
    jpeg: bytes
    taken: int
    inside: Placed

    def __init__(
        self,
        pts: int,
        time_us: int,
        jpeg: bytes,
        *,
        width: int,
        height: int,
        taken: int,
        inside: Placed | None = None,
    ) -> None:
        facts = {"pts": pts, "time_us": time_us, "jpeg": jpeg, "taken": taken}
        facts |= {"inside": inside or Placed(0, 0, width, height)}
        for name, value in (facts | {"_width": width, "_height": height}).items():
            object.__setattr__(self, name, value)  # the base is frozen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedFrame) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)

    @property
    def _facts(self) -> tuple[int, int, bytes]:
        return self.pts, self.time_us, self.jpeg

    @property
    def image(self) -> npt.NDArray[np.uint8]:
        """The pixels, decoded anew: ``(height, width, 3)``, RGB."""
        import cv2

        decoded = cv2.imdecode(np.frombuffer(self.jpeg, np.uint8), cv2.IMREAD_COLOR)
        return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB))

    @property
    def displayed(self) -> Frame:
        """The frame without padding, its pixels decoded anew."""
        left, top, width, height = map(int, self.inside)
        return Frame(self.pts, self.time_us, self.image[top : top + height, left : left + width])

    @property
    def width(self) -> int:
        return int(getattr(self, "_width"))  # noqa: B009

    @property
    def height(self) -> int:
        return int(getattr(self, "_height"))  # noqa: B009

    def __repr__(self) -> str:
        return (
            f"PackedFrame(pts={self.pts}, time_s={self.time_s}, image={self.width}x{self.height}, "
            f"jpeg={len(self.jpeg)} bytes)"
        )


def pack(
    frame: Frame, size: tuple[int, int], canvas: tuple[int, int], quality: int, taken: int
) -> PackedFrame:
    """``frame`` scaled to ``size`` and put into the middle of a black ``canvas``; both (width, height)."""
    import cv2

    image = frame.image
    if size != (frame.width, frame.height):
        smaller = size[0] * size[1] < frame.width * frame.height
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_NEAREST)
    left, top = (canvas[0] - size[0]) // 2, (canvas[1] - size[1]) // 2
    if canvas != size:
        right, bottom = canvas[0] - size[0] - left, canvas[1] - size[1] - top
        image = cv2.copyMakeBorder(image, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(0, 0, 0))
    done, jpeg = cv2.imencode(
        ".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality]
    )
    if not done:
        raise ValueError(f"a picture of {canvas[0]}x{canvas[1]} cannot be written as JPEG")
    return PackedFrame(
        frame.pts,
        frame.time_us,
        jpeg.tobytes(),
        width=canvas[0],
        height=canvas[1],
        taken=taken,
        inside=Placed(left, top, *size),
    )
