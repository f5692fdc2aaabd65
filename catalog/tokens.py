"""How many tokens texts and pictures take, told before a model is asked: stated formulas, no tokenizer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

FamilyName = Literal["qwen3-vl", "qwen2.5-vl"]


@dataclass(frozen=True, slots=True)
class Family:
    """How models of one family turn a picture into tokens: one for each ``cell`` x ``cell`` pixels.

    Attributes:
        cell: Patch size times merge size; both sides are rounded to a multiple of it.
        server_min_pixels: What the family's own picture processor scales smaller pictures up to, unless the
            server is told otherwise. It costs tokens and shows nothing more.
        longest_aspect: Longer side over shorter side that the processor takes at most.
    """

    cell: int
    server_min_pixels: int
    longest_aspect: int = 200

    @property
    def fewest_tokens(self) -> int:
        """Of a picture, however small."""
        return self.server_min_pixels // self.cell**2

    def processed(self, width: int, height: int) -> tuple[int, int]:
        """Width and height to which the family's own picture processor scales a picture of a prompt.

        Sides go to the nearest whole cell, pictures below ``server_min_pixels`` are scaled up; its bound for
        large ones, some millions of pixels, is beyond what a prompt shows.
        """
        cell = self.cell
        rounded = round(width / cell) * cell, round(height / cell) * cell
        if rounded[0] * rounded[1] >= self.server_min_pixels:
            return rounded
        scale = math.sqrt(self.server_min_pixels / (height * width))
        return math.ceil(width * scale / cell) * cell, math.ceil(height * scale / cell) * cell

    def picture_tokens(self, width: int, height: int) -> int:
        """Tokens of a picture: its sides in cells, rounded up, which is never too few.

        Qwen-VL rounds to the nearest multiple, and takes two frames together only where it is given a video;
        here every frame is a picture of its own.
        """
        cells = -(-width // self.cell) * -(-height // self.cell)
        return max(cells, self.fewest_tokens)


FAMILIES: Final[dict[FamilyName, Family]] = {
    "qwen3-vl": Family(cell=32, server_min_pixels=65_536),  # patch 16, merge 2; Qwen3.5 has the same
    "qwen2.5-vl": Family(cell=28, server_min_pixels=3_136),  # patch 14, merge 2
}


def text_tokens(text: str) -> int:
    """At most so many tokens of prose: one for three bytes of UTF-8.

    English has about four bytes to a token; a Chinese or Japanese character has three bytes, and takes about
    one token.
    """
    return -(-len(text.encode(errors="replace")) // 3)


def likely_text_tokens(text: str) -> float:
    """About so many tokens of prose, for plans: four ASCII characters, or one other character, to a token."""
    others = sum(not character.isascii() for character in text)
    return (len(text) - others) / 4 + others
