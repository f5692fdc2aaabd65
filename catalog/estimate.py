"""What a scale is going to take of an asset, told before anything is decoded or asked.

Windows of one scale and one picture size differ little, so a few of each asset stand for all: the first, and
the middle one of each run of windows that is twice as long as the one before (a past and a cast grow, times
get longer). Only what is said is not known of a new file, and is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from evicat.catalog.describers.base import Describer, Expected, WindowInput
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import frame_times
from evicat.schemas.asset import Asset
from evicat.schemas.grid import count_windows
from evicat.schemas.recipe import Scale
from evicat.schemas.records import SpeechSegment
from evicat.schemas.span import US, Span

WORDS_PER_MINUTE: Final = 100
"""Of a new asset with sound or subtitles, over its whole length: films have some 80, lectures 150."""
CHARACTERS_PER_WORD: Final = 5.5
"""With the blank behind it."""
WORDS_PER_LINE: Final = 8
SHOT_SECONDS: Final = 4.0
"""Length of a shot where none of the catalog is known; within the scale's own bounds."""
_ROUNDED: Final = 10
"""Characters of a line are counted in tens, so that assets have windows in common."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What is said in an asset, all of it together."""

    lines: float = 0
    characters: float = 0
    is_assumed: bool = False

    @classmethod
    def assumed(cls, duration_us: int) -> Dialogue:
        words = WORDS_PER_MINUTE * duration_us / US / 60
        return cls(words / WORDS_PER_LINE, words * CHARACTERS_PER_WORD, is_assumed=True)


SILENT: Final = Dialogue()


@dataclass(frozen=True, slots=True)
class _Window:
    """What tells a window from others: its place, its frames and what is said in it."""

    index: int
    length_us: int
    frames: int
    width: int
    height: int
    lines: int
    line_characters: int

    def as_input(self) -> WindowInput:
        """The window as a describer gets it, with pictures that have a size and no memory."""
        start_us = self.index * self.length_us
        span = Span(start_us, start_us + self.length_us)
        image = np.broadcast_to(np.zeros(3, np.uint8), (self.height, self.width, 3)) if self.frames else None
        frames = tuple(
            Frame(number, time_us, image)
            for number, time_us in enumerate(frame_times(span, self.frames))
            if image is not None
        )
        return WindowInput(span, frames=frames, speech=tuple(self._speech(span)))

    def _speech(self, span: Span) -> Iterator[SpeechSegment]:
        step_s = span.duration_us / US / max(1, self.lines)
        for number in range(self.lines):
            start_s = span.start_us / US + number * step_s
            text = "w" * max(1, self.line_characters)
            yield SpeechSegment(start_s=start_s, end_s=start_s + step_s, text=text, source="plan")


class Estimate:
    """What one scale with its describer takes. May be asked for thousands of assets."""

    def __init__(self, describer: Describer[Any], scale: Scale) -> None:
        self._describer, self._scale = describer, scale
        self._of_window = lru_cache(maxsize=50_000)(self._window)
        self._of_unit = lru_cache(maxsize=50_000)(self._unit)

    @property
    def hears(self) -> bool:
        """Whether it matters what is said."""
        return "speech" in self._describer.reads

    def unit(self, asset: Asset, count: int, dialogue: Dialogue = SILENT) -> Expected:
        """All ``count`` windows of an asset together."""
        if not count or not asset.duration_us:
            return Expected()
        said = dialogue if self.hears else SILENT
        lines = round(said.lines / count, 3)
        characters = said.characters / said.lines if said.lines else 0
        line_characters = round(characters / _ROUNDED) * _ROUNDED
        length_us = asset.duration_us // count
        if self._scale.policy == "grid":
            length_us = min(self._scale.window_us, asset.duration_us)
        frames = _frames(asset, self._scale, length_us)
        return self._of_unit(count, length_us, frames, *_size(asset, self._scale), lines, line_characters)

    def _unit(
        self, count: int, length_us: int, frames: int, width: int, height: int, lines: float, characters: int
    ) -> Expected:
        shown = prompt = output = 0.0
        fewer = math.floor(lines)
        for first, end in _runs(count):
            for said, share in ((fewer, fewer + 1 - lines), (fewer + 1, lines - fewer)):
                if share:
                    middle = (first + end - 1) // 2
                    window = _Window(middle, length_us, frames, width, height, said, characters)
                    each = self._of_window(window)
                    weight = share * (end - first)
                    shown += weight * each.frames
                    prompt += weight * each.prompt_tokens
                    output += weight * each.output_tokens
        return Expected(shown, prompt, output)

    def _window(self, window: _Window) -> Expected:
        return self._describer.expected(window.as_input())


def likely_windows(scale: Scale, duration_us: int, shot_seconds: float | None = None) -> int:
    """How many windows a timeline has; of shots, by their mean length so far, else an assumed one."""
    if scale.policy == "grid":
        return count_windows(duration_us, scale.window_us)
    length_us = (shot_seconds or SHOT_SECONDS) * US
    length_us = min(max(length_us, scale.min_us), scale.max_us)
    return max(1, round(duration_us / length_us)) if duration_us else 0


def _runs(count: int) -> Iterator[tuple[int, int]]:
    """``[0, 1), [1, 2), [2, 4), [4, 8), ...`` up to ``count``."""
    first, end = 0, 1
    while first < count:
        yield first, min(end, count)
        first, end = end, 2 * end


def _frames(asset: Asset, scale: Scale, length_us: int) -> int:
    """Frames that are taken of a window: a picture stands in it once, however slow the frames come."""
    if asset.video is None or scale.frames is None:
        return 0
    there = Fraction(asset.video.frame_count * length_us, asset.duration_us)
    return min(scale.frames.per_window, max(1, math.ceil(there)))


def _size(asset: Asset, scale: Scale) -> tuple[int, int]:
    """Width and height of the frames that are taken."""
    if asset.video is None or scale.frames is None:
        return 0, 0
    width, height, most = asset.video.width, asset.video.height, scale.frames.max_width
    return (width, height) if width <= most else (most, max(1, round(height * most / width)))
