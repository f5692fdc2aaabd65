"""From what a transcriber reports to what is stored, by rule; and the whole way from sound to segments.

Rules (bump ``CLEAN_VERSION`` when one changes, also in ``blocks.py`` or ``vad.py``):

1. Text without a letter or digit is rejected, and so are times that are not finite or lie outside the block.
2. A missing time comes from the segments before and after; reversed times are swapped; what lasts less than
   ``MIN_S`` is lengthened to it. All three are flagged ``word_times_estimated``.
3. What is left is clamped into the block and sorted.
4. A word without usable times takes the time that its neighbours leave, flagged the same way.
5. Segments are joined and divided into sentences (``sentences.py``): an entry covers one, and no silence.
6. ``repeated``: the same line at least ``SAME_LINES`` times in a row, or a loop inside a segment
   (``loops.py``), both judged before rule 5. A chorus sung three times stays.
7. ``unsure_speech``: the model gives silence a high probability and its words a low one.

Nothing is dropped without being counted: :class:`Cleaned` says how many were rejected, and why.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeGuard

from evicat.catalog.transcribers.base import RawSegment, Transcriber
from evicat.catalog.transcribers.blocks import MAX_BLOCK_S, Piece, cut_blocks
from evicat.catalog.transcribers.loops import is_loop, words_of
from evicat.catalog.transcribers.sentences import MIN_S, sentences
from evicat.catalog.transcribers.word_times import placed_words
from evicat.schemas.model import Model
from evicat.schemas.records import SpeechSegment
from evicat.schemas.span import US, Span

CLEAN_VERSION = 1

SAME_LINES = 4
"""Chosen: a chorus comes three times; a line that Whisper invents every 30 s comes ten times in 5 min."""
NO_SPEECH_FROM = 0.6
"""Whisper's own threshold (``no_speech_threshold``)."""
LOG_PROBABILITY_BELOW = -0.5
"""Chosen: tiny.en gave -0.6 to -1.5 to words that it heard in noise, -0.3 to -0.5 to a telephone call."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Segments on the asset's timeline, in order, and how many were rejected for which reason."""

    segments: list[SpeechSegment]
    rejected: Counter[str]


def transcribe_pieces(
    transcriber: Transcriber[Model],
    pieces: Iterable[Piece],
    *,
    language: str | None = None,
    skip_starts: Collection[int] = (),
    max_block_s: float = MAX_BLOCK_S,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[tuple[Span, Cleaned]]:
    """What is said in every block of the sound, with times on the asset's timeline.

    ``pieces`` are as in :func:`~evicat.catalog.transcribers.blocks.cut_blocks`. The spans tile the timeline
    from 0 to the end of the sound, less the blocks that start at one of ``skip_starts`` (microseconds):
    these are cut, not transcribed. ``turn`` is held for every call of the transcriber. A block without
    speech has no segments and costs no call of the model.

    Raises:
        UsageError: the transcriber does not know ``language``, or its weights cannot be loaded.
    """
    for block in cut_blocks(pieces, max_block_s):
        if block.start_us in skip_starts:
            continue
        raw: list[RawSegment] = []
        if block.speech:
            with turn():
                raw = transcriber.transcribe(block.samples, block.speech, language)
        yield block.span, clean(raw, block.span, transcriber.component)


def clean(raw: Sequence[RawSegment], block: Span, source: str) -> Cleaned:
    """Segments that may be stored, from those of one block; ``source`` names the transcriber."""
    rejected: Counter[str] = Counter()
    kept: list[_Timed] = []
    for index, segment in enumerate(raw):
        reason = _reason_to_reject(segment, block.duration_us / US)
        if reason:
            rejected[reason] += 1
        else:
            kept.append(_timed(raw, index, block.duration_us / US))
    kept.sort(key=lambda timed: (timed.start_s, timed.end_s))
    flags = _flag_same_lines([timed.raw.text for timed in kept])
    stored = [_stored(timed, block, source, flag) for timed, flag in zip(kept, flags, strict=True)]
    segments = sorted(sentences(stored), key=lambda segment: (segment.start_s, segment.end_s))
    return Cleaned(segments, rejected)


@dataclass(frozen=True, slots=True)
class _Timed:
    raw: RawSegment
    start_s: float
    end_s: float
    estimated: bool


def _reason_to_reject(segment: RawSegment, length_s: float) -> str | None:
    times = [time for time in (segment.start_s, segment.end_s) if time is not None]
    if not words_of(segment.text):
        return "no words"
    if not all(math.isfinite(time) for time in times):
        return "times not finite"
    if times and (max(times) < 0 or min(times) >= length_s):
        return "outside the block"
    return None


def _timed(raw: Sequence[RawSegment], index: int, length_s: float) -> _Timed:
    segment = raw[index]
    start, end = segment.start_s, segment.end_s
    if start is None:
        start = next((time for time in (s.end_s for s in reversed(raw[:index])) if _is_finite(time)), 0.0)
    if end is None:
        end = next((time for time in (s.start_s for s in raw[index + 1 :]) if _is_finite(time)), length_s)
    estimated = segment.start_s is None or segment.end_s is None or start > end
    start, end = sorted((_clamp(start, 0, length_s), _clamp(end, 0, length_s)))
    if end - start < MIN_S:
        start = max(0.0, min(start, length_s - MIN_S))
        end, estimated = min(length_s, start + MIN_S), True
    return _Timed(segment, start, end, estimated)


def _is_finite(time: float | None) -> TypeGuard[float]:
    return time is not None and math.isfinite(time)


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _flag_same_lines(texts: list[str]) -> list[bool]:
    """For every line whether it is one of at least ``SAME_LINES`` equal ones in a row."""
    flags: list[bool] = []
    for _, run in itertools.groupby(texts, key=words_of):
        count = len(list(run))
        flags += [count >= SAME_LINES] * count
    return flags


def _is_unsure(segment: RawSegment) -> bool:
    silence, words = segment.no_speech_probability, segment.average_log_probability
    return (
        silence is not None and silence >= NO_SPEECH_FROM and (words is None or words < LOG_PROBABILITY_BELOW)
    )


def _stored(timed: _Timed, block: Span, source: str, same_line: bool) -> SpeechSegment:
    raw = timed.raw
    words, words_estimated = placed_words(raw.words, timed.start_s, timed.end_s, block.start_s)
    flags = {
        "repeated": same_line or is_loop(raw.text),
        "unsure_speech": _is_unsure(raw),
        "word_times_estimated": timed.estimated or words_estimated,
    }
    return SpeechSegment(
        start_s=round(block.start_s + timed.start_s, 6),
        end_s=round(block.start_s + timed.end_s, 6),
        text=raw.text.strip(),
        words=tuple(words),
        source=source,
        language=raw.language,
        language_probability=raw.language_probability,
        average_log_probability=raw.average_log_probability,
        no_speech_probability=raw.no_speech_probability,
        flags=tuple(name for name, applies in flags.items() if applies),
    )
