"""What a caller keeps of the entries, as values, and as the SQL that Lance filters by. Values are literal:
quotes, ``%`` and ``_`` in them stand for themselves."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from evicat.schemas.entry import KINDS
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.span import Span
from evicat.storage.sql import sql_in, sql_literal

from .arguments import names, words

Between = Span | tuple[float, float] | str
"""A span: as such, as ``(start, end)`` in seconds, or as ``0:30-1:30``."""
OneOrMore = str | Sequence[str]


@dataclass(frozen=True)
class Where:
    """A filter, in parts, as tables of vectors have fewer columns than that of the entries.

    A ranking is made among what :attr:`before_ranking` keeps: videos, producers and kinds, by index, and
    whatever else may keep few. What leaves out few and has no index would cost a look at every row: so
    withheld speech and :attr:`without` are left out of what a ranking has read, which is read on instead.
    """

    ranked: str = ""
    """On what both tables have."""
    entries: str = ""
    """On what only the entries have."""
    without: frozenset[str] = frozenset()
    """Ids of entries that are left out."""
    most: int | None = None
    """So many entries fit at most; None: not known."""
    is_narrow: bool = False
    """Whether it keeps less than the view shows."""

    @property
    def before_ranking(self) -> str:
        return both(self.ranked, self.entries)

    @property
    def shared(self) -> str:
        """On what both tables have, :attr:`without` among it."""
        left_out = f"NOT ({sql_in('entry_id', sorted(self.without))})" if self.without else ""
        return both(self.ranked, left_out)

    @property
    def all(self) -> str:
        return both(self.shared, self.entries)


def both(*terms: str) -> str:
    """All of the terms; empty ones say nothing."""
    return " AND ".join(f"({term})" for term in terms if term)


def span_of(between: Between) -> Span:
    """The span that a caller means.

    Raises:
        UsageError: it is reversed, empty, negative, not finite, or no span at all.
    """
    if isinstance(between, Span):
        return between
    try:
        if isinstance(between, str):
            return Span.parse(between)
        if not isinstance(between, Iterable):
            raise TypeError(f"{between!r} is no span")
        start, end = (float(value) for value in between)
        if not (math.isfinite(start) and math.isfinite(end)):
            raise ValueError(f"start and end must be finite, got {start} and {end}")
        return Span.from_seconds(start, end)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"between: {error}; give (start, end) in seconds, or '0:30-1:30'") from None


def of_kind(kind: OneOrMore) -> str:
    """Raises:
    UnknownNameError: there is no such kind.
    """
    return _one_of("kind", names("kind", kind), KINDS)


def of_scale(scale: OneOrMore, known: Collection[str]) -> str:
    """Raises:
    UnknownNameError: no producer writes at such a scale.
    """
    return _one_of("scale", names("scale", scale), sorted(known))


def _one_of(column: str, wanted: Sequence[str], known: Sequence[str]) -> str:
    for each in wanted:
        if each not in known:
            raise UnknownNameError(column, each, list(known))
    return sql_in(column, wanted)


def overlapping(between: Between) -> str:
    span = span_of(between)
    return f"start_s < {sql_literal(span.end_s)} AND end_s > {sql_literal(span.start_s)}"


def saying(text: str) -> str:
    """Entries whose text holds ``text``, in any case of letters."""
    part, column = words("text", text).lower(), "lower(text)"
    if "\u03c3" in part or "\u03c2" in part:  # sigma has a second small form, at the end of a word
        part, column = part.replace("\u03c2", "\u03c3"), "replace(lower(text), '\u03c2', '\u03c3')"
    return f"contains({column}, {sql_literal(part)})" if part else ""


def without_flags(flags: Collection[str]) -> str:
    return f"NOT array_has_any(flags, [{', '.join(map(sql_literal, sorted(flags)))}])" if flags else ""
