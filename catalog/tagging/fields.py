"""Tags from records: the words of a factor, looked for in fields of what a describer wrote.

A word counts where it stands by itself, whatever its case, unless a negation stands right before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import polars as pl

from evicat.catalog.tagging.base import FOUND_SCHEMA, Found, Tagger
from evicat.catalog.tagging.vocabulary import Factor
from evicat.storage.factors import YES

TEXT = "text"
"""The field that stands for the text of the entry."""
_BREAK = "\x1f"
"""Stands between phrases, so that no word is found across two of them."""
_NEGATED = re.compile(
    r"\b(?:no|not|without|never|nothing|nobody|neither|nor)\s+(?:an?\s+|any\s+|the\s+)?$", re.I
)


class FieldTagger(Tagger):
    """Needs no model; entries whose records lack the fields get no tags."""

    component: ClassVar[str] = "fields"
    version: ClassVar[int] = 1

    def facts(self, factor: Factor) -> dict[str, Any]:
        """The words, and the fields in which they are looked for."""
        return {"words": list(factor.words), "fields": list(factor.fields)}

    def tag(self, entries: pl.DataFrame, factors: Sequence[Factor]) -> Found:
        """As :meth:`Tagger.tag`; a factor without words is never found."""
        said = _Said(entries)
        rows = [
            (row, number, YES, *hit)
            for number, factor in enumerate(factors)
            if factor.words
            for row, hit in _hits(said, factor)
        ]
        return Found(pl.DataFrame(rows, schema=FOUND_SCHEMA, orient="row"))


class _Said:
    """What entries say in each field, read once for all factors."""

    def __init__(self, entries: pl.DataFrame) -> None:
        self.kinds = entries["kind"]
        self.texts: list[str] = entries["text"].to_list()
        self._records: list[dict[str, Any]] = [json.loads(record) for record in entries["record"]]
        self._phrases: dict[str, pl.Series] = {}

    def field(self, name: str) -> pl.Series:
        """By entry: the phrases of a field."""
        if name not in self._phrases:
            found = self.texts if name == TEXT else [_joined(record.get(name)) for record in self._records]
            self._phrases[name] = pl.Series(name, found, pl.String)
        return self._phrases[name]


def _joined(value: Any) -> str:
    return _BREAK.join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    """All texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)


Hit = tuple[str, float | None, str, int | None, int | None]


def _hits(said: _Said, factor: Factor) -> Iterator[tuple[int, Hit]]:
    """The first word of ``factor`` in each entry that has one: fields in their order, each entry once."""
    pattern = _pattern(factor.words)
    exact, own = re.compile(pattern, re.IGNORECASE), said.kinds.is_in(list(factor.kinds))
    done: set[int] = set()
    for name in factor.fields:
        phrases = said.field(name)
        for row in (phrases.str.contains(f"(?i){pattern}") & own).arg_true().to_list():
            if row in done:
                continue
            match = _first_said(exact, phrases[row])
            if match is None:
                continue
            done.add(row)
            place = match.span() if name == TEXT else _place(match.group(), said.texts[row])
            yield row, (match.group(), None, name, *place)


def _first_said(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next((each for each in pattern.finditer(text) if not _NEGATED.search(text, 0, each.start())), None)


def _place(word: str, text: str) -> tuple[int | None, int | None]:
    """Where the text has the word too; nowhere, where it puts it in other words."""
    match = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    return match.span() if match else (None, None)


def _pattern(words: Sequence[str]) -> str:
    return rf"\b(?:{'|'.join(map(_word_pattern, words))})\b"


def _word_pattern(word: str) -> str:
    """``cook*``: any ending; ``*``: any word."""
    stem = re.escape(word.removesuffix("*")).replace(r"\ ", " ")
    return stem + (r"\w*" if stem else r"\w+") if word.endswith("*") else stem
