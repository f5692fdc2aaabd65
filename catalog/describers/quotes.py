"""Which words of the dialogue belong to a window, and what they are word for word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evicat.schemas.entry import SPEECH_WITHHELD, Entry
from evicat.schemas.records import SpeechSegment, Word
from evicat.schemas.span import Span, to_us

from .words import one_line


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of one segment, verbatim up to blanks and line ends, and the time that they take."""

    span: Span
    text: str
    segment: SpeechSegment

    @property
    def voice(self) -> str:
        """Who is heard, in words; subtitles may hold more than speech."""
        if self.segment.speaker:
            return f"{self.segment.speaker} says"
        return "the subtitles read" if self.segment.source.startswith("subtitles:") else "a voice says"


def quotes(speech: Sequence[SpeechSegment], window: Span) -> list[Quote]:
    """What is said in ``window``, in time order; every word falls to exactly one window of a scale.

    A word belongs to the window that holds its middle. A segment without times of words, or whose text does
    not hold its words in order, is not divided: all of it belongs to the window that holds its middle.
    Speech that the transcriber doubts, or that repeats itself, is not quoted.
    """
    heard = [segment for segment in speech if not SPEECH_WITHHELD & set(segment.flags)]
    found = [quote for segment in heard if (quote := _quote(segment, window)) and quote.text]
    return sorted(found, key=lambda quote: quote.span)


def quoted(entries: Sequence[Entry], said: Sequence[Quote]) -> list[str]:
    """Ids of the speech entries that the quotes are from: those of a quoted segment's span."""
    spans = {Span.from_seconds(quote.segment.start_s, quote.segment.end_s) for quote in said}
    speech = (entry for entry in entries if entry.kind == "speech" and not SPEECH_WITHHELD & set(entry.flags))
    return [entry.entry_id for entry in speech if entry.span in spans]


def _quote(segment: SpeechSegment, window: Span) -> Quote | None:
    places = _places(segment)
    inside = [i for i, word in enumerate(segment.words) if _middle_us(word) in window]
    if not places or len(inside) == len(segment.words):
        whole = Span.from_seconds(segment.start_s, segment.end_s)
        here = bool(inside) if places else _middle_us(segment) in window
        return Quote(whole, one_line(segment.text), segment) if here else None
    if not inside:
        return None
    first, last = inside[0], inside[-1]
    text = segment.text[_start(segment, places, first) : _end(segment, places, last)]
    start_us = to_us(segment.words[first].start_s)
    span = Span(start_us, max(to_us(segment.words[last].end_s), start_us + 1))
    return Quote(span, one_line(text), segment)


def _places(segment: SpeechSegment) -> list[tuple[int, int]]:
    """Where each word stands in the text; empty where the text does not hold them all in order."""
    places: list[tuple[int, int]] = []
    position = 0
    for word in segment.words:
        bare = word.text.strip()
        start = segment.text.find(bare, position)
        if start < 0 or _has_words(segment.text[position:start]):
            return []
        position = start + len(bare)
        places.append((start, position))
    return [] if _has_words(segment.text[position:]) else places


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _start(segment: SpeechSegment, places: Sequence[tuple[int, int]], index: int) -> int:
    return places[index][0] if index else 0


def _end(segment: SpeechSegment, places: Sequence[tuple[int, int]], index: int) -> int:
    return places[index][1] if index + 1 < len(places) else len(segment.text)


def _middle_us(timed: Word | SpeechSegment) -> int:
    return (to_us(timed.start_s) + to_us(timed.end_s)) // 2
