"""How alike texts are, by vectors: of a long text the mean of its parts, of a window that of its entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evicat.catalog.embedders.base import Embedder, Vectors

Numbers = npt.NDArray[np.float64]


def stored_cosines(ids_a: pl.Series, ids_b: pl.Series, a: pl.DataFrame, b: pl.DataFrame) -> Numbers:
    """Cosine of two windows a row, from stored vectors (``entry_id, vector``) of the entries of each.

    Args:
        ids_a: Lists of ``entry_id``.

    Returns:
        ``(rows,)``; NaN where a side has no vector.
    """
    return cosines(_of_windows(ids_a, a), _of_windows(ids_b, b))


def embedded_cosines(texts_a: pl.Series, texts_b: pl.Series, embedder: Embedder[Any]) -> Numbers:
    """Cosine of two texts a row, embedded now; NaN where one cannot be."""
    texts = pl.concat([texts_a, texts_b]).unique(maintain_order=True)
    parts = [(text, part) for text in texts.to_list() for part in embedder.parts(text)]
    if not parts:
        return np.full(len(texts_a), np.nan)
    matrix = embedder.embed([part for _, part in parts])
    frame = pl.DataFrame({"entry_id": [text for text, _ in parts], "vector": matrix})
    frame = frame.filter(~pl.Series(np.isnan(matrix).any(axis=1)))
    return cosines(
        *(_of_windows(pl.Series([[text] for text in side.to_list()], dtype=pl.List(pl.String)), frame)
          for side in (texts_a, texts_b))
    )  # fmt: skip


def cosines(a: Numbers, b: Numbers) -> Numbers:
    """Row by row, of vectors of length 1."""
    if not a.size or not b.size:
        return np.full(len(a), np.nan)
    found: Numbers = np.clip(np.einsum("ij,ij->i", a, b), -1.0, 1.0)
    return found


def _of_windows(ids: pl.Series, vectors: pl.DataFrame) -> Numbers:
    """One vector of length 1 a row; NaN where none of its entries has one."""
    rows = pl.DataFrame({"window": np.arange(len(ids)), "entry_id": ids}).explode(
        "entry_id", empty_as_null=False
    )
    if not len(vectors):
        return np.empty((len(ids), 0))
    entries = vectors["entry_id"].unique(maintain_order=True)
    place = pl.DataFrame({"entry_id": entries, "place": np.arange(len(entries))})
    numbers: Vectors = vectors["vector"].to_numpy()
    own = vectors.select("entry_id").join(place, on="entry_id", maintain_order="left")
    of_entries = _means(numbers.astype(np.float64), own["place"].to_numpy(), len(entries))
    rows = rows.join(place, on="entry_id")
    return _means(of_entries[rows["place"].to_numpy()], rows["window"].to_numpy(), len(ids))


def _means(numbers: Numbers, place: npt.NDArray[np.int64], count: int) -> Numbers:
    """Mean direction of the rows of each place; NaN where it has none."""
    sums = np.zeros((count, numbers.shape[1]))
    np.add.at(sums, place, numbers)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Numbers = np.divide(sums, length, out=np.full_like(sums, np.nan), where=length > 0)
    return means
