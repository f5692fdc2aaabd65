"""Answering SQL over tables by polars, without reaching anything else."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from evicat.schemas.errors import UsageError

from .arguments import words

MOST_OPERATORS = 1_000
"""polars crashes the process on expressions of several thousand terms."""
_READS_FILES = re.compile(r"\b(?:read|scan)_(?:csv|ipc|json|ndjson|parquet)\b", re.IGNORECASE)
"""Table functions of polars. Looked for in all of the query: what is a quoted text in it, is for a parser."""
_RECURSIVE = re.compile(r"\s*with\s+recursive\b", re.IGNORECASE)
_OPERATOR = re.compile(
    r"[-+*/%|&^<>=]|\b(?:and|or|not|xor|union|intersect|except|join|case|cast|between|like|ilike)\b", re.I
)


def answer(query: str, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """The answer of a ``SELECT`` over ``tables``.

    Raises:
        UsageError: the query cannot be understood, is not a ``SELECT``, or asks for more than the tables.
    """
    _check(words("query", query))
    context = pl.SQLContext(dict(tables))
    try:
        return context.execute(query, eager=True)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise UsageError(f"this SQL cannot be answered: {error}") from None


def _check(query: str) -> None:
    if not query.lstrip().lower().startswith(("select", "with")):
        raise UsageError("only SELECT is answered: a catalog is not changed by SQL")
    if found := _READS_FILES.search(query):
        raise UsageError(f"{found.group()} is not answered: SQL reads the tables of the catalog, no files")
    if _RECURSIVE.match(query):
        raise UsageError("WITH RECURSIVE is not answered: polars knows no recursion")
    count = sum(1 for _ in _OPERATOR.finditer(query))
    if count > MOST_OPERATORS:
        raise UsageError(
            f"this SQL has {count} operators, and at most {MOST_OPERATORS} are answered; "
            "use IN (...) for many values, or `scan` for larger questions"
        )
