"""A decoded picture with the instant that it is from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicat.schemas.span import US


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """One picture as a viewer sees it: upright, square pixels, RGB.

    ``image`` is ``(height, width, 3)`` uint8; ``pts`` is the decoder's, in the stream's time base;
    ``time_us`` is PTS minus the origin, on the asset's timeline.
    """

    pts: int
    time_us: int
    image: npt.NDArray[np.uint8]

    @property
    def time_s(self) -> float:
        return self.time_us / US

    @property
    def width(self) -> int:
        return int(self.image.shape[1])

    @property
    def height(self) -> int:
        return int(self.image.shape[0])

    def __repr__(self) -> str:
        return f"Frame(pts={self.pts}, time_s={self.time_s}, image={self.width}x{self.height})"
