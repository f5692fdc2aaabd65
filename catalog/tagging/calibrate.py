"""How right a tagger is, by labels, and from which likeness on the embedding tagger should say yes.

Precision and recall come with Wilson's interval (Wilson, 1927) for 95 %: with few labels it is wide, and that
is the point. A threshold is measured on labels that it was not chosen by: each label in turn is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicat.catalog.tagging.base import Tagger
from evicat.catalog.tagging.embedding import EmbeddingTagger
from evicat.catalog.tagging.labels import Labelled
from evicat.schemas.errors import UsageError
from evicat.storage.factors import ABSTAINED, YES

_Z = 1.959963984540054
"""Of the normal distribution: 95 % lie within so many standard deviations."""
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """``hits`` of ``of``, with Wilson's interval for 95 %."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end; 0 and 1 where nothing was counted."""
        if not self.of:
            return 0.0, 1.0
        share, spread = self.value, _Z**2 / self.of
        middle = (share + spread / 2) / (1 + spread)
        half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / self.of + spread / (4 * self.of))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        if not self.of:
            return "none"
        low, high = self.interval
        return f"{self.value:.2f} ({low:.2f} to {high:.2f}, of {self.of})"


@dataclass(frozen=True)
class Measured:
    """How right a tagger is about one factor, or about all (``factor`` is empty)."""

    factor: str
    labels: int
    positive: int
    precision: Share
    """Of the tags, those that are right."""
    recall: Share
    """Of the entries that carry it, those that are tagged."""
    abstained: int = 0
    threshold: float | None = None
    """Least likeness that was found best; None where nothing was calibrated."""


def card(tagger: Tagger, known: Labelled) -> list[Measured]:
    """How right the tagger is about each factor that has labels, and in the last row about all."""
    rows = []
    for number, factor in enumerate(known.factors):
        places, labels = known.of(number)
        if not places:
            continue
        said = _verdicts(tagger, known, number, places)
        yes = [each == YES for each in said]
        rows.append(_measured(factor.id, labels, yes, abstained=said.count(ABSTAINED)))
    return [*rows, total(rows)]


def _verdicts(tagger: Tagger, known: Labelled, number: int, places: Sequence[int]) -> list[str]:
    """By label: what the tagger says, empty for no."""
    entries = known.entries[list(places)]
    factor = known.factors[number]
    step = tagger.entries_at_once or max(1, len(entries))
    said: dict[int, str] = {}
    for at in range(0, len(entries), step):
        found = tagger.tag(entries[at : at + step], [factor]).rows
        said |= {at + row: verdict for row, verdict in found.select("row", "verdict").iter_rows()}
    return [said.get(row, "") for row in range(len(entries))]


def calibrate(tagger: EmbeddingTagger, known: Labelled) -> list[Measured]:
    """A threshold for each factor that has labels, and how right that is; in the last row about all.

    Raises:
        UsageError: the labels of a factor are all of one class: any threshold would be right.
    """
    rows = []
    likeness = tagger.likeness(known.entries, known.factors)
    for number, factor in enumerate(known.factors):
        places, labels = known.of(number)
        if not places:
            continue
        if len(set(labels)) == 1:
            only = "yes" if labels[0] else "no"
            raise UsageError(
                f"all {len(labels)} labels of {factor.id} say {only}: a threshold needs some of both; "
                f"label more of this factor: --label with --factor {factor.id}"
            )
        scores = np.nan_to_num(likeness[places, number].astype(np.float64), nan=-1.0)
        truth = np.array(labels)
        held_out = [
            bool(scores[at] >= best_threshold(np.delete(scores, at), np.delete(truth, at)))
            for at in range(len(scores))
        ]
        rows.append(_measured(factor.id, labels, held_out, threshold=best_threshold(scores, truth)))
    return [*rows, total(rows)]


def best_threshold(scores: Numbers, truth: npt.NDArray[np.bool_]) -> float:
    """The threshold with the highest F1, in the middle of the gap below it; of equals the highest.

    Two decimals more than a likeness is good for: the gap's middle keeps it from hanging on the last bits.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], truth[order]
    hits = np.cumsum(right)
    f1 = 2 * hits / (np.arange(1, len(ranked) + 1) + max(1, int(right.sum())))
    is_end = np.append(ranked[:-1] != ranked[1:], True)  # equals stand or fall together
    f1[~is_end] = -1
    at = int(np.argmax(f1))
    below = ranked[at + 1] if at + 1 < len(ranked) else ranked[at] - 0.02
    return round(float((ranked[at] + max(below, ranked[at] - 0.1)) / 2), 4)


def _measured(
    factor: str,
    labels: Sequence[bool],
    yes: Sequence[bool],
    *,
    abstained: int = 0,
    threshold: float | None = None,
) -> Measured:
    right = sum(truth and said for truth, said in zip(labels, yes, strict=True))
    return Measured(
        factor,
        len(labels),
        sum(labels),
        Share(right, sum(yes)),
        Share(right, sum(labels)),
        abstained,
        threshold,
    )


def total(rows: Sequence[Measured]) -> Measured:
    """All of them as one."""
    return Measured(
        "",
        sum(row.labels for row in rows),
        sum(row.positive for row in rows),
        Share(sum(row.precision.hits for row in rows), sum(row.precision.of for row in rows)),
        Share(sum(row.recall.hits for row in rows), sum(row.recall.of for row in rows)),
        sum(row.abstained for row in rows),
    )
