"""Values inside filters. Nothing else may put a raw value into SQL text."""

from __future__ import annotations

import math
from collections.abc import Iterable

Value = str | int | float | bool


def sql_literal(value: Value) -> str:
    """``value`` as a literal of the SQL that Lance filters speak: quoted, with quotes doubled.

    Raises:
        ValueError: a number that is not finite; no literal stands for it.
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if not math.isfinite(value):
        raise ValueError(f"no SQL literal stands for {value!r}")
    return repr(value)


def sql_equals(column: str, value: Value) -> str:
    return f"{column} = {sql_literal(value)}"


def sql_in(column: str, values: Iterable[Value]) -> str:
    """``column IN (...)``; true nowhere where ``values`` is empty."""
    literals = ", ".join(sql_literal(value) for value in values)
    return f"{column} IN ({literals})" if literals else "FALSE"
