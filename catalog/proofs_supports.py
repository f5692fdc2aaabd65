"""Proofs about supports: of every narrative that was weighed all sentences, each resting on what is there."""

from __future__ import annotations

import polars as pl

from evicat.catalog.evidence import Evidence, Portion
from evicat.catalog.proof import Proof
from evicat.schemas.entry import ROLES, SPEECH_WITHHELD, Outcome
from evicat.storage.tables import SUPPORT, table_spec

_NARRATIVE = ["entry_id", "unit_id", "asset_id", "producer_id", "start_s", "end_s"]
"""What a support repeats of its narrative."""


def supports(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Sentences are those of their narratives, stand once and are all there; links lead to entries."""
    rows = portion.supports.with_columns(pl.lit("supports").alias("scale"))
    proof.looked += len(rows)
    key = list(table_spec("supports").key)
    twice = rows.filter(pl.struct(key).is_duplicated()).unique(key, maintain_order=True)
    proof.fail_rows(twice, "sentence {sentence} of {entry_id} stands more than once")
    odd = rows.filter(~pl.col("role").is_in(list(ROLES)))
    proof.fail_rows(odd, "sentence {sentence} of {entry_id} has the unknown role {role!r}")
    _bound(proof, evidence, portion, rows)
    _links(proof, evidence, portion, rows)
    _whole(proof, evidence, portion, rows)


def _made(portion: Portion) -> pl.DataFrame:
    """Support units with a result that may have supports: ``support_unit_id, asset_id, supporting``."""
    made = [outcome.value for outcome in Outcome if outcome.writes_entries]
    rows = portion.coverage.filter(pl.col("kind") == SUPPORT, pl.col("outcome").is_in(made))
    return rows.select(
        pl.col("unit_id").alias("support_unit_id"), "asset_id", pl.col("producer_id").alias("supporting")
    )


def _reads(evidence: Evidence) -> pl.DataFrame:
    """What support producers read: ``supporting, producer_id``."""
    pairs = [
        (key, read)
        for key, producer in evidence.producers.items()
        if producer.kind == SUPPORT
        for read in producer.reads
    ]
    return pl.DataFrame(
        pairs, schema={"supporting": pl.String, "producer_id": pl.String}, orient="row"
    ).unique()


def _bound(proof: Proof, evidence: Evidence, portion: Portion, rows: pl.DataFrame) -> None:
    """Supports whose narrative is not there or is another, or whose unit has made none."""
    narratives = portion.entries.filter(pl.col("kind") == "narrative")
    lost = rows.join(narratives, on=_NARRATIVE, how="anti")
    proof.fail_rows(lost, "sentence {sentence} of {entry_id} belongs to no narrative")
    stray = rows.join(_made(portion), on="support_unit_id", how="anti")
    proof.fail_rows(stray, "sentence {sentence} of {entry_id} belongs to no unit that is done")


def _links(proof: Proof, evidence: Evidence, portion: Portion, rows: pl.DataFrame) -> None:
    """Links to what is not there, is a narrative, is withheld, is elsewhere, or has no score."""
    cited = (
        rows.explode("rests_on", empty_as_null=False)
        .with_columns(pl.col("rests_on").struct.rename_fields(["link", "score"]))
        .unnest("rests_on")
        .join(_made(portion).drop("asset_id"), on="support_unit_id")
    )
    withheld = pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    may_carry = portion.entries.filter(pl.col("kind") != "narrative", ~withheld)
    sources = may_carry.join(_reads(evidence), on="producer_id").select(
        "supporting",
        "asset_id",
        pl.col("entry_id").alias("link"),
        pl.col("start_s").alias("link_start_s"),
        pl.col("end_s").alias("link_end_s"),
    )
    lost = cited.join(sources, on=["supporting", "asset_id", "link"], how="anti")
    proof.fail_rows(lost, "sentence {sentence} of {entry_id} rests on {link}, which is no entry that it read")
    found = cited.join(sources, on=["supporting", "asset_id", "link"])
    apart = (pl.col("link_start_s") >= pl.col("end_s")) | (pl.col("link_end_s") <= pl.col("start_s"))
    proof.fail_rows(
        found.filter(apart), "sentence {sentence} of {entry_id} rests on {link}, which is elsewhere in time"
    )
    inside = pl.col("score").is_between(0, 1, closed="right").fill_null(False)
    proof.fail_rows(
        cited.filter(~inside), "sentence {sentence} of {entry_id} rests on {link} with the score {score}"
    )


def _whole(proof: Proof, evidence: Evidence, portion: Portion, rows: pl.DataFrame) -> None:
    """Narratives that were weighed, and whose sentences are not 0, 1, 2, ..., or not their text."""
    narratives = portion.entries.filter(pl.col("kind") == "narrative")
    weighed = narratives.join(_reads(evidence), on="producer_id").join(
        _made(portion), on=["supporting", "asset_id"]
    )
    told = (
        rows.sort("sentence")
        .group_by("support_unit_id", "entry_id", maintain_order=True)
        .agg(pl.col("sentence").alias("sentences"), pl.col("text").str.join("").alias("told"))
    )
    key = ["support_unit_id", "entry_id"]
    weighed = weighed.join(told, on=key, how="left")
    numbers = pl.int_ranges(pl.col("sentences").list.len(), dtype=pl.Int32)
    in_order = (pl.col("sentences") == numbers).fill_null(False)
    proof.fail_rows(
        weighed.filter(~in_order), "narrative {entry_id} has sentences {sentences}, which is not 0, 1, 2, ..."
    )
    bare = pl.col("text", "told").str.replace_all(r"[\s\x1c-\x1f]", "")
    other = weighed.filter(in_order).with_columns(bare).filter(pl.col("text") != pl.col("told"))
    proof.fail_rows(other, "the sentences of narrative {entry_id} are not its text")
