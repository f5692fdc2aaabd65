"""What callers hand in, checked: a value that does not fit is told by its name, never answered wrongly."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from operator import index
from pathlib import PurePath
from typing import Any

from evicat.schemas.errors import UsageError


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number of at least ``least``; numpy's are taken too.

    Raises:
        UsageError: it is none, or outside.
    """
    wanted = f"from {least} to {most}" if most is not None else f"at least {least}"
    try:
        count = index(value)
    except TypeError:
        raise UsageError(f"{name} must be a whole number {wanted}, got {value!r}") from None
    if count < least or (most is not None and count > most):
        raise UsageError(f"{name} must be {wanted}, got {count}")
    return count


def seconds(name: str, value: Any) -> float:
    """A length of time that is not negative.

    Raises:
        UsageError: it is none.
    """
    length = number(value)
    if not length >= 0:
        raise UsageError(f"{name} must be at least 0 seconds, got {value!r}")
    return length


def number(value: Any) -> float:
    """As a float; NaN for what is no number, or too large for one."""
    try:
        return math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def words(name: str, value: Any) -> str:
    """A text.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a text, got {value!r}")
    return str(value)


def names(name: str, value: Any) -> list[str]:
    """One or several texts; a relative path counts as the text of it.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(value, str | PurePath):
        value = [value]
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a text, or several, got {value!r}")
    return [words(name, each.as_posix() if isinstance(each, PurePath) else each) for each in value]


def entry_ids(value: Collection[str]) -> frozenset[str]:
    """Ids of entries; one alone would be taken for its letters.

    Raises:
        UsageError: it is no collection of texts.
    """
    if isinstance(value, str):
        raise UsageError(f"entry ids must be a list of them: write [{str(value)!r}]")
    return frozenset(names("entry ids", value))
