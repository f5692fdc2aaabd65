"""Which segments look invented, by structure alone: no list of phrases is kept.

Whisper writes stock phrases, loops and strings of words where nobody speaks, often with high confidence. None
of it is dropped: it is stored with these flags, and neither embedded nor searched nor shown to describers.

``repeated``
    A loop inside a segment (``loops.py``); the same line at least ``SAME_LINES`` times in a row; or the same
    line at least ``SAME_DOUBTED`` times in the block, each time where the model itself hears silence.
``unsure_speech``
    The model gives silence a high probability and its words a low one.
``no_voice``
    Hardly any of its time lies in a stretch with a voice.
``crammed``
    At least half of its words take no time, or begin where the sound has ended.

Bump ``CLEAN_VERSION`` when a rule or number changes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from evicat.catalog.transcribers.base import SAMPLE_RATE, RawSegment, RawWord, Stretches
from evicat.catalog.transcribers.loops import is_loop, words_of

SAME_LINES = 4
"""Chosen: a chorus comes three times; a line that Whisper invents every 30 s comes ten times in 5 min."""
SAME_DOUBTED = 3
"""Chosen: fewer than ``SAME_LINES``, since the model's doubt comes on top."""
SILENCE_FROM = 0.8
"""Chosen: tiny.en gave 0.90 to 0.97 to all that it invented on silence, chords and noise, 0.0 to 0.4 to a
telephone call."""
NO_SPEECH_FROM = 0.6
"""Whisper's own threshold (``no_speech_threshold``)."""
LOG_PROBABILITY_BELOW = -0.5
"""Chosen: tiny.en gave -0.6 to -1.5 to words that it heard in noise, -0.3 to -0.5 to a telephone call."""
VOICE_SHARE = 0.1
"""Chosen: stretches are padded, so that real words lie in one, and engines let segments run into silence."""
NO_TIME_S = 0.01
"""Half of Whisper's time step: what is shorter takes no time."""
CRAMMED_WORDS = 3
"""Chosen: one or two words without a time are common at the edges of speech; tiny.en crammed 11 to 214 words
into the last instant of a chord or of noise."""

Heard = tuple[RawSegment, float, float]
"""A segment, and the start and end in the block that it is stored with."""


def doubts(heard: Sequence[Heard], length_s: float, speech: Stretches | None) -> list[tuple[str, ...]]:
    """The flags of each segment of a block of ``length_s`` seconds. ``speech`` None: no ``no_voice``."""
    repeated = _repeated([segment for segment, _, _ in heard])
    return [tuple(_flags(each, again, length_s, speech)) for each, again in zip(heard, repeated, strict=True)]


def _flags(each: Heard, again: bool, length_s: float, speech: Stretches | None) -> Iterator[str]:
    segment, start_s, end_s = each
    if again or is_loop(segment.text):
        yield "repeated"
    if _is_unsure(segment):
        yield "unsure_speech"
    if speech is not None and _voiced_s(start_s, end_s, speech) < VOICE_SHARE * (end_s - start_s):
        yield "no_voice"
    if _is_crammed(segment.words, length_s):
        yield "crammed"


def _repeated(segments: list[RawSegment]) -> list[bool]:
    flags: list[bool] = []
    for _, run in itertools.groupby(segments, key=_line):
        count = len(list(run))
        flags += [count >= SAME_LINES] * count
    doubted = Counter(_line(segment) for segment in segments if _is_silence(segment))
    return [
        flag or (_is_silence(segment) and doubted[_line(segment)] >= SAME_DOUBTED)
        for flag, segment in zip(flags, segments, strict=True)
    ]


def _line(segment: RawSegment) -> tuple[str, ...]:
    return words_of(segment.text)


def _is_silence(segment: RawSegment) -> bool:
    silence = segment.no_speech_probability
    return silence is not None and silence >= SILENCE_FROM


def _is_unsure(segment: RawSegment) -> bool:
    silence, words = segment.no_speech_probability, segment.average_log_probability
    return (
        silence is not None and silence >= NO_SPEECH_FROM and (words is None or words < LOG_PROBABILITY_BELOW)
    )


def _voiced_s(start_s: float, end_s: float, speech: Stretches) -> float:
    overlaps = (min(end_s, last / SAMPLE_RATE) - max(start_s, first / SAMPLE_RATE) for first, last in speech)
    return sum(overlap for overlap in overlaps if overlap > 0)


def _is_crammed(words: Sequence[RawWord], length_s: float) -> bool:
    timed = [(w.start_s, w.end_s) for w in words if w.start_s is not None and w.end_s is not None]
    crammed = sum(1 for start, end in timed if 0 <= end - start < NO_TIME_S or start >= length_s)
    return crammed >= CRAMMED_WORDS and 2 * crammed >= len(words)
