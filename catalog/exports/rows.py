"""Which entries are exported, with what a training job wants beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from evicat.catalog.query import Catalog
from evicat.catalog.reading.arguments import whole
from evicat.catalog.reading.columns import ENTRY_SCHEMA
from evicat.catalog.reading.filters import Between, OneOrMore
from evicat.schemas.entry import SPEECH_WITHHELD

from .splits import WHOLE, check_shares, split_of
from .strata import sample

EXPORT_SCHEMA = pl.Schema(
    {
        **ENTRY_SCHEMA,
        "source_id": pl.String(),
        "benchmark": pl.String(),
        "duration_s": pl.Float64(),
        "outcome": pl.String(),
        "split": pl.String(),
    }
)
"""A row of every export: an entry, what its video goes back to, and what became of its window."""


@dataclass(frozen=True)
class Choice:
    """What to export of a view.

    Args:
        flagged: Whether doubted speech is among it (``SPEECH_WITHHELD``).
        partial: Whether what was made from a part of its window is.
        factors: As ``Catalog.entries`` takes them.
        shares: Splits and their shares of the sources; empty: no splits.
        per_factor: Of each factor so many entries in each split, as :func:`.strata.sample` says; None: all.
    """

    video: OneOrMore | None = None
    kind: OneOrMore | None = None
    between: Between | None = None
    producer: str | None = None
    flagged: bool = False
    partial: bool = True
    shares: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    factors: OneOrMore | None = None
    per_factor: int | None = None


@dataclass(frozen=True)
class Chosen:
    """The rows, and how many were left out for what."""

    rows: pl.DataFrame
    left_out: dict[str, int]


def choose(catalog: Catalog, choice: Choice) -> Chosen:
    """The entries of a choice in the order of ``Catalog.entries``, schema :data:`EXPORT_SCHEMA`.

    Raises:
        UsageError: unknown names, or shares that do not fit.
    """
    if choice.shares:
        check_shares(choice.shares)
    entries = catalog.entries(
        choice.video,
        kind=choice.kind,
        between=choice.between,
        producer=choice.producer,
        factors=choice.factors,
    )
    rows = _with_outcome(catalog, _with_source(catalog, entries))
    doubted = pl.col("flags").list.set_intersection(pl.lit(sorted(SPEECH_WITHHELD))).list.len() > 0
    tests = {
        "flagged": doubted if not choice.flagged else None,
        "partial": pl.col("outcome") == "partial" if not choice.partial else None,
    }
    left_out: dict[str, int] = {}
    for name, test in tests.items():
        kept = rows if test is None else rows.filter(~test.fill_null(value=False))
        left_out[name] = len(rows) - len(kept)
        rows = kept
    splits = {
        source: split_of(source, choice.shares, choice.seed) if choice.shares else WHOLE
        for source in rows["source_id"].unique().to_list()
    }
    split = pl.col("source_id").replace_strict(splits, default=WHOLE, return_dtype=pl.String).alias("split")
    rows = rows.with_columns(split)
    if choice.per_factor is not None:
        kept = sample(rows, whole("per_factor", choice.per_factor, 1), choice.seed)
        left_out["beyond the sample"] = len(rows) - len(kept)
        rows = kept
    return Chosen(rows.match_to_schema(EXPORT_SCHEMA), left_out)


def _with_source(catalog: Catalog, entries: pl.DataFrame) -> pl.DataFrame:
    videos = catalog.videos(missing=True).unique("asset_id", keep="first", maintain_order=True)
    facts = videos.select("asset_id", "source_id", pl.col("benchmark").fill_null(""), "duration_s")
    found = entries.join(facts, on="asset_id", how="left", maintain_order="left")
    return found.with_columns(pl.col("source_id").fill_null(pl.col("asset_id")))


def _with_outcome(catalog: Catalog, entries: pl.DataFrame) -> pl.DataFrame:
    """``outcome`` of the window that wrote each entry: ``done`` where all windows of its unit are."""
    windows = catalog.scan("coverage").filter(pl.col("entries") > 0)
    unit = ["asset_id", "producer_id"]
    odd = windows.filter(pl.col("outcome") != "done").select(unit).unique().collect()
    if odd.is_empty():
        return entries.with_columns(pl.lit("done").alias("outcome"))
    written = windows.select(*unit, pl.col("start_s").alias("window_start_s"), "outcome").collect()
    found = (
        entries.select("entry_id", *unit, "start_s")
        .join(odd, on=unit, how="semi")
        .sort("start_s")
        .join_asof(  # a window's entries begin in it
            written.join(odd, on=unit, how="semi").sort("window_start_s"),
            left_on="start_s",
            right_on="window_start_s",
            by=unit,
            check_sortedness=False,
        )
    )
    of_these = found.select("entry_id", "outcome")
    return entries.join(of_these, on="entry_id", how="left", maintain_order="left").with_columns(
        pl.col("outcome").fill_null("done")
    )
