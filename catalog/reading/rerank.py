"""Ordering what was found once more, by a model that reads the query and each text together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from evicat.catalog.devices import device_of
from evicat.catalog.weights import resolve
from evicat.schemas.errors import CatalogError, UsageError
from evicat.schemas.recipe import Profile

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

RERANKED = 50
"""Entries that are scored again at least."""
_BATCH = 32


class Reranker(Protocol):
    """Says how well texts answer a query; any object with this method will do."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text, finite; the higher, the better."""


class CrossEncoderReranker:
    """A cross-encoder of the sentence-transformers library, loaded when it is first asked.

    Args:
        model: A folder, ``packaged:NAME``, or a name on the model hub, as recipes name models.

    Raises:
        UsageError: there are no such weights.
    """

    def __init__(self, model: str, *, revision: str = "", profile: Profile | None = None) -> None:
        self._profile = profile or Profile()
        self._weights = resolve(model, revision=revision, profile=self._profile)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """What the model says of each text: a probability or a logit, as its own settings have it.

        Raises:
            UsageError: the model gives several numbers for a text: it tells classes apart, and ranks nothing.
        """
        pairs = [(query, text) for text in texts]
        scores = self._engine.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
        if scores.ndim != 1:
            raise UsageError(
                f"{self._weights.ref.name!r} gives {scores.shape[1]} numbers for a text: name a model that "
                "gives one"
            )
        return [float(score) for score in scores]

    @cached_property
    def _engine(self) -> CrossEncoder:
        from sentence_transformers import CrossEncoder

        device = device_of(self._profile)
        try:
            return CrossEncoder(self._weights.location, device=device, local_files_only=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"cannot load the cross-encoder {self._weights.ref.name!r} from {self._weights.location} on "
                f"{device}: {error}"
            ) from error


def reranked(hits: pl.DataFrame, query: str, reranker: Reranker) -> pl.DataFrame:
    """Hits by the score of ``reranker``; of equals the shorter, then the lower id.

    Raises:
        CatalogError: it does not give one finite number for each text.
    """
    if hits.is_empty():
        return hits
    scores = _checked(reranker.score(query, hits["text"].to_list()), len(hits), type(reranker).__name__)
    best_first = pl.col("score").neg(), pl.col("end_s") - pl.col("start_s"), pl.col("entry_id")
    return hits.with_columns(pl.Series("score", scores, pl.Float64)).sort(*best_first)


def _checked(scores: Any, count: int, name: str) -> list[float]:
    try:
        numbers = [float(score) for score in scores]
    except (TypeError, ValueError) as error:
        raise CatalogError(f"the re-ranker {name} gave no numbers: {error}") from None
    if len(numbers) != count:
        raise CatalogError(f"the re-ranker {name} gave {len(numbers)} scores for {count} texts")
    bad = next((number for number in numbers if not math.isfinite(number)), None)
    if bad is not None:
        raise CatalogError(f"the re-ranker {name} gave the score {bad}: scores must be finite")
    return numbers
