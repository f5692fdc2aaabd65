"""The narrative describer that needs no language model: one paragraph of what other entries hold, in order.

It adds nothing. What the local entries of a window say is told with its span, and once where neighbouring
entries say the same; dialogue is quoted word for word with its times. Local records are told whole and with
their own spans, also where they reach past the window. Spoken clues of local records are left out, because
the speech itself is quoted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Final, Literal

from pydantic import ValidationError

from evicat.schemas.entry import SPEECH_WITHHELD, Entry
from evicat.schemas.errors import WindowError
from evicat.schemas.model import Model
from evicat.schemas.records import Entity, LocalRecord, NarrativeRecord
from evicat.schemas.span import Span

from .base import Describer, Description, Reads, WindowInput
from .quotes import Quote, quotes
from .words import listed, one_line, sentence, short_span

LONGEST: Final = 20_000
"""Characters that a narrative may have; a window whose dialogue is longer has no narrative."""

_FIELDS: Final = (
    ("scene", ""),
    ("place", "the place: "),
    ("colours", "colours: "),
    ("people", "people: "),
    ("entities", "also: "),
    ("objects", "objects: "),
    ("actions", "actions: "),
    ("interactions", "interactions: "),
    ("social_cues", "social cues: "),
    ("changes", ""),
    ("screen_text", "on screen: "),
)
"""Fields of a local record in the order in which they are told, and what introduces them."""


class DigestOptions(Model):
    """The digest has no options."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One phrase of one field, and the time over which neighbouring local entries hold it."""

    span: Span
    field: str
    phrase: str


class Digest(Describer[DigestOptions]):
    """Retells local entries and speech."""

    component: ClassVar[str] = "digest"
    version: ClassVar[int] = 1
    kind: ClassVar[Literal["local", "narrative"]] = "narrative"
    reads: ClassVar[frozenset[Reads]] = frozenset({"local", "speech"})
    options_class: ClassVar[type[Model]] = DigestOptions

    def describe(self, window: WindowInput) -> Description:
        """Retell a window; there is no record where nothing is quoted and nothing was visible.

        Raises:
            WindowError: the record of a local entry is not one, or the paragraph is longer than a narrative
                may be.
        """
        local = [entry for entry in window.entries if entry.kind == "local"]
        said = quotes(window.speech, window.span)
        if not said and all("nothing_visible" in entry.flags for entry in local):
            return Description(record=None)
        text = " ".join(_sentences(_facts(local), said))
        if not text:
            return Description(record=None)
        if len(text) > LONGEST:
            raise WindowError(
                f"the digest of {window.span} has {len(text)} characters, {LONGEST} are possible; "
                "write a smaller window_seconds for this scale"
            )
        rests_on = (*(entry.entry_id for entry in local), *_spoken(window.entries, said))
        return Description(record=NarrativeRecord(narrative=text, rests_on=rests_on), text=text)


def _spoken(entries: Sequence[Entry], said: Sequence[Quote]) -> list[str]:
    """Ids of the speech entries that the quotes are from: those of a quoted segment's span."""
    spans = {Span.from_seconds(quote.segment.start_s, quote.segment.end_s) for quote in said}
    speech = (entry for entry in entries if entry.kind == "speech" and not SPEECH_WITHHELD & set(entry.flags))
    return [entry.entry_id for entry in speech if entry.span in spans]


def _facts(local: Sequence[Entry]) -> list[Fact]:
    """What the entries hold; a phrase that the next entry of the same scale repeats is one longer fact."""
    found: list[Fact] = []
    by_scale: dict[str, list[Entry]] = defaultdict(list)
    for entry in local:
        by_scale[entry.producer_id].append(entry)
    for entries in by_scale.values():
        lasting: dict[tuple[str, str], Fact] = {}
        for entry in entries:
            said = {key: Fact(entry.span, *key) for key in _phrases(entry)}
            for key, before in lasting.items():
                if key in said and before.span.end_us == entry.span.start_us:
                    said[key] = Fact(Span(before.span.start_us, entry.span.end_us), *key)
                else:
                    found.append(before)
            lasting = said
        found += lasting.values()
    return found


def _phrases(entry: Entry) -> list[tuple[str, str]]:
    """``(field, phrase)`` for everything that a local record holds, each once."""
    try:
        record = LocalRecord.model_validate_json(entry.record)
    except ValidationError as error:
        raise WindowError(f"the record of entry {entry.entry_id} is not a local record: {error}") from None
    found: list[tuple[str, str]] = []
    for field, _ in _FIELDS:
        value = getattr(record, field)
        values = [value] if isinstance(value, str) else list(value)
        found += [(field, phrase) for item in values if (phrase := _phrase(field, item))]
    return list(dict.fromkeys(found))


def _phrase(field: str, item: str | Entity) -> str:
    if isinstance(item, Entity):
        details = f" ({', '.join(item.details)})" if item.details else ""
        return one_line(item.descriptor + details)
    text = one_line(item)
    return f'"{text}"' if field == "screen_text" and text else text.rstrip(".")


def _sentences(facts: Sequence[Fact], said: Sequence[Quote]) -> list[str]:
    """Sentences in order of their start; at one start what is seen longest comes first, then what is said."""
    by_span: dict[Span, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_span[fact.span].append(fact)
    events: list[tuple[Span, list[Fact] | Quote]] = list(by_span.items())
    events += [(quote.span, quote) for quote in said]
    events.sort(key=lambda event: (event[0].start_us, isinstance(event[1], Quote), -event[0].end_us))
    sentences: list[str] = []
    for voice, run in groupby(events, key=lambda event: _voice(event[1])):
        if voice:
            spoken = [f'"{item.text}" ({short_span(span)})' for span, item in run if isinstance(item, Quote)]
            sentences.append(sentence(f"{voice}: {listed(spoken)}"))
        else:
            sentences += [_seen(span, item) for span, item in run if not isinstance(item, Quote)]
    return sentences


def _voice(item: list[Fact] | Quote) -> str:
    return item.voice if isinstance(item, Quote) else ""


def _seen(span: Span, facts: Sequence[Fact]) -> str:
    """``0:00.0-0:20.0: a dark picture; colours: mostly black; on screen: "THE END".``"""
    phrases: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        phrases[fact.field].append(fact.phrase)
    told = []
    for field, opening in _FIELDS:
        if field in phrases:
            joined = "; ".join(phrases[field]) if field == "changes" else ", ".join(phrases[field])
            told.append(opening + joined)
    return sentence(f"{short_span(span)}: {'; '.join(told)}")
