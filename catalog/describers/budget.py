"""Which frames of a window are shown, and how large, so that a prompt stays within its bounds.

Decided before the call and from the frames alone, so that a window shows the same whatever is said in it:
half of the prompt's tokens are for pictures, half for words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from evicat.catalog.media.frame import Frame
from evicat.catalog.tokens import Family

from .packed import PackedFrame, pack

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of the pictures of one prompt."""

    family: Family
    max_frames: int
    max_pixels: int
    """Of one picture."""
    max_tokens: int
    """Of all pictures together."""

    def frames_that_fit(self, count: int) -> int:
        """Of ``count`` frames so many are shown: at least one, no more than fit when smallest."""
        return max(1, min(count, self.max_frames, self.max_tokens // self.family.fewest_tokens))

    def size(self, width: int, height: int, shown: int) -> tuple[int, int]:
        """What a picture of this size is scaled to where ``shown`` of them are shown; never larger.

        Only a picture that lies within one cell in both directions is scaled up, to the cell's side.
        """
        cell = self.family.cell
        if max(width, height) < cell:
            scale = cell / max(width, height)
            return max(1, round(width * scale)), max(1, round(height * scale))
        tokens = self.max_tokens // shown
        scale = min(1.0, math.sqrt(min(self.max_pixels, tokens * cell**2) / (width * height)))
        while True:
            size = max(1, int(width * scale)), max(1, int(height * scale))
            needed = self.family.picture_tokens(*self.canvas(*size))
            if needed <= max(tokens, self.family.fewest_tokens) and size[0] * size[1] <= self.max_pixels:
                return size
            scale *= 0.97  # sides are counted in whole cells

    def canvas(self, width: int, height: int) -> tuple[int, int]:
        """What a picture is padded to: no side under one cell, and no longer than the family takes."""
        least = max(self.family.cell, -(-max(width, height) // self.family.longest_aspect))
        return max(width, least), max(height, least)

    def shown(self, frames: Sequence[Frame]) -> list[tuple[Frame, tuple[int, int]]]:
        """Those frames that are shown, each with the size that it is scaled to."""
        shown = evenly(frames, self.frames_that_fit(len(frames))) if frames else []
        return [(frame, self.size(frame.width, frame.height, len(shown))) for frame in shown]

    def pack(self, frames: Sequence[Frame], *, quality: int) -> tuple[PackedFrame, ...]:
        """Those frames that are shown, scaled and encoded."""
        return tuple(
            pack(frame, size, self.canvas(*size), quality, len(frames)) for frame, size in self.shown(frames)
        )


def evenly(items: Sequence[T], count: int) -> list[T]:
    """``count`` of the items, evenly: the middle of each of as many equal parts; all if there are fewer.

    With two or more, the first and the last third of the items are both among them.
    """
    if count >= len(items):
        return list(items)
    return [items[(2 * part + 1) * len(items) // (2 * count)] for part in range(count)]
