"""What two producers wrote about one video, side by side in time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evicat.catalog.query import Catalog
from evicat.schemas.entry import KINDS
from evicat.schemas.errors import UsageError
from evicat.viewer.app_search import Piece
from evicat.viewer.page_makers import Maker, makers_of
from evicat.viewer.page_places import placeless

MOST_SHOWN = 2_000
"""Characters of an entry."""
MOST_MARKED = 0.5
"""Share of an entry's words beyond which marks would say nothing."""
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Said:
    """An entry of one side, or a window that has none. ``entry_id`` is empty there; ``pieces`` say why.

    What is sought in its pieces are the words that the other side of the row lacks.
    """

    entry_id: str
    start_s: float
    end_s: float
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A stretch of time that no entry of either side crosses the ends of."""

    start_s: float
    end_s: float
    a: tuple[Said, ...]
    b: tuple[Said, ...]


def makers_to_compare(catalog: Catalog, asset_id: str) -> list[Maker]:
    """The producers that have written entries of a video, or tried to."""
    return [each for each in makers_of(catalog, asset_id) if each.kind in KINDS and each.outcomes]


def chosen(makers: Sequence[Maker], a: str, b: str) -> tuple[Maker, Maker]:
    """The two producers whose ids begin with ``a`` and ``b``; what is left empty is chosen.

    Two of one kind and scale are looked for first, then two of one kind, then any two.

    Raises:
        UsageError: an id is none, or there are no two.
    """
    if len(makers) < 2:
        raise UsageError("only one producer wrote about this video: there is nothing to compare it with")
    first = _beginning(makers, a) if a else None
    second = _beginning(makers, b) if b else None
    pairs = [(x, y) for x in makers for y in makers if x is not y]
    fitting = [
        pair
        for pair in pairs
        if (first is None or pair[0] is first) and (second is None or pair[1] is second)
    ]
    if not fitting:
        raise UsageError("these are the same producer: choose two")
    return max(fitting, key=lambda pair: (_alike(*pair), pair[0].is_shown))


def _beginning(makers: Sequence[Maker], beginning: str) -> Maker:
    found = [each for each in makers if each.producer_id.startswith(beginning)]
    if len(found) != 1:
        known = ", ".join(f"{each.producer_id[:8]} ({each.label})" for each in makers)
        raise UsageError(f"{beginning!r} is the beginning of {len(found)} producers of this video: {known}")
    return found[0]


def _alike(a: Maker, b: Maker) -> int:
    return (a.kind == b.kind) + (a.scale == b.scale)


def compared(catalog: Catalog, asset_id: str, a: Maker, b: Maker) -> list[ComparedRow]:
    """What both wrote, and where they wrote nothing, in rows of time."""
    sides = [_written(catalog, asset_id, each) for each in (a, b)]
    rows = []
    for group in _rows([(side, each) for side in (0, 1) for each in sides[side]]):
        own: tuple[list[Said], list[Said]] = ([], [])
        for side, each in group:
            own[side].append(each)
        words = [{word for each in part for word in _words_of(each)} for part in own]
        rows.append(
            ComparedRow(
                start_s=min(each.start_s for _, each in group),
                end_s=max(each.end_s for _, each in group),
                a=tuple(marked(own[0], words[1])),
                b=tuple(marked(own[1], words[0])),
            )
        )
    return rows


def _written(catalog: Catalog, asset_id: str, maker: Maker) -> list[Said]:
    entries = catalog.entries(asset_id, producer=maker.producer_id)
    told = [
        Said(row["entry_id"], row["start_s"], row["end_s"], (Piece(_shown(row["text"]), False),))
        for row in entries.to_dicts()
    ]
    windows = catalog.coverage(asset_id).filter(producer_id=maker.producer_id, entries=0)
    clean = placeless(catalog)
    bare = [
        Said("", row["start_s"], row["end_s"], (Piece(clean(_why(row)), False),))
        for row in windows.to_dicts()
    ]
    return sorted([*told, *bare], key=lambda each: (each.start_s, each.end_s))


def _shown(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} …"


def _why(window: dict[str, Any]) -> str:
    said = [window["outcome"].replace("_", " "), window["error_class"], window["message"]]
    return ": ".join(each for each in said if each)


Sided = tuple[int, Said]


def _rows(said: Iterable[Sided]) -> Iterator[list[Sided]]:
    """Groups whose spans overlap, in time order."""
    group: list[Sided] = []
    reached_s = 0.0
    for each in sorted(said, key=lambda each: (each[1].start_s, each[0])):
        if group and each[1].start_s >= reached_s:
            yield group
            group = []
        group.append(each)
        reached_s = max(reached_s, each[1].end_s) if len(group) > 1 else each[1].end_s
    if group:
        yield group


def _words_of(said: Said) -> Iterator[str]:
    if said.entry_id:
        yield from (word.lower() for piece in said.pieces for word in _WORDS.findall(piece.text))


def marked(said: Iterable[Said], others: set[str]) -> Iterator[Said]:
    """With the words marked that the other side lacks; none where it lacks most of them."""
    for each in said:
        own = list(_words_of(each))
        lacked = sum(word not in others for word in own)
        if not lacked or lacked > len(own) * MOST_MARKED:
            yield each
            continue
        text, at, parts = each.pieces[0].text, 0, []
        for word in _WORDS.finditer(text):
            if word[0].lower() not in others:
                parts += [Piece(text[at : word.start()], False), Piece(word[0], True)]
                at = word.end()
        parts.append(Piece(text[at:], False))
        yield Said(each.entry_id, each.start_s, each.end_s, tuple(part for part in parts if part.text))
