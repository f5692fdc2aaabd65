"""From what a transcriber reports to what is stored, by rule; and the whole way from sound to segments.

Rules (bump ``CLEAN_VERSION`` when one changes, also in ``blocks.py`` or ``vad.py``):

1. Text without a letter or digit is rejected, and so are times that are not finite or lie outside the block.
2. A missing time comes from the segments before and after; reversed times are swapped; what lasts less than
   ``MIN_S`` is lengthened to it. All three are flagged ``word_times_estimated``.
3. What is left is clamped into the block and sorted.
4. A word without usable times takes the time that its neighbours leave, flagged the same way.
5. Segments are joined and divided into sentences (``sentences.py``): an entry covers one, and no silence.
6. What looks invented is kept and flagged (``doubts.py``), judged before rule 5. A chorus sung three times
   stays.
7. ``unsure_language``: the language was detected with a probability below one half.
8. A segment that is all in brackets or music notes is a ``sound``, not dialogue.

Nothing is dropped without being counted: :class:`Cleaned` says how many were rejected or flagged, and why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeGuard

from evicat.catalog.media.utterances import sound_only
from evicat.catalog.transcribers.base import RawSegment, Stretches, Transcriber
from evicat.catalog.transcribers.blocks import MAX_BLOCK_S, Piece, cut_blocks
from evicat.catalog.transcribers.doubts import doubts
from evicat.catalog.transcribers.heard import SURE_LANGUAGE_FROM
from evicat.catalog.transcribers.loops import words_of
from evicat.catalog.transcribers.sentences import MIN_S, sentences
from evicat.catalog.transcribers.word_times import placed_words
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.model import Model
from evicat.schemas.records import SpeechSegment
from evicat.schemas.span import US, Span

CLEAN_VERSION = 2


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Segments on the asset's timeline, in order, and how many were rejected for which reason."""

    segments: list[SpeechSegment]
    rejected: Counter[str]

    @property
    def withheld(self) -> Counter[str]:
        """How many segments are kept for audit only, by flag; a segment with two flags counts for both."""
        return Counter(flag for each in self.segments for flag in each.flags if flag in SPEECH_WITHHELD)


def transcribe_pieces(
    transcriber: Transcriber[Model],
    pieces: Iterable[Piece],
    *,
    language: str | None = None,
    stream_index: int | None = None,
    skip_starts: Collection[int] = (),
    max_block_s: float = MAX_BLOCK_S,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[tuple[Span, Cleaned]]:
    """What is said in every block of the sound, with times on the asset's timeline.

    ``pieces`` are as in :func:`~evicat.catalog.transcribers.blocks.cut_blocks`. The spans tile the timeline
    from 0 to the end of the sound, less the blocks that start at one of ``skip_starts`` (microseconds):
    these are cut, not transcribed. ``stream_index`` says which stream of the file the sound is. ``turn`` is
    held for every call of the transcriber. A block without speech has no segments and costs no call of the
    model.

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
        source = transcriber.component
        yield block.span, clean(raw, block.span, source, speech=block.speech, stream_index=stream_index)


def clean(
    raw: Sequence[RawSegment],
    block: Span,
    source: str,
    *,
    speech: Stretches | None = None,
    stream_index: int | None = None,
) -> Cleaned:
    """Segments that may be stored, from those of one block; ``source`` names the transcriber.

    ``speech`` are the stretches of the block with a voice; None: not known, so that nothing follows from it.
    """
    rejected: Counter[str] = Counter()
    kept: list[_Timed] = []
    for index, segment in enumerate(raw):
        reason = _reason_to_reject(segment, block.duration_us / US)
        if reason:
            rejected[reason] += 1
        else:
            kept.append(_timed(raw, index, block.duration_us / US))
    kept.sort(key=lambda timed: (timed.start_s, timed.end_s))
    doubted = doubts([(each.raw, each.start_s, each.end_s) for each in kept], block.duration_us / US, speech)
    facts = {"source": source, "stream_index": stream_index}
    stored = [_stored(timed, block, flags, facts) for timed, flags in zip(kept, doubted, strict=True)]
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


def _is_unsure_language(segment: RawSegment) -> bool:
    probability = segment.language_probability
    return probability is not None and probability < SURE_LANGUAGE_FROM


def _stored(timed: _Timed, block: Span, doubted: tuple[str, ...], facts: dict[str, Any]) -> SpeechSegment:
    raw = timed.raw
    words, words_estimated = placed_words(raw.words, timed.start_s, timed.end_s, block.start_s)
    flags = {
        "unsure_language": _is_unsure_language(raw),
        "word_times_estimated": timed.estimated or words_estimated,
    }
    described = sound_only(raw.text)
    return SpeechSegment(
        kind="speech" if described is None else "sound",
        start_s=round(block.start_s + timed.start_s, 6),
        end_s=round(block.start_s + timed.end_s, 6),
        text=described or raw.text.strip(),
        words=tuple(words) if described is None else (),
        language=raw.language,
        language_probability=raw.language_probability,
        average_log_probability=raw.average_log_probability,
        no_speech_probability=raw.no_speech_probability,
        flags=(*doubted, *(name for name, applies in flags.items() if applies)),
        **facts,
    )
