"""Proofs about tags: every tag is of an entry and a unit that are there, and the entries' factors follow."""

from __future__ import annotations

import polars as pl

from evicat.catalog.evidence import Evidence, Portion
from evicat.catalog.proof import Proof
from evicat.schemas.entry import Outcome
from evicat.storage.factors import VERDICTS, YES
from evicat.storage.tables import TAG, table_spec

_ENTRY = ["entry_id", "asset_id", "producer_id", "start_s", "end_s"]
"""What a tag repeats of its entry."""


def tags(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Tags stand once, with entries and windows that are there, and point into the text."""
    rows = portion.tags.with_columns(pl.col("factor_id").alias("scale"))
    proof.looked += len(rows)
    twice = rows.filter(pl.struct(table_spec("tags").key).is_duplicated()).unique(
        list(table_spec("tags").key), maintain_order=True
    )
    proof.fail_rows(twice, "factor {factor_id} of {entry_id} stands more than once")
    odd = rows.filter(~pl.col("verdict").is_in(list(VERDICTS)))
    proof.fail_rows(odd, "factor {factor_id} of {entry_id} has the unknown verdict {verdict!r}")
    lost = rows.join(portion.entries, on=_ENTRY, how="anti")
    proof.fail_rows(lost, "factor {factor_id} of {entry_id} belongs to no entry")
    made = portion.coverage.filter(pl.col("kind") == TAG, pl.col("outcome") == Outcome.DONE.value)
    windows = made.select(pl.col("unit_id").alias("tag_unit_id"), pl.col("start_us").alias("window_start_us"))
    stray = rows.join(windows, on=["tag_unit_id", "window_start_us"], how="anti")
    proof.fail_rows(stray, "factor {factor_id} of {entry_id} belongs to no window that is done")
    placed = rows.filter(pl.col("text_begin").is_not_null() | pl.col("text_end").is_not_null())
    lengths = portion.entries.select("entry_id", pl.col("text").str.len_chars().alias("length"))
    inside = (pl.col("text_begin") >= 0) & (pl.col("text_begin") < pl.col("text_end"))
    inside &= pl.col("text_end") <= pl.col("length")
    outside = placed.join(lengths, on="entry_id").filter(~inside.fill_null(False))
    proof.fail_rows(outside, "factor {factor_id} of {entry_id} points outside of its text")
    _factors(proof, evidence, portion, rows)


def _factors(proof: Proof, evidence: Evidence, portion: Portion, rows: pl.DataFrame) -> None:
    """Entries whose factors are not the accepted tags of the taggers that the default view shows."""
    active = [made_by for (kind, _), made_by in evidence.reader.view().items() if kind == TAG]
    accepted = rows.filter(pl.col("verdict") == YES, pl.col("made_by").is_in(active))
    wanted = accepted.group_by("entry_id").agg(pl.col("factor_id").unique().sort().alias("wanted"))
    entries = portion.entries.join(wanted, on="entry_id", how="left")
    nothing = pl.lit([], pl.List(pl.String))
    entries = entries.with_columns(pl.col("wanted").fill_null(nothing))
    wrong = entries.filter(pl.col("factors").list.sort() != pl.col("wanted"))
    proof.fail_rows(wrong, "entry {entry_id} has the factors {factors}, its tags say {wanted}")
