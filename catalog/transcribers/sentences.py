"""Speech as sentences: what a citation should cover, whatever pieces the transcriber works in.

Whisper cuts where its 30 s are full, in the middle of a phrase, and puts several sentences into one segment.
Words have times of their own, so segments are joined where a sentence runs on and divided where one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from evicat.schemas.records import SpeechSegment, Word

PAUSE_S = 1.0
"""Less than what lies between two stretches of speech (2 s less the pads), more than a breath."""
LONGEST_S = 30.0
"""Segments are not joined beyond this: a transcriber that writes no full stops would never end a sentence."""
MIN_S = 0.02
"""Shortest segment: the step of Whisper's time stamps."""

_STOPS = (".", "?", "!", "…", "。", "？", "！", "।", "؟")  # noqa: RUF001
_CLOSING = "\"'”’»)]"  # noqa: RUF001
_TITLES = frozenset({"mr.", "mrs.", "ms.", "dr.", "prof.", "st."})


def sentences(segments: Iterable[SpeechSegment]) -> list[SpeechSegment]:
    """``segments`` (in time order) joined and divided so that each is a sentence, or a part before a pause.

    Segments without words stay as they are, and so do flags: only equally flagged neighbours are joined.
    """
    return [sentence for joined in _joined(segments) for sentence in _divided(joined)]


def _joined(segments: Iterable[SpeechSegment]) -> Iterator[SpeechSegment]:
    open_one: SpeechSegment | None = None
    for segment in segments:
        if open_one is None:
            open_one = segment
        elif _runs_on(open_one, segment):
            open_one = _join(open_one, segment)
        else:
            yield open_one
            open_one = segment
    if open_one is not None:
        yield open_one


def _runs_on(first: SpeechSegment, second: SpeechSegment) -> bool:
    return (
        bool(first.words and second.words)
        and not _ends_sentence(first.words[-1])
        and 0 <= second.words[0].start_s - first.words[-1].end_s < PAUSE_S
        and second.end_s - first.start_s <= LONGEST_S
        and _manner(first) == _manner(second)
    )


def _manner(segment: SpeechSegment) -> tuple[object, ...]:
    return segment.kind, segment.flags, segment.language, segment.speaker


def _join(first: SpeechSegment, second: SpeechSegment) -> SpeechSegment:
    words = (*first.words, *second.words)
    return first.model_copy(
        update={
            "end_s": second.end_s,
            "words": words,
            "text": _text(words),
            "average_log_probability": _worse(
                min, first.average_log_probability, second.average_log_probability
            ),
            "no_speech_probability": _worse(max, first.no_speech_probability, second.no_speech_probability),
            "language_probability": _worse(min, first.language_probability, second.language_probability),
        }
    )


def _worse(pick: Callable[[list[float]], float], *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return pick(known) if known else None


def _divided(segment: SpeechSegment) -> Iterator[SpeechSegment]:
    words = segment.words
    cuts = [
        index
        for index, (word, later) in enumerate(pairwise(words), 1)
        if _ends_sentence(word) or later.start_s - word.end_s >= PAUSE_S
    ]
    if not cuts:
        yield segment
        return
    for first, end in pairwise([0, *cuts, len(words)]):
        part = words[first:end]
        end_s = min(segment.end_s, max(part[-1].end_s, part[0].start_s + MIN_S))
        start_s = min(part[0].start_s, end_s - MIN_S)
        yield segment.model_copy(
            update={"start_s": start_s, "end_s": end_s, "text": _text(part), "words": part}
        )


def _ends_sentence(word: Word) -> bool:
    text = word.text.strip().rstrip(_CLOSING)
    return text.endswith(_STOPS) and text.lower() not in _TITLES


def _text(words: Iterable[Word]) -> str:
    return "".join(word.text for word in words).strip()
