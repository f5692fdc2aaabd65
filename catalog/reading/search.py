"""Ranking entries for a query: by words, by meaning, or by both.

Rules for words: what stands in double quotes is a phrase that has to be there word for word; of the other
words as many as possible. Case, accents and punctuation do not count; ``AND``, ``*`` and brackets are no
syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evicat.catalog.embedders.base import Embedder
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.errors import CatalogError, UnknownNameError, UsageError
from evicat.storage.reader import Reader

from .filters import Where, both, without_flags

Mode = Literal["hybrid", "text", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "vector")
MOST = 10_000
"""Entries that one search gives at most."""
RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
CANDIDATES = 5
"""Rankings are read this many times deeper than asked: to be fused, and as long texts have several parts."""

_PHRASE = re.compile(r'"([^"]*)"')
_TOLD = ("entry_id", "start_s", "end_s")
_MOST_EQUALS = 100_000
"""Rankings are read no deeper than this to put entries with equal scores into one order."""
Scores = dict[str, float]
QueryVector = Sequence[float] | npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Query:
    """What is looked for: words, a vector, or both. Checked when it is made.

    Raises:
        UnknownNameError: there is no such mode.
        UsageError: the mode needs what is not given, or the vector is none.
    """

    text: str
    mode: Mode
    vector: QueryVector | None = None
    """In place of the embedded ``text``."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UnknownNameError("mode", self.mode, list(MODES))
        if self.vector is not None:
            _check_numbers(self.vector)
            if self.mode == "text":
                raise UsageError(
                    "mode text takes no vector; use mode vector, or hybrid with a text beside it"
                )
            if self.mode == "hybrid" and not self.text.strip():
                raise UsageError("mode hybrid needs a text beside the vector; use mode vector")

    @property
    def is_blank(self) -> bool:
        return self.vector is None and not self.text.strip()


