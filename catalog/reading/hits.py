"""What is made of hits: moments, at most so many of a video, those that stand in a relation in time."""

from __future__ import annotations

from typing import Literal

import polars as pl

from evicat.schemas.errors import UnknownNameError, UsageError

from .arguments import seconds, whole
from .columns import ENTRY_SCHEMA, MOMENT_SCHEMA, RELATED_SCHEMA

Relation = Literal["before", "after", "during", "overlaps"]
RELATIONS: dict[Relation, str] = {
    "before": "ends where the anchor begins, or earlier",
    "after": "begins where the anchor ends, or later",
    "during": "lies within the anchor",
    "overlaps": "shares time with the anchor",
}


def moments(hits: pl.DataFrame, gap_s: float = 0.0) -> pl.DataFrame:
    """Hits of one video with at most ``gap_s`` between them, as one: best first.

    Raises:
        UsageError: a negative gap.
    """
    gap_s = seconds("gap", gap_s)
    if hits.is_empty():
        return MOMENT_SCHEMA.to_frame()
    by_time = hits.sort("asset_id", "start_s", "entry_id")
    reached = pl.col("end_s").cum_max().shift(1).over("asset_id")
    opens = (pl.col("start_s") > reached + gap_s).fill_null(value=True)
    best_first = pl.col("score").neg(), pl.col("end_s") - pl.col("start_s"), pl.col("entry_id")
    grouped = by_time.with_columns(opens.cum_sum().over("asset_id").alias("moment")).group_by(
        "asset_id", "moment", maintain_order=True
    )
    found = grouped.agg(
        pl.col("video").first(),
        pl.col("start_s").min(),
        pl.col("end_s").max(),
        pl.col("score").max(),
        pl.col("text").sort_by(*best_first).first(),
        pl.col("entry_id").alias("entry_ids"),
    )
    best = [pl.col("score").neg(), pl.col("end_s") - pl.col("start_s"), "asset_id", "start_s"]
    return found.sort(best).select(MOMENT_SCHEMA.names()).match_to_schema(MOMENT_SCHEMA)


def at_most_of_each_video(hits: pl.DataFrame, per_video: int) -> pl.DataFrame:
    """The best ``per_video`` of every asset, in the order that they were in."""
    return hits.filter(pl.int_range(pl.len()).over("asset_id") < whole("per_video", per_video, 1))


def related(
    anchors: pl.DataFrame, hits: pl.DataFrame, relation: Relation, within_s: float | None = None
) -> pl.DataFrame:
    """Hits that stand in ``relation`` to an anchor of the same asset, by anchor and then by the gap.

    Args:
        within_s: Seconds between the two at most; None: any.

    Raises:
        UnknownNameError: there is no such relation.
        UsageError: a negative distance.
    """
    if relation not in RELATIONS:
        raise UnknownNameError("relation", relation, list(RELATIONS))
    within_s = None if within_s is None else seconds("within", within_s)
    for frame in (anchors, hits):
        _check_is_answer(frame)
    chosen = ["entry_id", "start_s", "end_s", "text"]
    left = anchors.select("asset_id", *(pl.col(name).alias(f"anchor_{name}") for name in chosen))
    start, end = pl.col("start_s"), pl.col("end_s")
    anchor_start, anchor_end = pl.col("anchor_start_s"), pl.col("anchor_end_s")
    holds = {
        "before": end <= anchor_start,
        "after": start >= anchor_end,
        "during": (start >= anchor_start) & (end <= anchor_end),
        "overlaps": (start < anchor_end) & (end > anchor_start),
    }[relation]
    gap = pl.max_horizontal(start - anchor_end, anchor_start - end, pl.lit(0.0)).alias("gap_s")
    pairs = left.join(hits, on="asset_id").filter(holds, pl.col("entry_id") != pl.col("anchor_entry_id"))
    pairs = pairs.with_columns(gap)
    if within_s is not None:
        pairs = pairs.filter(pl.col("gap_s") <= within_s)
    pairs = pairs.sort("video", "anchor_start_s", "anchor_entry_id", "gap_s", "start_s", "entry_id")
    return pairs.select(RELATED_SCHEMA.names()).match_to_schema(RELATED_SCHEMA)


def _check_is_answer(frame: pl.DataFrame) -> None:
    missing = [name for name in ENTRY_SCHEMA.names() if name not in frame.columns]
    if missing:
        raise UsageError(
            f"entries are related to entries, as `search` and `entries` give them: {missing[0]!r} is missing "
            "among the columns; of moments, take `catalog.only(ids).entries()` of their entry_ids"
        )


def together(first: pl.DataFrame, second: pl.DataFrame, within_s: float) -> pl.DataFrame:
    """Pairs of hits of one asset that fit into ``within_s`` seconds, as :func:`related` gives them."""
    within_s = seconds("within", within_s)
    pairs = [related(first, second, relation) for relation in ("before", "after", "overlaps")]
    both = pl.concat(pairs).unique(maintain_order=True)
    length = pl.max_horizontal("end_s", "anchor_end_s") - pl.min_horizontal("start_s", "anchor_start_s")
    return both.filter(length <= within_s).sort(
        "video", "anchor_start_s", "anchor_entry_id", "gap_s", "entry_id"
    )
