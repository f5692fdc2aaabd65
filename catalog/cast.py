"""The cast of a video, read from its narratives: who acts in it, under which names, from when to when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl
from pydantic import ValidationError

from evicat.schemas.errors import IntegrityError
from evicat.schemas.records import CastMember, NarrativeRecord

CAST_SCHEMA = pl.Schema(
    [
        ("scale", pl.String()),
        ("producer_id", pl.String()),
        ("identity", pl.String()),
        ("descriptor", pl.String()),
        ("formerly", pl.List(pl.String())),
        ("first_seen_s", pl.Float64()),
        ("last_seen_s", pl.Float64()),
        ("entries", pl.List(pl.String())),
    ]
)
"""``identity`` is the last name; ``entries`` are the narratives of the windows that they are in."""


@dataclass
class _Person:
    member: CastMember
    entries: list[str] = field(default_factory=list)


def cast_frame(narratives: pl.DataFrame) -> pl.DataFrame:
    """One row per member of the cast and producer, in order of their first appearance.

    ``narratives``: ``entry_id, scale, producer_id, end_s, start_s, record`` of the narratives of one asset.

    Raises:
        IntegrityError: a record is not that of a narrative.
    """
    rows = []
    for (scale, producer_id), group in narratives.group_by("scale", "producer_id", maintain_order=True):
        ordered = group.sort("start_s", "entry_id").select("entry_id", "end_s", "record").iter_rows()
        for person in _people(ordered):
            member = person.member
            names = member.name, member.descriptor, list(member.formerly)
            seen = member.first_seen_s, member.last_seen_s
            rows.append((scale, producer_id, *names, *seen, person.entries))
    found = pl.DataFrame(rows, schema=CAST_SCHEMA, orient="row")
    return found.sort("scale", "producer_id", "first_seen_s", "identity")


def _people(narratives: Iterable[tuple[str, float, str]]) -> list[_Person]:
    """Everybody whom narratives in order of time name as being in their window."""
    people: list[_Person] = []
    by_name: dict[str, _Person] = {}
    for entry_id, end_s, record in narratives:
        for member in _cast(entry_id, record):
            if member.last_seen_s != end_s:
                continue  # kept from an earlier window, and not in this one
            names = [name.casefold() for name in (member.name, *member.formerly)]
            person = next((by_name[name] for name in names if name in by_name), None)
            if person is None:
                people.append(person := _Person(member))
            first_seen_s = min(person.member.first_seen_s, member.first_seen_s)
            person.member = member.model_copy(update={"first_seen_s": first_seen_s})
            person.entries.append(entry_id)
            by_name |= dict.fromkeys(names, person)
    return people


def _cast(entry_id: str, record: str) -> tuple[CastMember, ...]:
    try:
        return NarrativeRecord.model_validate_json(record).cast
    except ValidationError:
        raise IntegrityError(
            f"the record of {entry_id} is not that of a narrative: {record[:200]!r}; make it again"
        ) from None
