"""Times of words inside a segment: the engine's where they make sense, else what the neighbours leave."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evicat.catalog.transcribers.base import RawWord
from evicat.schemas.records import Word

Times = tuple[float, float]


def placed_words(
    words: Sequence[RawWord], start_s: float, end_s: float, shift_s: float
) -> tuple[list[Word], bool]:
    """Words in the order in which they are said, inside ``[start_s, end_s]``, moved by ``shift_s``.

    Starts never go back, and no word ends before it starts. The second value is True where a time is
    estimated: a word had none, reversed ones or not finite ones, or began before the word before it.
    """
    words = [word for word in words if word.text.strip()]
    known = [_known(word) for word in words]
    times = _filled(known, start_s, end_s)
    estimated = None in known
    placed: list[Word] = []
    floor, before = start_s, -math.inf
    for word, (start, end) in zip(words, times, strict=True):
        inside = min(max(start, start_s), end_s)
        estimated |= start < before
        floor, before = max(inside, floor), start
        end = max(floor, min(end, end_s))
        placed.append(
            Word(
                start_s=round(floor + shift_s, 6),
                end_s=round(end + shift_s, 6),
                text=word.text,
                probability=word.probability,
            )
        )
    return placed, estimated


def _known(word: RawWord) -> Times | None:
    start, end = word.start_s, word.end_s
    if start is None or end is None or not (math.isfinite(start) and math.isfinite(end)) or end < start:
        return None
    return start, end


def _filled(known: Sequence[Times | None], start_s: float, end_s: float) -> list[Times]:
    """Words without times share, in equal parts, what lies between the known words around them."""
    filled: list[Times] = []
    for index, times in enumerate(known):
        if times is None:
            left = next((i for i, later in enumerate(known[index:]) if later), len(known) - index)
            after = known[index + left] if index + left < len(known) else None
            start = filled[-1][1] if filled else start_s
            times = start, start + max(0.0, (after[0] if after else end_s) - start) / left
        filled.append(times)
    return filled
