"""What the search page shows: a question, and the moments that answer it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from evicat.catalog.reading.search import MODES, Mode
from evicat.schemas.entry import KINDS
from evicat.viewer.app_catalogs import Catalogs, Opened
from evicat.viewer.app_query import Asked

PARAMETERS: Final = ("q", "mode", "kind", "video", "factors", "limit")
LIMITS: Final = (20, 50, 100, 200)
SNIPPET = 360
"""Characters of an entry that are shown."""
_LEAD = 90
"""Of these, so many at most stand before the first word that was looked for."""
_WORDS = re.compile(r"\w+")


class Piece(NamedTuple):
    """Part of a text. ``is_sought``: it is a word that was looked for."""

    text: str
    is_sought: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for, checked. Empty ``kind``, ``video`` and ``factors``: any."""

    q: str
    mode: Mode
    kind: str
    video: str
    factors: str
    """An expression, such as ``place:kitchen and not people:crowd``."""
    limit: int

    @classmethod
    def read(cls, asked: Asked) -> Question:
        """From the parameters :data:`PARAMETERS`.

        Raises:
            UsageError: one of them does not fit.
        """
        mode = next(each for each in MODES if each == asked.one_of("mode", MODES, "hybrid"))
        return cls(
            q=asked.text("q"),
            mode=mode,
            kind=asked.one_of("kind", ("", *KINDS), ""),
            video=asked.text("video"),
            factors=asked.text("factors"),
            limit=asked.whole("limit", LIMITS[0], 1, LIMITS[-1]),
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found. ``picture``: which of its frames stands for it; None where it has none."""

    entry_id: str
    asset_id: str
    video: str
    kind: str
    start_s: float
    end_s: float
    pieces: tuple[Piece, ...]
    speaker: str | None
    picture: int | None

    @property
    def middle_ms(self) -> int:
        """The middle of its span: the frame that another entry shows nearest to it may stand for it."""
        return round((self.start_s + self.end_s) * 500)


def found(catalogs: Catalogs, opened: Opened, question: Question) -> list[Hit]:
    """The entries that answer, best first.

    Raises:
        UsageError: no such video or factor, or the question cannot be embedded here.
    """
    if not question.q:
        return []
    vector = None if question.mode == "text" else catalogs.query_vector(opened, question.q)
    rows = opened.catalog.search(
        question.q,
        mode=question.mode,
        vector=vector,
        limit=question.limit,
        kind=question.kind or None,
        video=question.video or None,
        factors=question.factors or None,
    )
    return [_hit(row, question.q) for row in rows.to_dicts()]


def _hit(row: dict[str, Any], q: str) -> Hit:
    same = ("entry_id", "asset_id", "video", "kind", "start_s", "end_s", "speaker")
    frames = len(row["frames"])
    return Hit(
        **{name: row[name] for name in same},
        pieces=pieces(row["text"], q),
        picture=frames // 2 if frames else None,
    )


def pieces(text: str, q: str, most: int = SNIPPET) -> tuple[Piece, ...]:
    """At most ``most`` characters of ``text``, about where the words of ``q`` are, and which these are."""
    words = {word.lower() for word in _WORDS.findall(q)}
    sought = [each.span() for each in _WORDS.finditer(text) if each[0].lower() in words]
    start, end = _cut(text, sought[0][0] if sought else 0, most)
    found: list[Piece] = [Piece("… ", False)] if start else []
    for first, last in sought:
        if start <= first and last <= end:
            found += [Piece(text[start:first], False), Piece(text[first:last], True)]
            start = last
    found.append(Piece(text[start:end] + (" …" if end < len(text) else ""), False))
    return tuple(piece for piece in found if piece.text)


def _cut(text: str, first: int, most: int) -> tuple[int, int]:
    """Where the part begins and ends that is shown, between words where that is near."""
    if len(text) <= most:
        return 0, len(text)
    start = max(0, min(first - _LEAD, len(text) - most))
    if start:
        start = text.find(" ", start, start + 20) + 1 or start
    end = min(len(text), start + most)
    if end < len(text):
        end = text.rfind(" ", end - 20, end) if text.rfind(" ", end - 20, end) > start else end
    return start, end
