"""Tags by likeness: an entry carries a factor if its vector is near enough to what the factor is like.

A factor is like its descriptor and its examples; the likeness is the highest cosine of any part of the entry
with any of these. Where an exclusion is as near or nearer, the entry does not carry it. Less than ``MARGIN``
below the threshold nothing is said; nor where an entry could not be embedded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from evicat.catalog.embedders.base import Embedder, Vectors
from evicat.catalog.tagging.base import FOUND_SCHEMA, Found, Tagger
from evicat.catalog.tagging.vocabulary import Factor
from evicat.schemas.identity import ModelRef
from evicat.storage.factors import ABSTAINED, YES

THRESHOLD = 0.45
"""Least likeness where a factor does not say its own."""
MARGIN = 0.02
_ROWS = 8192
"""Parts whose likeness is held in memory at once."""

Index = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EntryVectors:
    """Vectors of the parts of entries; those of one entry stand together."""

    matrix: Vectors
    """``(parts, dimension)``; NaN where a part could not be embedded."""
    first: Index
    """``(entries,)``: where the parts of each begin. Every entry has one at least."""


VectorSource = Callable[[pl.DataFrame], EntryVectors]


class EmbeddingTagger(Tagger):
    """Compares stored vectors; only descriptors, examples and exclusions are embedded.

    Args:
        embedder: The one that made the vectors.
        vectors: Vectors of entries, in their order.
        thresholds: By factor id, instead of what the factor says.
    """

    component: ClassVar[str] = "embedding"
    version: ClassVar[int] = 1

    def __init__(
        self,
        embedder: Embedder[Any],
        vectors: VectorSource,
        *,
        embedder_id: str = "",
        thresholds: dict[str, float] | None = None,
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._embedder_id = embedder_id
        self._thresholds = thresholds or {}
        self._prompts: dict[str, Vectors] = {}

    @property
    def model(self) -> ModelRef | None:
        return self._embedder.model

    @property
    def vectors_of(self) -> str:
        return self._embedder_id

    def facts(self, factor: Factor) -> dict[str, Any]:
        """What it is compared with, from which likeness on, and how that is embedded."""
        return {
            **factor.model_dump(mode="json", include={"descriptor", "examples", "exclusions"}),
            "threshold": self.threshold(factor),
            "margin": MARGIN,
            "embedder": {
                "component": self._embedder.component,
                "version": self._embedder.version,
                "options": self._embedder.options.model_dump(mode="json"),
            },
        }

    def threshold(self, factor: Factor) -> float:
        own = THRESHOLD if factor.threshold is None else factor.threshold
        return self._thresholds.get(factor.id, own)

    def tag(self, entries: pl.DataFrame, factors: Sequence[Factor]) -> Found:
        """As :meth:`Tagger.tag`."""
        if entries.is_empty() or not factors:
            return Found(FOUND_SCHEMA.to_frame())
        limits = np.array([[self.threshold(factor)] for factor in factors], np.float32)
        own = np.stack([entries["kind"].is_in(list(factor.kinds)).to_numpy() for factor in factors])
        pairs: list[tuple[Any, ...]] = []
        for at, scores, prompts in self._portions(entries, factors):
            part = own[:, at : at + scores.shape[1]]
            columns, rows = np.nonzero(part & ~(scores < limits - MARGIN))  # NaN is not below
            found = scores[columns, rows]
            pairs.append((rows + at, columns, found, prompts.nearest(columns, rows, found)))
        rows, columns, found, best = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return Found(self._frame(entries, factors, (rows, columns), found >= limits[columns, 0], found, best))

    def likeness(self, entries: pl.DataFrame, factors: Sequence[Factor]) -> Scores:
        """``(entries, factors)``: the score of each pair, NaN where an entry could not be embedded.

        Where an exclusion is as near, the score is -1.
        """
        if entries.is_empty():
            return np.empty((0, len(factors)), np.float32)
        return np.concatenate([scores.T for _, scores, _ in self._portions(entries, factors)])

    def _portions(
        self, entries: pl.DataFrame, factors: Sequence[Factor]
    ) -> Iterator[tuple[int, Scores, _Cosines]]:
        """Where each portion of the entries begins, its scores ``(factors, entries)``, and its cosines."""
        found = self._vectors(entries)
        prompts = [(self._prompts_of(factor), 1 + len(factor.examples)) for factor in factors]
        positive = _Prompts([matrix[:count] for matrix, count in prompts])
        negative = _Prompts([matrix[count:] for matrix, count in prompts])
        ends = np.append(found.first[1:], len(found.matrix))
        begin = 0
        while begin < len(entries):
            end = max(begin + 1, int(np.searchsorted(ends, found.first[begin] + _ROWS, side="right")))
            own = found.matrix[found.first[begin] : ends[end - 1]]
            starts = found.first[begin:end] - found.first[begin]
            cosines = positive.compare(own, starts)
            scores = cosines.highest()
            if negative.matrix.size:
                with np.errstate(invalid="ignore"):
                    scores[negative.compare(own, starts).highest() >= scores] = -1.0
            yield begin, scores, cosines
            begin = end

    def _prompts_of(self, factor: Factor) -> Vectors:
        """``(1 + examples + exclusions, dimension)``: descriptor, examples, exclusions."""
        key = "\x1f".join([factor.descriptor, *factor.examples, "", *factor.exclusions])
        if key not in self._prompts:
            texts = [factor.descriptor, *factor.examples, *factor.exclusions]
            self._prompts[key] = self._embedder.embed(texts)
        return self._prompts[key]

    def _frame(
        self,
        entries: pl.DataFrame,
        factors: Sequence[Factor],
        at: tuple[Index, Index],
        certain: npt.NDArray[np.bool_],
        scores: Scores,
        best: Index,
    ) -> pl.DataFrame:
        rows, columns = at
        prompts = [[factor.descriptor, *factor.examples] for factor in factors]
        offsets = np.cumsum([0, *map(len, prompts)])
        values = pl.Series([prompt for own in prompts for prompt in own], dtype=pl.String)
        lengths = entries["text"].str.len_chars().cast(pl.Int32)
        frame = pl.DataFrame(
            {
                "row": rows,
                "factor": columns,
                "verdict": pl.Series([ABSTAINED, YES]).gather(pl.Series(certain.astype(np.int64))),
                "value": values.gather(pl.Series(offsets[columns] + best)),
                "confidence": np.clip(scores, 0, 1).astype(np.float64),
                "field": pl.repeat("text", len(rows), dtype=pl.String, eager=True),
                "text_begin": pl.zeros(len(rows), pl.Int32, eager=True),
                "text_end": lengths.gather(pl.Series(rows)),
            }
        )
        return frame.with_columns(pl.col("confidence").fill_nan(None)).match_to_schema(FOUND_SCHEMA)


class _Prompts:
    """The vectors that factors are compared with, those of one factor together."""

    def __init__(self, matrices: Sequence[Vectors]) -> None:
        self.counts = np.array([len(matrix) for matrix in matrices])
        self.matrix = np.concatenate(matrices)
        self.has_any = np.flatnonzero(self.counts)
        self.first = np.cumsum(self.counts) - self.counts

    def compare(self, parts: Vectors, starts: Index) -> _Cosines:
        """With entries whose parts begin at ``starts``: of several parts the highest cosine counts."""
        cosines = self.matrix @ parts.T
        if len(starts) < len(parts):
            cosines = np.fmax.reduceat(cosines, starts, axis=1)
        return _Cosines(self, cosines)


@dataclass(frozen=True)
class _Cosines:
    """``(prompts, entries)``."""

    prompts: _Prompts
    matrix: Scores

    def highest(self) -> Scores:
        """``(factors, entries)``: of each factor the highest; -inf where it has no prompts."""
        prompts = self.prompts
        if len(prompts.has_any) == len(prompts.counts):
            return np.maximum.reduceat(self.matrix, prompts.first, axis=0)
        found = np.full((len(prompts.counts), self.matrix.shape[1]), -np.inf, np.float32)
        found[prompts.has_any] = np.maximum.reduceat(self.matrix, prompts.first[prompts.has_any], axis=0)
        return found

    def nearest(self, factors: Index, entries: Index, scores: Scores) -> Index:
        """Of each pair: which of the factor's prompts has this score."""
        best = np.zeros(len(factors), np.int64)
        first, counts = self.prompts.first[factors], self.prompts.counts[factors]
        for number in range(int(counts.max(initial=1)) - 1, -1, -1):
            at = np.flatnonzero(counts > number)
            same = self.matrix[first[at] + number, entries[at]] == scores[at]
            best[at[same]] = number
        return best
