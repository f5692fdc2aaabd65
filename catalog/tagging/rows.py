"""What taggers found, as rows of the tables; by columns, since there may be millions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from evicat.catalog.tagging.base import Tagger
from evicat.catalog.tagging.vocabulary import Factor, Vocabulary
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import IntegrityError
from evicat.schemas.identity import Unit
from evicat.schemas.span import Span
from evicat.storage.tables import COVERAGE, TAGS

UnitIds = Mapping[tuple[str, str], Sequence[str]]
"""By asset and source: the ids of the tag units of the factors, in their order."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of one window of a tag unit."""

    unit: Unit
    span: Span
    outcome: Outcome
    message: str = ""
    error_class: str = ""
    raw: str | None = None
    attempts: int = 1
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    context_hash: str = ""


def coverage_table(windows: Sequence[Ledger]) -> pa.Table:
    """Schema ``COVERAGE``."""
    same = ("message", "error_class", "raw", "attempts", "seconds", "prompt_tokens", "completion_tokens")
    columns: dict[str, list[Any]] = {
        name: [getattr(each, name) for each in windows] for name in (*same, "context_hash")
    }
    for name in ("unit_id", "asset_id", "producer_id", "kind", "scale"):
        columns[name] = [getattr(each.unit, name) for each in windows]
    columns["start_s"] = [each.span.start_s for each in windows]
    columns["end_s"] = [each.span.end_s for each in windows]
    columns["outcome"] = [each.outcome.value for each in windows]
    columns["entries"] = [0] * len(windows)
    columns["run_id"] = [""] * len(windows)
    return pa.table({name: columns[name] for name in COVERAGE.names}, schema=COVERAGE)


def tags_table(
    entries: pl.DataFrame,
    found: pl.DataFrame,
    factors: Sequence[Factor],
    vocabulary_of: Mapping[str, Vocabulary],
    tagger: Tagger,
    unit_ids: UnitIds,
    window_start_us: int = 0,
) -> pa.Table:
    """Schema ``TAGS``, of what was found in ``entries``; pairs of a source and factor without a unit go."""
    rows, columns = found["row"].to_numpy(), found["factor"].to_numpy()
    if not np.diff(np.sort(rows * len(factors) + columns)).all():
        raise IntegrityError(f"the tagger {tagger.component} gave an entry and a factor two tags")
    by_row, by_factor = pa.array(rows), pa.array(columns)
    taken = {name: _strings(entries[name]).take(by_row) for name in ("entry_id", "asset_id", "producer_id")}
    taken |= {name: entries[name].to_arrow().take(by_row) for name in ("start_s", "end_s")}
    facts = [_facts(factor, vocabulary_of[factor.id], tagger) for factor in factors]
    for name in ("factor_id", "made_by", "vocabulary", "vocabulary_version", "tagger"):
        taken[name] = pa.array([each[name] for each in facts], TAGS.field(name).type).take(by_factor)
    for name in ("verdict", "value", "field"):
        taken[name] = _strings(found[name])
    for name in ("confidence", "text_begin", "text_end"):
        taken[name] = found[name].to_arrow()
    taken["window_start_us"] = pa.repeat(pa.scalar(window_start_us, pa.int64()), len(rows))
    taken["tag_unit_id"] = _units(entries, rows, columns, unit_ids, len(factors))
    return pa.table([taken[name] for name in TAGS.names], schema=TAGS)


def _strings(series: pl.Series) -> Any:
    """As Arrow's plain strings."""
    return series.to_arrow().cast(pa.string())


def _facts(factor: Factor, vocabulary: Vocabulary, tagger: Tagger) -> dict[str, Any]:
    return {
        "factor_id": factor.id,
        "made_by": tagger.producer(factor).producer_id,
        "vocabulary": vocabulary.vocabulary,
        "vocabulary_version": vocabulary.version,
        "tagger": tagger.component,
    }


def _units(entries: pl.DataFrame, rows: Any, columns: Any, unit_ids: UnitIds, factors: int) -> Any:
    """The unit of each tag."""
    sources = list(unit_ids)
    place = pl.DataFrame(
        [(*source, number) for number, source in enumerate(sources)],
        schema={"asset_id": pl.String, "producer_id": pl.String, "place": pl.Int64},
        orient="row",
    )
    keys = entries.select("asset_id", "producer_id")
    of_entry = keys.join(place, on=["asset_id", "producer_id"], how="left", maintain_order="left")["place"]
    flat = pa.array([each for source in sources for each in unit_ids[source]], pa.string())
    return flat.take(pa.array(of_entry.to_numpy()[rows] * factors + columns, pa.int64()))
