"""Rolling captions: each cue shows lines of the one before it again, and adds some.

YouTube's automatic captions and those of live television roll: a line stands below, then above the next one.
Taken as they are, everything is said two or three times. A file rolls where most of its cues that follow upon
another one begin with whole lines of it; then every word is kept once, with the cue that first shows it.
Bump ``SUBTITLES_VERSION`` when a rule changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from .cues import Cue
from .utterances import Line

GAP_US = 500_000
"""Cues that roll follow upon each other; after a longer gap the same words are said again."""
LEAST_ROLLS = 3
"""Chosen: people repeat a line once or twice."""
ROLLING_SHARE = 0.5
"""Of the cues that follow upon another one; each second cue of YouTube's only holds a line in place."""


def fold(cues: list[Cue]) -> tuple[list[Cue], int]:
    """``cues`` with every word once, and how many words were left out; as they are where they do not roll.

    Cues that add nothing are left out; those whose times cannot be read stay as they are.
    """
    timed = sorted((cue for cue in cues if _is_timed(cue)), key=lambda cue: cue.start_us or 0)
    follows = [(before, cue) for before, cue in pairwise(timed) if _follows(before, cue)]
    rolls = sum(1 for before, cue in follows if _adds_to(before, cue))
    if rolls < LEAST_ROLLS or rolls < ROLLING_SHARE * len(follows):
        return cues, 0
    shown = {id(cue): _shown_again(before, cue) for before, cue in follows}
    folded = [replace(cue, lines=tuple(_without(cue, shown.get(id(cue), 0)))) for cue in cues]
    kept = [new for new, old in zip(folded, cues, strict=True) if new.lines or not old.lines]
    return kept, sum(shown.values())


def _is_timed(cue: Cue) -> bool:
    return cue.start_us is not None and cue.end_us is not None and cue.start_us < cue.end_us


def _follows(before: Cue, cue: Cue) -> bool:
    return (cue.start_us or 0) <= (before.end_us or 0) + GAP_US


def _adds_to(before: Cue, cue: Cue) -> bool:
    """Whether lines are shown again, and not the very same cue: that is said twice."""
    again = _shown_again(before, cue)
    return bool(again) and cue.lines != before.lines


def _shown_again(before: Cue, cue: Cue) -> int:
    """With how many words of the last whole lines of ``before`` the cue begins."""
    words = _words(cue.lines)
    for first in range(len(before.lines)):
        last = _words(before.lines[first:])
        if last and words[: len(last)] == last:
            return len(last)
    return 0


def _words(lines: tuple[Line, ...]) -> list[str]:
    return [word for line in lines for word in line.text.split()]


def _without(cue: Cue, count: int) -> Iterator[Line]:
    """The lines of ``cue`` without its first ``count`` words."""
    for line in cue.lines:
        words = line.text.split()
        left, count = words[count:], max(0, count - len(words))
        if left:
            yield line._replace(text=" ".join(left)) if len(left) < len(words) else line
