"""The narrative describer that needs no language model: one paragraph of what other entries hold, in order.

It adds nothing. What the local entries of a window say is told with its span, and once where neighbouring
entries say the same; dialogue is quoted word for word with its times. Local records are told whole and with
their own spans, also where they reach past the window. Spoken clues of local records are left out, because
the speech itself is quoted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar, Final, Literal

from evicat.schemas.errors import WindowError
from evicat.schemas.model import Model
from evicat.schemas.records import NarrativeRecord
from evicat.schemas.span import Span

from .base import Describer, Description, Reads, WindowInput
from .facts import FIELDS, Fact, facts
from .quotes import Quote, quoted, quotes
from .words import listed, sentence, short_span

LONGEST: Final = 20_000
"""Characters that a narrative may have; a window whose dialogue is longer has no narrative."""

_OPENINGS: Final = {
    "place": "the place: ",
    "colours": "colours: ",
    "people": "people: ",
    "entities": "also: ",
    "objects": "objects: ",
    "actions": "actions: ",
    "interactions": "interactions: ",
    "social_cues": "social cues: ",
    "screen_text": "on screen: ",
}
"""What introduces a field of a local record."""


class DigestOptions(Model):
    """The digest has no options."""


class Digest(Describer[DigestOptions]):
    """Retells local entries and speech."""

    component: ClassVar[str] = "digest"
    version: ClassVar[int] = 2
    kind: ClassVar[Literal["local", "narrative"]] = "narrative"
    reads: frozenset[Reads] = frozenset({"local", "speech"})
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
        text = " ".join(_sentences(facts(local), said))
        if not text:
            return Description(record=None)
        if len(text) > LONGEST:
            raise WindowError(
                f"the digest of {window.span} has {len(text)} characters, {LONGEST} are possible; "
                "write a smaller window_seconds for this scale"
            )
        rests_on = (*(entry.entry_id for entry in local), *quoted(window.entries, said))
        return Description(record=NarrativeRecord(narrative=text, rests_on=rests_on), text=text)


def _sentences(found: Sequence[Fact], said: Sequence[Quote]) -> list[str]:
    """Sentences in order of their start; at one start what is seen longest comes first, then what is said."""
    by_span: dict[Span, list[Fact]] = defaultdict(list)
    for fact in found:
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


def _seen(span: Span, found: Sequence[Fact]) -> str:
    """``0:00.0-0:20.0: a dark picture; colours: mostly black; on screen: "THE END".``"""
    phrases: dict[str, list[str]] = defaultdict(list)
    for fact in found:
        phrases[fact.field].append(fact.words)
    told = []
    for field in FIELDS:
        if field in phrases:
            joined = "; ".join(phrases[field]) if field == "changes" else ", ".join(phrases[field])
            told.append(_OPENINGS.get(field, "") + joined)
    return sentence(f"{short_span(span)}: {'; '.join(told)}")
