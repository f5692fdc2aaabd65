"""Telling text that loops from text that people say."""

from __future__ import annotations

import re
import zlib

MAX_COMPRESSION = 2.4
"""Bytes over zlib bytes; Whisper's own threshold. English of a segment's length lies at 0.9 to 1.9."""
LOOP_TIMES = 4
"""A run of words must come this often in a row to be a loop."""
LOOP_WORDS = 12
"""And its repetitions must make up this many words: "no, no, no, no" is said."""
LOOP_SHARE = 0.5
"""And this share of the segment: a stutter inside a long sentence is not a loop."""
_LONGEST_RUN = 12

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def words_of(text: str) -> tuple[str, ...]:
    """Words without case and punctuation: what is compared."""
    return tuple(_WORD.findall(text.casefold()))


def is_loop(text: str) -> bool:
    """True where ``text`` mostly repeats itself."""
    data = text.encode()
    if len(data) / len(zlib.compress(data)) > MAX_COMPRESSION:
        return True
    words = words_of(text)
    return any(_loops(words, length) for length in range(1, min(_LONGEST_RUN, len(words) // LOOP_TIMES) + 1))


def _loops(words: tuple[str, ...], length: int) -> bool:
    """Whether a run of ``length`` words comes in a row as often, and makes up as much, as a loop does."""
    least = max(LOOP_TIMES * length, LOOP_WORDS, LOOP_SHARE * len(words))
    equal = 0
    for word, later in zip(words, words[length:], strict=False):
        equal = equal + 1 if word == later else 0
        if equal + length >= least:
            return True
    return False
