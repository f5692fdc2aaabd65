"""Filters by factors: ``place:kitchen and not (people:crowd or people:group)``.

``and``, ``or``, ``not`` and brackets, in any case of letters; ``not`` binds most, ``or`` least. Several
expressions, as a list, must all hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from evicat.catalog.tagging.names import nearest
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_literal
from evicat.storage.tables import TAG

from .arguments import names

_TOKEN = re.compile(r"\s*([()]|[^\s()]+)")
_WORDS = ("and", "or", "not")
MOST_TOKENS = 1_000
"""Longer filters would be too deep for the storage engine."""


@dataclass(frozen=True)
class KnownFactors:
    """Factors that a catalog knows, and under which ids their tags may stand."""

    ids: frozenset[str] = frozenset()
    former: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By id: earlier ids that were renamed to it or merged into it."""
    split: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By id that was split: what it became."""

    @classmethod
    def of(cls, reader: Reader) -> KnownFactors:
        """Those that tagged the catalog, and all of the vocabularies that did."""
        made = reader.dataset("producers").to_table(columns=["scale"], filter=f"kind = '{TAG}'")
        ids = set(made["scale"].to_pylist())
        renamed: dict[str, set[str]] = {}
        split: dict[str, tuple[str, ...]] = {}
        for row in reader.dataset("vocabularies").to_table(columns=["facts"]).to_pylist():
            facts = json.loads(row["facts"])
            ids.update(factor["id"] for factor in facts["factors"])
            for change in facts["migrations"]:
                ids.update(change["old"])
                if change["change"] == "split":
                    split[change["old"][0]] = tuple(change["new"])
                else:
                    renamed.setdefault(change["new"][0], set()).update(change["old"])
        return cls(frozenset(ids), {name: _all_former(name, renamed) for name in renamed}, split)

    def ids_of(self, factor_id: str) -> list[str]:
        """The id and those that became it.

        Raises:
            UnknownNameError: there is no such factor; offers the nearest.
        """
        if factor_id not in self.ids:
            raise UnknownNameError("factor", factor_id, nearest(factor_id, self.ids))
        return sorted({factor_id, *self.former.get(factor_id, ())})

    @cached_property
    def present(self) -> dict[str, str]:
        """By earlier id, what it is called now."""
        heads = {name for name in self.former if not any(name in each for each in self.former.values())}
        return {old: name for name in heads for old in self.former[name]}


def _all_former(name: str, renamed: Mapping[str, Collection[str]]) -> frozenset[str]:
    """What became ``name``, also over several versions."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for old in renamed.get(waiting.pop(), ()):
            if old not in found and old != name:
                found.add(old)
                waiting.append(old)
    return frozenset(found)


def tagged(factors: str | Sequence[str], known: KnownFactors) -> str:
    """SQL on ``factors``: entries for which all of the expressions hold; empty where there is none.

    Raises:
        UnknownNameError: there is no such factor.
        UsageError: an expression that is none; says where.
    """
    expressions = [each for each in names("factors", factors) if each.strip()]
    return " AND ".join(f"({_Parser(each, known).parse()})" for each in expressions)


class _Parser:
    """``or`` of ``and`` of ``not`` of ids and brackets."""

    def __init__(self, text: str, known: KnownFactors) -> None:
        self._text = text
        self._known = known
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        if len(self._tokens) > MOST_TOKENS:
            raise UsageError(f"factors: at most {MOST_TOKENS} words and brackets, got {len(self._tokens)}")

    def parse(self) -> str:
        found = self._either()
        if self._at < len(self._tokens):
            raise self._wrong("'and' or 'or'")
        return found

    def _either(self) -> str:
        parts = [self._both()]
        while self._takes("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _both(self) -> str:
        parts = [self._one()]
        while self._takes("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else f"({' AND '.join(parts)})"

    def _one(self) -> str:
        negations = 0
        while self._takes("not"):
            negations += 1
        found = self._bare()
        return f"(NOT {found})" if negations % 2 else found

    def _bare(self) -> str:
        if self._takes("("):
            found = self._either()
            if not self._takes(")"):
                raise self._wrong("a closing bracket")
            return found
        token = self._now()
        if not token or token in "()" or token.lower() in _WORDS:
            raise self._wrong("a factor, such as place:kitchen")
        self._at += 1
        ids = ", ".join(map(sql_literal, self._known.ids_of(token)))
        return f"array_has_any(factors, [{ids}])"

    def _takes(self, token: str) -> bool:
        is_next = self._now().lower() == token
        self._at += is_next
        return is_next

    def _now(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _wrong(self, expected: str) -> UsageError:
        found = repr(self._now()) if self._now() else "the end"
        before = " ".join(self._tokens[: self._at])
        place = f" behind {before!r}" if before else ""
        return UsageError(f"factors: expected {expected}{place}, got {found}, in {self._text!r}")
