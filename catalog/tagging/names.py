"""Names that were meant: the nearest of those that are known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 8
"""Names that an error lists at most where none is near."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that look like ``name``, nearest first; the first few of all where none does."""
    all_of = sorted(known)
    tails = {each.partition(":")[2] or each: each for each in all_of}
    found = get_close_matches(name, all_of, n=5, cutoff=0.5)
    found += [tails[each] for each in get_close_matches(name.partition(":")[2] or name, tails, n=3)]
    return list(dict.fromkeys(found)) or all_of[:SHOWN]
