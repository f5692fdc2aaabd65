"""Entries in the order of a score, read no further than the best of them need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
EQUALS = 512
"""Entries of one score are put in order as far as they are among so many, or as many as were asked for."""
_FIRST, _FACTOR = 32, 4


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry in a ranking; a higher score is better."""

    entry_id: str
    asset_id: str
    length_s: float
    score: float
    row_id: int | None = None
    """Its row in the table of entries, where that was ranked."""

    @property
    def place(self) -> tuple[float, float, str]:
        """What rankings are sorted by: of equal scores the entry that cites less time, then the lower id."""
        return -self.score, self.length_s, self.entry_id


@dataclass(frozen=True, slots=True)
class Rows:
    """The ``count`` best rows of a table, or all that there are."""

    fitting: list[Ranked]
    """Those that a filter keeps which is applied behind the ranking."""
    count: int
    worst: float
    """The lowest score of all ``count`` rows."""


def read_best(read: Callable[[int], Rows], depth: int) -> tuple[list[Ranked], bool]:
    """The ``depth`` best entries of a ranking, and whether there may be more.

    Lance cuts a ranking anywhere among rows of one score, and so differently for every depth. So it is read
    on until the last entry is better than the first that was not read, but for that no further than
    :data:`EQUALS`. How far is one of a few steps: two depths that end in the same step see the same rows.

    Args:
        read: Reads so many rows.
    """
    asked = _FIRST
    while asked <= depth:
        asked *= _FACTOR
    while True:
        rows = read(asked)
        best = _of_each_entry(rows.fitting)
        if rows.count < asked:
            return best[:depth], len(best) > depth
        if len(best) < depth:
            asked *= _FACTOR
        elif best[depth - 1].score > rows.worst or asked >= EQUALS:
            return best[:depth], True
        else:
            asked = EQUALS


def _of_each_entry(rows: Iterable[Ranked]) -> list[Ranked]:
    """The best row of each entry, best first: long texts have several vectors."""
    best: dict[str, Ranked] = {}
    for row in sorted(rows, key=lambda each: each.place):
        best.setdefault(row.entry_id, row)
    return list(best.values())


def merged(rankings: Iterable[list[Ranked]]) -> list[Ranked]:
    """Rankings by one measure as one; of an entry that stands in several, the best score counts."""
    return _of_each_entry(row for ranking in rankings for row in ranking)


def fuse(*rankings: list[Ranked]) -> list[Ranked]:
    """Reciprocal rank fusion: the sum over rankings of ``1 / (RRF_K + rank)``, ranks from 1."""
    scores: dict[str, float] = {}
    found: dict[str, Ranked] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, start=1):
            scores[row.entry_id] = scores.get(row.entry_id, 0.0) + 1.0 / (RRF_K + rank)
            found[row.entry_id] = row
    fused = (
        Ranked(each.entry_id, each.asset_id, each.length_s, scores[each.entry_id]) for each in found.values()
    )
    return sorted(fused, key=lambda each: each.place)
