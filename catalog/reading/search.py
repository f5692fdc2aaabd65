"""Ranking entries for a query: by words, by meaning, or by both.

Rules for words: what stands in double quotes is a phrase that has to be there word for word; of the other
words as many as possible. Case, accents and punctuation do not count; ``AND``, ``*`` and brackets are no
syntax. A straight apostrophe finds a curly one, and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evicat.catalog.embedders.base import Embedder
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.errors import CatalogError, UnknownNameError, UsageError
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_in

from .filters import Where, both
from .ranking import Ranked, Rows, fuse, merged, read_best

Mode = Literal["hybrid", "text", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "vector")
MOST = 10_000
"""Entries that one search gives at most."""
CANDIDATES = 5
"""Rankings that are fused, or of which not all may fit, are read so many times deeper than asked."""
FUSED = 100
"""Entries of each ranking that are fused at least: so the first of 10 and of 20 are the same."""
PROBES = 20
"""Partitions of the vectors that are nearest to the query: among them the best are looked for."""
EXACT_ROWS = 5_000
"""Where a filter keeps so many vectors at most, all of them are compared: exactly, and still quickly."""

_PHRASE = re.compile(r'"([^"]*)"')
_PLACE = ["entry_id", "asset_id", "start_s", "end_s"]
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
    return _in_each_spelling(text, _words_query)


def _words_query(text: str) -> Any:
    from lance.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

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
    return _in_each_spelling(text, _every_word)


def _every_word(text: str) -> Any:
    from lance.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery

    parts: list[Any] = [PhraseQuery(phrase, "text") for phrase in _PHRASE.findall(text) if _is_said(phrase)]
    rest = _PHRASE.sub(" ", text)
    if _is_said(rest):
        parts.append(MatchQuery(rest, "text", operator=FullTextOperator.AND))
    if len(parts) < 2:
        return parts[0] if parts else None
    return BooleanQuery([(Occur.MUST, part) for part in parts])


def _in_each_spelling(text: str, query_for: Callable[[str], Any]) -> Any:
    """What either query finds: with straight apostrophes, and with curly ones, which are other letters."""
    from lance.query import BooleanQuery, Occur

    spellings = sorted({text.replace("\u2019", "'"), text.replace("'", "\u2019")})
    queries = [query for query in map(query_for, spellings) if query]
    if len(queries) < 2:
        return queries[0] if queries else None
    return BooleanQuery([(Occur.SHOULD, query) for query in queries])


def _is_said(text: str) -> bool:
    return any(character.isalnum() for character in text)


def first_depth(mode: Mode, limit: int, *, may_lose: bool) -> int:
    """How many entries of each ranking are read first; ``may_lose``: not all of them may be answers."""
    if mode == "hybrid":
        return max(FUSED, limit * CANDIDATES)
    return limit * CANDIDATES if may_lose else limit


class Searcher:
    """Ranks the entries of a catalog at one head. ``embedders``: by the name of their vector table."""

    def __init__(self, reader: Reader, embedders: Callable[[], Mapping[str, Embedder[Any]]]) -> None:
        self._reader = reader
        self._embedders = embedders

    def rank(self, query: Query, where: Where, depth: int) -> tuple[list[Ranked], bool]:
        """The ``depth`` best entries of each ranking, fused, and whether deeper ones could bring more.

        Where a filter speaks of what tables of vectors lack, some of those ranked by vector may not fit it:
        whoever reads the entries filters them again.
        """
        if query.mode == "text":
            return self._by_text(query.text, where, depth)
        by_vector, more_vectors = self._by_vector(query, self._narrowed(where), depth)
        if query.mode == "vector":
            return by_vector, more_vectors
        by_text, more_texts = self._by_text(query.text, where, depth)
        return fuse(by_text, by_vector), more_texts or more_vectors

    def with_every_word(self, text: str, where: Where, columns: Sequence[str]) -> pa.Table:
        """All entries with every word and phrase of ``text``, in no order; withheld speech is among them."""
        dataset = self._reader.dataset("entries")
        query = every_word(text)
        if query is None:
            nothing: pa.Table = dataset.schema.empty_table()
            return nothing.select(list(columns))
        found: pa.Table = dataset.to_table(
            columns=[*columns, "_score"],
            full_text_query=query,
            filter=where.all or None,
            prefilter=True,
            limit=max(1, dataset.count_rows()),
        )
        return found.select(list(columns))

    def _by_text(self, text: str, where: Where, depth: int) -> tuple[list[Ranked], bool]:
        query = words_query(text)
        if query is None:
            return [], False

        def read(count: int) -> Rows:
            found = self._reader.dataset("entries").to_table(
                columns=[*_PLACE, "flags", "_score"],
                full_text_query=query,
                filter=where.before_ranking or None,
                prefilter=True,
                limit=count,
                with_row_id=True,
            )
            return _rows(found, found["_score"].to_pylist(), where)

        return read_best(read, depth)

    def _by_vector(self, query: Query, where: Where, depth: int) -> tuple[list[Ranked], bool]:
        embedders = self._embedders()
        if query.mode == "vector" and not embedders:
            raise UsageError("this catalog has no vectors; search with mode text, or index with an embedder")
        found = [
            self._nearest(name, self._vector(query, name, embedder), where, depth)
            for name, embedder in embedders.items()
        ]
        return merged(ranking for ranking, _ in found), any(has_more for _, has_more in found)

    def _nearest(self, table: str, vector: Any, where: Where, depth: int) -> tuple[list[Ranked], bool]:
        dataset = self._reader.dataset(table)

        def nearest(count: int, how: Mapping[str, Any]) -> pa.Table:
            found: pa.Table = dataset.to_table(
                columns=[*_PLACE, "_distance"],
                nearest={"column": "vector", "q": vector, "metric": "cosine", "k": count, **how},
                filter=where.ranked or None,
                prefilter=True,
            )
            return found

        def read(count: int) -> Rows:
            found = nearest(count, _probing(where))
            if found.num_rows < count and not where.is_narrow:  # there may be more, further away
                found = nearest(count, {"minimum_nprobes": PROBES})
            return _rows(found, pc.subtract(1.0, found["_distance"]).to_pylist(), where)

        return read_best(read, depth)

    def _narrowed(self, where: Where) -> Where:
        """What of a filter only entries can answer, by the ids of those that fit, if they are few."""
        if not where.entries:
            return where
        fitting = self._reader.dataset("entries").to_table(
            columns=["entry_id", "asset_id"], filter=where.all, limit=EXACT_ROWS + 1
        )
        if fitting.num_rows > EXACT_ROWS:
            return where
        assets, ids = (sorted(set(fitting[name].to_pylist())) for name in ("asset_id", "entry_id"))
        ranked = both(sql_in("asset_id", assets), sql_in("entry_id", ids))
        return replace(where, ranked=ranked, most=fitting.num_rows)

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


def _probing(where: Where) -> dict[str, Any]:
    """How the index of vectors is asked.

    In all that a view shows, the nearest partitions are looked through, and no others. They may hold little
    that fits a narrower filter: then as many as it takes. Where few can fit, they are compared without it.
    """
    if where.most is not None and where.most <= EXACT_ROWS:
        return {"use_index": False}
    return {"minimum_nprobes": PROBES, **({} if where.is_narrow else {"maximum_nprobes": PROBES})}


def _rows(found: pa.Table, scores: list[Any], where: Where) -> Rows:
    """Rows of a ranking, less what is left out only now: see :class:`~.filters.Where`."""
    columns = [found[name].to_pylist() for name in _PLACE]
    of_entries = "flags" in found.column_names
    flags = found["flags"].to_pylist() if of_entries else [()] * len(scores)
    row_ids = found["_rowid"].to_pylist() if of_entries else [None] * len(scores)
    fitting = [
        Ranked(entry_id, asset_id, end - start, score, row_id)
        for entry_id, asset_id, start, end, flagged, score, row_id in zip(
            *columns, flags, scores, row_ids, strict=True
        )
        if entry_id not in where.without and SPEECH_WITHHELD.isdisjoint(flagged)
    ]
    return Rows(fitting, len(scores), min(scores, default=0.0))