def _check_numbers(vector: QueryVector) -> None:
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold is not finite
            numbers = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the query vector must be numbers: {error}") from None
    if numbers.ndim != 1:
        raise UsageError(f"the query vector must have one dimension, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise UsageError("the query vector holds a number that is not finite (NaN or infinity)")
    if not numbers.any():
        raise UsageError("the query vector is all zeros: it has no direction to compare")


def words_query(text: str) -> Any:
    """The full-text query that ``text`` stands for; None where nothing is left of it.

    A quotation mark without its partner is no syntax.
    """
    from lancedb.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

    phrases = [phrase for phrase in _PHRASE.findall(text) if _is_said(phrase)]
    rest = _PHRASE.sub(" ", text)
    if not phrases:
        return MatchQuery(text, "text") if text.strip() else None
    parts: list[tuple[Any, Any]] = [(Occur.MUST, PhraseQuery(phrase, "text")) for phrase in phrases]
    if _is_said(rest):
        parts.append((Occur.SHOULD, MatchQuery(rest, "text")))
    return parts[0][1] if len(parts) == 1 else BooleanQuery(parts)


def every_word(text: str) -> Any:
    """A full-text query for entries with all phrases and all words of ``text``; None where it has none."""
    from lancedb.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery

    parts: list[Any] = [PhraseQuery(phrase, "text") for phrase in _PHRASE.findall(text) if _is_said(phrase)]
    rest = _PHRASE.sub(" ", text)
    if _is_said(rest):
        parts.append(MatchQuery(rest, "text", operator=FullTextOperator.AND))
    if len(parts) < 2:
        return parts[0] if parts else None
    return BooleanQuery([(Occur.MUST, part) for part in parts])


def _is_said(text: str) -> bool:
    return any(character.isalnum() for character in text)


class Searcher:
    """Ranks the entries of a catalog at one head. ``embedders``: by the name of their vector table."""

    def __init__(self, reader: Reader, embedders: Callable[[], Mapping[str, Embedder[Any]]]) -> None:
        self._reader = reader
        self._embedders = embedders

    def rank(self, query: Query, where: Where, depth: int) -> tuple[Scores, bool]:
        """Scores by entry, and whether deeper rankings could bring more of them.

        Where a filter speaks of what tables of vectors lack, some of those ranked by vector may not fit it:
        whoever reads the entries filters them again.
        """
        text, more_text = self._by_text(query.text, where, depth) if query.mode != "vector" else ({}, False)
        vector, more_vector = self._by_vector(query, where, depth) if query.mode != "text" else ({}, False)
        scores = fuse(text, vector) if query.mode == "hybrid" else text or vector
        return scores, more_text or more_vector

    def with_every_word(self, text: str, where: Where) -> list[str]:
        """Ids of all entries with every word and phrase of ``text``, in no order."""
        query = every_word(text)
        found: Scores = {}
        depth, has_more = MOST, query is not None
        while has_more:
            found, has_more = self._found(query, where, depth)
            depth *= 4
        return list(found)

    def _by_text(self, text: str, where: Where, depth: int) -> tuple[Scores, bool]:
        query = words_query(text)
        return self._found(query, where, depth) if query else ({}, False)

    def _found(self, query: Any, where: Where, depth: int) -> tuple[Scores, bool]:
        with self._reading("entries") as table:
            search = table.search(query, query_type="fts").where(
                both(where.all, without_flags(SPEECH_WITHHELD)), prefilter=True
            )
            best, has_more = _best(search.select([*_TOLD, "_score"]), "_score", depth, higher_is_better=True)
        return dict(best), has_more

    def _by_vector(self, query: Query, where: Where, depth: int) -> tuple[Scores, bool]:
        scores: Scores = {}
        has_more = False
        embedders = self._embedders()
        if query.mode == "vector" and not embedders:
            raise UsageError("this catalog has no vectors; search with mode text, or index with an embedder")
        for name, embedder in embedders.items():
            vector = self._vector(query, name, embedder)
            with self._reading(name) as table:
                search = table.search(vector, vector_column_name="vector").distance_type("cosine")
                if where.shared:
                    search = search.where(where.shared, prefilter=True)
                search = search.select([*_TOLD, "_distance"])
                best, is_cut = _best(search, "_distance", depth, higher_is_better=False)
            has_more |= is_cut
            for entry_id, distance in best:
                scores[entry_id] = max(1.0 - distance, scores.get(entry_id, -1.0))
        return scores, has_more

    def _vector(self, query: Query, table: str, embedder: Embedder[Any]) -> QueryVector:
        """The query as a vector of the table.

        Raises:
            UsageError: it was given, and has another length.
            CatalogError: it was embedded, and has another length: a server may have changed its model.
        """
        length = self._reader.dataset(table).schema.field("vector").type.list_size
        if query.vector is not None:
            if len(query.vector) != length:
                raise UsageError(
                    f"the query vector has {len(query.vector)} numbers, but those of "
                    f"{embedder.model.name!r} in this catalog have {length}; embed the query with that model"
                )
            return np.asarray(query.vector, dtype=np.float32)
        vector = embedder.embed_query(query.text)
        if len(vector) != length:
            raise CatalogError(
                f"the vectors of {embedder.model.name!r} in this catalog have {length} numbers, but the "
                f"query got {len(vector)} numbers: another model answers under that name; search with "
                "--mode text, or name the right model in the profile"
            )
        return vector

    @contextmanager
    def _reading(self, name: str) -> Iterator[Any]:
        """A table to be searched; what is damaged is told as such."""
        table = self._reader.table(name)
        with self._reader.reading(name):
            yield table


def _best(
    search: Any, by: str, depth: int, *, higher_is_better: bool
) -> tuple[list[tuple[str, float]], bool]:
    """The ``depth`` best of a search, and whether there are more; of equals the shorter, then the lower id.

    Lance cuts a ranking anywhere among equals: it is read on until the first that is left out is worse.
    """
    asked = depth
    while True:
        rows = search.limit(asked + 1).to_arrow().select([*_TOLD, by]).to_pylist()
        is_settled = len(rows) <= asked or rows[depth - 1][by] != rows[-1][by]
        if is_settled or asked >= max(depth, _MOST_EQUALS):
            break
        asked *= 4
    sign = -1 if higher_is_better else 1
    rows.sort(key=lambda row: (sign * row[by], row["end_s"] - row["start_s"], row["entry_id"]))
    return [(row["entry_id"], float(row[by])) for row in rows[:depth]], len(rows) > depth


def fuse(*rankings: Scores) -> Scores:
    """Reciprocal rank fusion: the sum over rankings of ``1 / (RRF_K + rank)``, ranks from 1."""
    fused: Scores = {}
    for ranking in rankings:
        ordered = sorted(ranking.items(), key=lambda item: -item[1])  # of equals, in the order they come in
        for rank, (entry_id, _) in enumerate(ordered, start=1):
            fused[entry_id] = fused.get(entry_id, 0.0) + 1.0 / (RRF_K + rank)
    return fused
