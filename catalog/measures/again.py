"""Is a description what the frames show? Windows are described once more, and from blank frames.

A describer whose second description shares little with the first guesses; what it also says of grey frames
it says without looking. Both ask the model of the recipe, and write nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evicat.catalog.kit import Kit
from evicat.catalog.likeness import embedded_cosines
from evicat.catalog.query import Catalog
from evicat.catalog.sentences import sentences
from evicat.catalog.supports import coverage as words_carried
from evicat.catalog.words import shared_words
from evicat.schemas.identity import Unit
from evicat.schemas.span import to_us

from .card import CARD_SCHEMA, PRODUCER, Found, Looked, card_of, lost_note, share
from .rehearsal import Made, rehearse
from .sample import Sample

CARRIED = 0.75
"""Of the content words of a clue or sentence, the share that must be there for it to be carried (chosen)."""
REASONS = 3
"""Reasons of failures that are told."""
_NO_CLUES = ("rests_on", "boxes", "cast", "narrative", "wanted")
"""Fields of records that hold no clue of a window."""


@dataclass(frozen=True)
class Again(Looked):
    """The same windows described again: rows of the card, and the texts behind them.

    ``windows``: those of the sample, with ``again`` (null: no description came), and from blank frames with
    ``clues`` and ``survived``: those of them that the blank description carries.
    """

    windows: pl.DataFrame = field(default_factory=pl.DataFrame)


def described_again(
    catalog: Catalog, kit: Kit, sample: Sample, *, media_roots: Sequence[str | Path] = ()
) -> Again:
    """How far a second description of the same frames agrees with the stored one.

    Cosines need an embedder in the recipe. Raises as :func:`.rehearsal.rehearse` does.
    """
    made, problems = rehearse(catalog, kit, sample.windows, media_roots=media_roots)
    windows = _beside(sample.windows, made)
    return _judged(sample.windows, windows, problems, _failures(made), lambda own: _agreement(own, kit))


def described_blank(
    catalog: Catalog, kit: Kit, sample: Sample, *, media_roots: Sequence[str | Path] = ()
) -> Again:
    """Which clues of a description come from grey frames too, of windows of describers that see frames."""
    seen = [name for name, each in kit.describers.items() if "frames" in each.reads]
    wanted = sample.windows.filter(pl.col("scale").is_in(seen))
    made, problems = rehearse(catalog, kit, wanted, blank=True, media_roots=media_roots)
    windows = _beside(wanted, made)
    clues = [clues_of(record, text) for record, text in windows.select("record", "text").iter_rows()]
    blank = windows["again"].fill_null("").to_list()
    survived = [[each for each in own if carries(text, each)] for own, text in zip(clues, blank, strict=True)]
    kind = pl.List(pl.String)
    windows = windows.with_columns(pl.Series("clues", clues, kind), pl.Series("survived", survived, kind))
    return _judged(wanted, windows, problems, _failures(made), _survival)


def clues_of(record: str, text: str) -> list[str]:
    """What a description says, piece by piece: the phrases of its record, or the sentences of its text."""
    fields: dict[str, Any] = json.loads(record)
    phrases = [each for name, value in fields.items() if name not in _NO_CLUES for each in _phrases(value)]
    return list(dict.fromkeys(phrases)) or sentences(text)


def _phrases(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, dict):
        return [each for part in value.values() for each in _phrases(part)]
    return [each for part in value for each in _phrases(part)] if isinstance(value, list) else []


def carries(text: str, clue: str) -> bool:
    """Whether ``text`` has the content words of a clue; of one without such, the clue itself."""
    return words_carried(clue, text) >= CARRIED or clue.casefold() in text.casefold()


def _beside(windows: pl.DataFrame, made: Made) -> pl.DataFrame:
    """The windows for which a result came, each with its new text; null where it has none."""
    again: list[str | None] = []
    came: list[bool] = []
    for asset_id, producer_id, start_s in windows.select("asset_id", "producer_id", "start_s").iter_rows():
        unit = Unit(asset_id=asset_id, producer_id=producer_id, kind="", scale="")
        result = made.get((unit.unit_id, to_us(start_s)))
        came.append(result is not None)
        again.append(result.entries[0].text if result and result.entries else None)
    return windows.with_columns(pl.Series("again", again, pl.String)).filter(
        pl.Series(came, dtype=pl.Boolean)
    )


def _failures(made: Made) -> list[str]:
    """Why windows got no description, the most frequent reasons first."""
    reasons = Counter(each.message for each in made.values() if each.error_class)
    return [f"{count} windows were not described: {why}" for why, count in reasons.most_common(REASONS)]


def _judged(
    wanted: pl.DataFrame,
    windows: pl.DataFrame,
    problems: Sequence[str],
    failures: Sequence[str],
    measure: Any,
) -> Again:
    """``problems``: of videos that could not be looked at; ``failures``: of windows of others."""
    cards = [CARD_SCHEMA.to_frame()]
    for own in windows.partition_by("producer_id", maintain_order=True) if len(windows) else []:
        facts = own.select(PRODUCER).row(0, named=True)
        cards.append(card_of(facts, measure(own)))
    notes = (*problems, *lost_note(len(problems), wanted["asset_id"].n_unique()), *failures)
    return Again(pl.concat(cards), notes, len(problems), windows=windows)


def _agreement(own: pl.DataFrame, kit: Kit) -> Found:
    yield "again_failed_share", share(own["again"].is_null()), len(own)
    told = own.drop_nulls("again")
    plain = [told[name].str.replace_all(r"\s+", " ").str.strip_chars() for name in ("text", "again")]
    yield "again_same_share", share(plain[0] == plain[1]), len(told)
    shared = shared_words(told["text"], told["again"]).drop_nulls()
    yield "again_words", _mean(shared.to_numpy()), len(shared)
    if kit.embedder is not None and len(told):
        with kit.using(kit.embedder):
            found = embedded_cosines(told["text"], told["again"], kit.embedder)
        known = found[~np.isnan(found)]
        yield "again_cosine", _mean(known), len(known)


def _survival(own: pl.DataFrame) -> Found:
    clues, survived = (int(own[name].list.len().sum()) for name in ("clues", "survived"))
    yield "blank_share", survived / max(clues, 1), clues


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else 0.0
