"""The running cast: who acts in a video, under one name from window to window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evicat.schemas.records import CastMember
from evicat.schemas.span import Span


@dataclass(frozen=True, slots=True)
class Seen:
    """Somebody in a window as a describer names them; ``formerly``: another name, in the cast before."""

    name: str
    descriptor: str
    formerly: str = ""


def running_cast(
    before: Sequence[CastMember], seen: Sequence[Seen], span: Span, most: int
) -> tuple[CastMember, ...]:
    """The cast after a window: who is in it, in the order given, then who was seen before, latest first.

    Beyond ``most`` those go who were last seen longest ago. A name that is given twice counts once; letters
    in another case are the same name. ``formerly`` counts only where the cast before has that name.
    """
    known = {member.name.casefold(): member for member in before}
    present: dict[str, CastMember] = {}
    for one in seen:
        old = (
            known.pop(one.formerly.casefold(), None)
            if one.formerly.casefold() != one.name.casefold()
            else None
        )
        same = known.pop(one.name.casefold(), None)
        if one.name.casefold() not in present:
            present[one.name.casefold()] = _member(one, [each for each in (old, same) if each], span)
    rest = sorted(known.values(), key=lambda member: -member.last_seen_s)
    return (*present.values(), *rest)[:most]


def _member(one: Seen, earlier: Sequence[CastMember], span: Span) -> CastMember:
    names = [
        name
        for each in earlier
        for name in (*each.formerly, each.name)
        if name.casefold() != one.name.casefold()
    ]
    return CastMember(
        name=one.name,
        descriptor=one.descriptor or next((each.descriptor for each in earlier), ""),
        formerly=tuple(dict.fromkeys(names)),
        first_seen_s=min([span.start_s, *(each.first_seen_s for each in earlier)]),
        last_seen_s=span.end_s,
    )
