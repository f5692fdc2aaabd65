"""What an audit says: proofs, how much each looked at, and the cases that contradict it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

SHOWN = 10
"""Of the cases that contradict a proof, so many are told; the rest are counted."""
_PLACE = ("asset_id", "unit_id", "scale", "start_us", "end_us")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that contradicts a proof. ``what`` says it for people; the rest says where."""

    what: str
    asset_id: str = ""
    unit_id: str = ""
    scale: str = ""
    start_us: int | None = None
    end_us: int | None = None


@dataclass
class Proof:
    """One promise of the tables, and what was found of it."""

    name: str
    promise: str
    """The promise as a sentence."""
    of: str
    """What ``looked`` counts."""
    looked: int = 0
    broken: int = 0
    """How many cases contradict it."""
    cases: list[Case] = field(default_factory=list)
    """The first of them (:data:`SHOWN`)."""
    notes: list[str] = field(default_factory=list)
    """What could not be told, and what is odd and no error."""
    skipped: bool = False
    """Whether it could not be looked at, since the tables cannot be read."""

    @property
    def holds(self) -> bool:
        return not self.broken and not self.skipped

    def fail(self, what: str, **place: Any) -> None:
        """Note one case; ``place`` holds fields of :class:`Case`."""
        self.broken += 1
        if len(self.cases) < SHOWN:
            self.cases.append(Case(what, **{name: place[name] for name in _PLACE if name in place}))

    def fail_rows(self, rows: pl.DataFrame, what: str) -> None:
        """Note a case per row; ``what`` may name columns of it, as in ``"{entry_id} stands twice"``."""
        for row in rows.head(SHOWN - len(self.cases)).to_dicts():
            self.fail(what.format(**row), **row)
            self.broken -= 1
        self.broken += len(rows)
