"""What local entries hold, phrase by phrase, and how long neighbouring entries go on holding it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from evicat.schemas.entry import Entry
from evicat.schemas.errors import WindowError
from evicat.schemas.records import Entity, LocalRecord
from evicat.schemas.span import Span, to_us

from .colours import TERMS
from .words import one_line, short_time

FIELDS: Final = (
    "scene",
    "place",
    "colours",
    "people",
    "entities",
    "objects",
    "actions",
    "interactions",
    "social_cues",
    "changes",
    "screen_text",
)
"""Fields of a local record in the order in which they are told. Spoken clues are not among them."""

_COLOUR: Final = re.compile(rf"((?:almost all|mostly|much|some|a little) (?:{'|'.join(TERMS)}))(?: .+)?")
"""How ``sight`` names a colour; the group is what is left of it without its place."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One phrase of one field, and the time over which neighbouring local entries hold it.

    ``seen_us``: times of the first and the last frame with a text on screen, where the record has them.
    """

    span: Span
    field: str
    phrase: str
    seen_us: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        """The phrase, and when it was seen: in single frames, so nothing is said of the time between."""
        if self.seen_us is None:
            return self.phrase
        first, last = map(short_time, self.seen_us)
        return f"{self.phrase} (" + (
            f"seen at {first})" if first == last else f"first seen at {first}, last at {last})"
        )

    def joined(self, later: Fact) -> Fact | None:
        """This fact and what the next entry holds as one; None where they are two.

        A colour that changes its place alone goes on, without the place: that much is true of both.
        """
        if self.field != later.field or self.span.end_us != later.span.start_us:
            return None
        phrase = self.phrase if self.phrase == later.phrase else self._colour_of_both(later)
        if phrase is None:
            return None
        both = [seen for seen in (self.seen_us, later.seen_us) if seen]
        seen_us = (both[0][0], both[-1][1]) if both else None
        return replace(self, span=Span(self.span.start_us, later.span.end_us), phrase=phrase, seen_us=seen_us)

    def _colour_of_both(self, later: Fact) -> str | None:
        if self.field != "colours":
            return None
        one, other = _COLOUR.fullmatch(self.phrase), _COLOUR.fullmatch(later.phrase)
        return one[1] if one and other and one[1] == other[1] else None


def facts(local: Sequence[Entry]) -> list[Fact]:
    """What the entries hold; what the next entry of the same scale repeats is one longer fact.

    Raises:
        WindowError: the record of an entry is not a local record.
    """
    found: list[Fact] = []
    by_scale: dict[str, list[Entry]] = defaultdict(list)
    for entry in local:
        by_scale[entry.producer_id].append(entry)
    for entries in by_scale.values():
        lasting: list[Fact] = []
        for entry in entries:
            said = _held(entry)
            for before in lasting:
                match = next((now for now in said if before.joined(now)), None)
                joined = before.joined(match) if match else None
                if match and joined:
                    said[said.index(match)] = joined
                else:
                    found.append(before)
            lasting = said
        found += lasting
    return found


def _held(entry: Entry) -> list[Fact]:
    """Everything that a local record holds, each once."""
    try:
        record = LocalRecord.model_validate_json(entry.record)
    except ValidationError as error:
        raise WindowError(f"the record of entry {entry.entry_id} is not a local record: {error}") from None
    found: dict[tuple[str, str], Fact] = {}
    for field in FIELDS:
        value = getattr(record, field)
        for item in [value] if isinstance(value, str) else value:
            if phrase := _phrase(field, item):
                seen_us = _seen_us(record, item) if field == "screen_text" else None
                found.setdefault((field, phrase), Fact(entry.span, field, phrase, seen_us))
    return list(found.values())


def _seen_us(record: LocalRecord, text: str) -> tuple[int, int] | None:
    times = [to_us(box.time_s) for box in record.boxes if box.name == text]
    return (min(times), max(times)) if times else None


def _phrase(field: str, item: str | Entity) -> str:
    if isinstance(item, Entity):
        details = f" ({', '.join(item.details)})" if item.details else ""
        return one_line(item.descriptor + details)
    text = one_line(item)
    return f'"{text}"' if field == "screen_text" and text else text.rstrip(".")
