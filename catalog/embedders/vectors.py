"""What all embedders do with texts and rows: check a query, and give every vector length 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evicat.catalog.embedders.base import Vectors
from evicat.schemas.errors import UsageError

_SMALLEST_NORM = 1e-6
"""A vector shorter than this has no direction."""


def unit_rows(rows: npt.ArrayLike) -> Vectors:
    """``(n, dimension)`` float32, each row of length 1; NaN where it is not finite or has no direction."""
    vectors = np.array(rows, dtype=np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    has_direction = np.isfinite(norms) & (norms >= _SMALLEST_NORM)
    vectors[~has_direction[:, 0]] = np.nan
    np.divide(vectors, norms, out=vectors, where=has_direction)
    return vectors


def check_query(query: str) -> None:
    """Refuse a query that is no text.

    Raises:
        UsageError: half a surrogate pair is in it.
    """
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the query is not valid text: {error}") from None


def query_vector(rows: Vectors, query: str, model: str) -> npt.NDArray[np.float32]:
    """The mean direction of the parts of a query, ``(dimension,)`` float32 of length 1.

    Raises:
        UsageError: there are no parts, or their mean has no direction.
    """
    if not len(rows):
        raise UsageError("the query is blank; write some words to search for")
    mean = rows.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    if not norm >= _SMALLEST_NORM:
        raise UsageError(f"the model {model!r} gives no usable vector for the query {query!r}")
    return np.asarray(mean / norm, dtype=np.float32)
