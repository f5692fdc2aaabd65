"""The score card: what each measure means, when it is worth a look, and what a gate holds it to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from evicat.catalog.reading.serialize import MAX_CHARACTERS
from evicat.schemas.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from evicat.catalog.query import Catalog

NEAR = 0.98
"""Cosine from which on two neighbouring descriptions are near-identical (chosen)."""
MOST_WORDS = 300
"""Words a minute beyond which speech is faster than people are (chosen)."""
LEAST_WORDS = 3
"""Words of a line whose rate tells something: of a word or two the times are too rough (chosen)."""
FOUND_WITHIN = 10
"""A description counts as found among so many hits."""


@dataclass(frozen=True)
class Measure:
    """What a number means, which way is better, and from where on it is worth a look."""

    meaning: str
    better: Literal["low", "high"]
    look: float | None = None
    """Worse than this is worth a look (chosen); None: the number only tells."""

    @property
    def sign(self) -> str:
        """How a value stands to a bound that it keeps."""
        return "<=" if self.better == "low" else ">="

    def is_worse(self, value: float, bound: float) -> bool:
        return value > bound if self.better == "low" else value < bound

    def is_doubtful(self, value: float) -> bool:
        return self.look is not None and self.is_worse(value, self.look)


MEASURES: dict[str, Measure] = {
    "failed_share": Measure("windows that failed or were refused, of those with an outcome", "low", 0.02),
    "empty_share": Measure("windows without anything to write", "low", 0.9),
    "partial_share": Measure("windows that only a part of was seen for", "low", 0.05),
    "flagged_share": Measure("entries with any flag", "low", 0.2),
    "broken_share": Measure("records that do not fit their kind", "low", 0.0),
    "repeated_share": Measure(
        "descriptions that say what the one before them says, word for word", "low", 0.1
    ),
    "near_share": Measure(f"neighbours with a cosine of at least {NEAR}, of those with vectors", "low", 0.3),
    "outside": Measure("entries, or frames of them, outside their video or span", "low", 0.0),
    "words_median": Measure("words of an entry, the median", "high", 3),
    "cut_share": Measure(f"texts over {MAX_CHARACTERS} characters, which readers get cut", "low", 0.05),
    "found_share": Measure(
        f"descriptions found among {FOUND_WITHIN} hits of their video by half of their words", "high", 0.8
    ),
    "crammed_share": Measure(
        f"lines of at least {LEAST_WORDS} words with over {MOST_WORDS} words a minute", "low", 0.1
    ),
    "doubted_share": Measure("seconds of speech that is doubted, of all", "low", 0.2),
    "spoken_share": Measure("seconds with speech, of the videos", "high"),
    "bare_share": Measure("sentences that no entry bears out", "low", 0.5),
    "agreement": Measure("mean cosine of a narrative and the local entries of its span", "high", 0.3),
    "renamed_share": Measure("members of the cast who were called otherwise before", "low", 0.5),
    "again_failed_share": Measure("windows that got no second description", "low", 0.02),
    "again_same_share": Measure("windows that a second run describes word for word alike", "high"),
    "again_words": Measure("words that both runs use of a window, of all words of both", "high", 0.4),
    "again_cosine": Measure("mean cosine of the two descriptions of a window", "high", 0.8),
    "blank_share": Measure(
        "clues, or sentences without such, that grey frames in place of the window's bring too", "low", 0.1
    ),
    "unseen_share": Measure("seconds in which the picture changes and no frame was shown", "low", 0.8),
    "unseen_s": Measure(
        "longest time between two shown frames in which the picture changes, in seconds", "low", 15
    ),
    "clock_shift_s": Measure(
        "seconds that the catalog must be moved by for gold texts to fit best, either way", "low", 1
    ),
}
"""Every measure. A share is from 0 to 1."""

CARD_SCHEMA = pl.Schema(
    {
        "producer_id": pl.String(),
        "kind": pl.String(),
        "scale": pl.String(),
        "component": pl.String(),
        "measure": pl.String(),
        "value": pl.Float64(),
        "of": pl.Int64(),
        "doubtful": pl.Boolean(),
    }
)
"""One row per producer and measure; ``of``: of how many windows, entries, seconds or sentences;
``doubtful``: it is worse than the measure's ``look``."""
PRODUCER = ("producer_id", "kind", "scale", "component")
"""What a row says of its producer."""

Found = Iterator[tuple[str, float, int]]
"""Name of a measure, its value, and of how many."""


@dataclass(frozen=True)
class Looked:
    """Rows of a score card for which media, models or gold texts were asked; and what there is to say."""

    card: pl.DataFrame
    notes: tuple[str, ...] = ()
    lost: int = 0
    """Videos that were wanted and could not be looked at; the notes say why."""


def lost_note(lost: int, wanted: int) -> tuple[str, ...]:
    """How many of the videos that were wanted could not be looked at; nothing where all could."""
    what = "video" if wanted == 1 else "videos"
    return (f"{lost} of {wanted} {what} could not be looked at and stay unmeasured",) if lost else ()


def card_of(producer: Mapping[str, Any], found: Iterable[tuple[str, float, int]]) -> pl.DataFrame:
    """The rows of one producer; a measure of nothing is left out."""
    facts = {name: producer[name] for name in PRODUCER}
    rows = [
        facts
        | {"measure": name, "value": float(value), "of": int(of)}
        | {"doubtful": MEASURES[name].is_doubtful(float(value))}
        for name, value, of in found
        if of > 0
    ]
    return pl.DataFrame(rows, schema=CARD_SCHEMA)


def shown_producers(catalog: Catalog) -> pl.DataFrame:
    """The producers that the view shows, by kind and scale."""
    shown = {made for _, _, made in catalog.active().iter_rows()}
    return catalog.producers().filter(pl.col("producer_id").is_in(shown)).sort("kind", "scale")


def share(test: pl.Series) -> float:
    """Of how many it holds; 0 where there are none."""
    return float(test.sum()) / max(len(test), 1)


@dataclass(frozen=True)
class Bound:
    """What a measure must keep, of every producer that has it."""

    measure: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Bound:
        """``failed_share=0.02``: at most so much where low is better, at least where high is.

        Raises:
            UnknownNameError: there is no such measure.
            UsageError: no bound at all.
        """
        name, equals, limit = text.partition("=")
        if name not in MEASURES:
            raise UnknownNameError("measure", name, list(MEASURES))
        try:
            if not equals:
                raise ValueError(text)
            if math.isnan(number := float(limit)):  # nothing is worse than that
                raise ValueError(text)
            return cls(name, number)
        except ValueError:
            raise UsageError(
                f"not a bound: {text!r}; write MEASURE=NUMBER, such as failed_share=0.02"
            ) from None

    @property
    def sign(self) -> str:
        return MEASURES[self.measure].sign

    def broken(self, card: pl.DataFrame) -> pl.DataFrame:
        """The rows of a score card that do not keep it."""
        own = card.filter(pl.col("measure") == self.measure)
        value = pl.col("value")
        return own.filter(value > self.limit if self.sign == "<=" else value < self.limit)
