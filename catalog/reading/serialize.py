"""The catalog as readers are given it, and their citations back to entries.

ASSEMBLE, App. A and Table 4: narratives before local entries and no other kind, ranks from 1, time spans
with one decimal, descriptions of at most 1,200 characters; ``(clip 3)`` and ``clip 3`` cite the entry of
rank 3. The paper does not say what of a longer description is kept: listed clues stand first (chosen).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.span import Span

MAX_CHARACTERS = 1_200
"""Of a description (ASSEMBLE, App. A)."""
CUT = "..."
CLUES = (
    *("actions", "interactions", "social_cues", "screen_text", "spoken_clues", "changes"),
    *("people", "entities", "objects"),
)
"""Fields of a local record that stand first where its description is cut."""

Form = Literal["assemble", "pace", "videoseal", "dvd"]
OverBudget = Literal["raise", "drop_last", "drop_locals"]
_ORDER = {"narrative": 0, "local": 1}
ORDER = ("video", "start_s", "end_s", "scale", "entry_id")
"""Of entries of one kind."""
_BETWEEN = r"\s*(?:,\s*and|,\s*&|,|and|&|[-\u2013])\s*"
_CITATION = re.compile(rf"\bclips?\s+(\d+(?:{_BETWEEN}(?:clips?\s+)?\d+)*)", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+)\s*[-\u2013]\s*(?:clips?\s+)?(\d+)|(\d+)", re.IGNORECASE)
_MOST_DIGITS = 18
"""Of a number that a model wrote: Python refuses to read one of thousands of digits."""


@dataclass(frozen=True)
class Ranked:
    """One serialized entry."""

    rank: int
    entry_id: str
    asset_id: str
    span: Span
    """At full precision; the text shows one decimal."""
    description: str
    is_cut: bool

    @property
    def clip(self) -> str:
        """How readers cite it."""
        return f"(clip {self.rank})"


@dataclass(frozen=True)
class Serialized:
    """A serialized catalog; byte for byte the same for the same view of the same snapshot."""

    text: str
    entries: tuple[Ranked, ...]
    dropped: tuple[str, ...] = ()
    """Ids of entries that the budget left no room for."""

    def __str__(self) -> str:
        return self.text

    @property
    def cut(self) -> int:
        """How many descriptions were cut."""
        return sum(entry.is_cut for entry in self.entries)

    def cited(self, answer: str) -> Citations:
        """What ``answer`` cites of it."""
        return parse_citations(answer, self)


@dataclass(frozen=True)
class Citations:
    """The citations of one answer, in their order, each entry once."""

    entries: tuple[Ranked, ...] = ()
    repeated: tuple[int, ...] = ()
    """Ranks that were cited again."""
    unknown: tuple[int, ...] = ()
    """Ranks that no entry has."""
    spans: tuple[Span, ...] = field(default=())

    @property
    def entry_ids(self) -> list[str]:
        return [entry.entry_id for entry in self.entries]


def serialize(
    entries: pl.DataFrame,
    *,
    form: Form = "assemble",
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
    over_budget: OverBudget = "raise",
) -> Serialized:
    """Serialize the narratives and local entries among ``entries``, ranked from 1.

    Args:
        entries: Rows of one view, as ``Catalog.entries`` gives them.
        form: ``assemble``: ``rank``, ``time_span``, ``description``. ``pace``, ``videoseal``, ``dvd``: local
            entries in time order, for those systems (the papers give no exact form: chosen).
        max_tokens: Budget; None: none. It needs ``count_tokens``, the reader's own tokenizer.
        over_budget: ``raise``; ``drop_last``: whole entries from the end of the ranking; ``drop_locals``: the
            same, but never a narrative.

    Raises:
        UnknownNameError: no such form or rule.
        UsageError: over the budget, or a budget without a tokenizer.
    """
    if form not in _LINES:
        raise UnknownNameError("form", form, list(_LINES))
    if over_budget not in ("raise", "drop_last", "drop_locals"):
        raise UnknownNameError("rule", over_budget, ["raise", "drop_last", "drop_locals"])
    rows = _ordered(entries, form)
    if max_tokens is None:
        return _write(rows, form)
    if count_tokens is None:
        raise UsageError("max_tokens needs count_tokens: the function that counts them as the reader does")
    least = {
        "raise": len(rows),
        "drop_last": 0,
        "drop_locals": sum(row["kind"] == "narrative" for row in rows),
    }[over_budget]
    if (count := count_tokens(_write(rows[:least], form).text)) > max_tokens:
        raise UsageError(
            f"{least} serialized entries have {count} tokens, and {max_tokens} are allowed; allow more, "
            "take a shorter span, or drop whole entries with over_budget = 'drop_last' or 'drop_locals'"
        )
    fit = bisect_right(
        range(least, len(rows) + 1), max_tokens, key=lambda n: count_tokens(_write(rows[:n], form).text)
    )
    kept = least + fit - 1  # the rank of an entry does not depend on those behind it
    result = _write(rows[:kept], form)
    return replace(result, dropped=tuple(row["entry_id"] for row in rows[kept:]))


def _ordered(entries: pl.DataFrame, form: Form) -> list[dict[str, Any]]:
    kinds = list(_ORDER) if form == "assemble" else ["local"]
    kept = entries.filter(pl.col("kind").is_in(kinds))
    order = pl.col("kind").replace_strict(_ORDER, return_dtype=pl.Int8)
    return kept.sort(order, *ORDER).to_dicts()


def _write(rows: Sequence[dict[str, Any]], form: Form) -> Serialized:
    ranked = [_ranked(rank, row) for rank, row in enumerate(rows, start=1)]
    return Serialized("".join(map(_LINES[form], ranked)), tuple(ranked))


def _ranked(rank: int, row: dict[str, Any]) -> Ranked:
    text = " ".join(row["text"].split())
    is_cut = len(text) > MAX_CHARACTERS
    if is_cut:
        text = _shortened(row["record"], text)
    span = Span.from_seconds(row["start_s"], row["end_s"])
    return Ranked(rank, row["entry_id"], row["asset_id"], span, text, is_cut)


def _shortened(record: str, text: str) -> str:
    """At most :data:`MAX_CHARACTERS`, the clues of a local record first, cut between words."""
    clues = "; ".join(_clues(json.loads(record)))
    if clues and clues not in text[:MAX_CHARACTERS]:
        text = f"{clues}. {text}"
    cut = text[: MAX_CHARACTERS - len(CUT)]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut) + CUT


def _clues(record: dict[str, Any]) -> Iterable[str]:
    for name in CLUES:
        values = record.get(name)
        for value in values if isinstance(values, list) else ():
            yield str(value["descriptor"]) if isinstance(value, dict) else str(value)


def _assemble(entry: Ranked) -> str:
    span = f"[{entry.span.start_s:.1f}, {entry.span.end_s:.1f}] s"
    return f"rank: {entry.rank} time_span: {span} description: {entry.description}\n"


def _pace(entry: Ranked) -> str:
    return f"[clip {entry.rank}] {entry.span.start_s:.1f}s-{entry.span.end_s:.1f}s: {entry.description}\n"


def _videoseal(entry: Ranked) -> str:
    fields = {"clip": entry.rank, "start": round(entry.span.start_s, 1), "end": round(entry.span.end_s, 1)}
    return json.dumps({**fields, "caption": entry.description}, ensure_ascii=False) + "\n"


def _dvd(entry: Ranked) -> str:
    times = "_".join(_clock(seconds) for seconds in (entry.span.start_s, entry.span.end_s))
    return f"{times}: {entry.description}\n"


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


_LINES: dict[Form, Callable[[Ranked], str]] = {
    "assemble": _assemble,
    "pace": _pace,
    "videoseal": _videoseal,
    "dvd": _dvd,
}


def parse_citations(answer: str, of: Serialized) -> Citations:
    """What an answer cites: ``(clip 3)``, ``clip 1, clip 2``, ``clips 1, 2, and 5``, ``clips 3-5``.

    Case does not count. Ranks stand in the order in which they are first cited.
    """
    by_rank = {entry.rank: entry for entry in of.entries}
    ranks = list(_ranks(answer, len(by_rank)))
    first = list(dict.fromkeys(ranks))
    entries = tuple(by_rank[rank] for rank in first if rank in by_rank)
    return Citations(
        entries=entries,
        repeated=tuple(rank for index, rank in enumerate(ranks) if rank in ranks[:index]),
        unknown=tuple(rank for rank in first if rank not in by_rank),
        spans=tuple(entry.span for entry in entries),
    )


def _ranks(answer: str, most: int) -> Iterable[int]:
    for listed in _CITATION.findall(answer):
        for numbers in _NUMBER.findall(listed):
            ranks = [int(number[:_MOST_DIGITS]) for number in numbers if number]
            if len(ranks) == 2 and ranks[0] <= ranks[1] <= most:
                yield from range(ranks[0], ranks[1] + 1)
            else:  # one, or no range of ranks: two numbers
                yield from ranks
