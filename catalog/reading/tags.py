"""Tags in frames: one row each, counts over videos and time, and which factors come together."""

from __future__ import annotations

import math
from typing import Literal

import polars as pl

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.storage.factors import VERDICTS
from evicat.storage.sql import sql_equals, sql_in
from evicat.storage.tables import TAG

from .arguments import seconds
from .columns import COUNT_SCHEMAS, TAG_SCHEMA, TOGETHER_SCHEMA
from .filters import Where, both
from .shown import Shown

By = Literal["factor", "video", "time"]


def tags(
    shown: Shown,
    where: Where,
    *,
    factor: str | None,
    verdict: str | None,
    every_tagger: bool,
) -> pl.DataFrame:
    """Tags of the entries of ``where``, schema ``TAG_SCHEMA``.

    Raises:
        UnknownNameError: no such factor or verdict.
    """
    terms = [where.shared]
    if factor is not None:
        terms.append(sql_in("factor_id", shown.known_factors.ids_of(factor)))
    if verdict is not None:
        if verdict not in VERDICTS:
            raise UnknownNameError("verdict", verdict, list(VERDICTS))
        terms.append(sql_equals("verdict", verdict))
    if not every_tagger:
        active = [made for (kind, _), made in shown.view.places.items() if kind == TAG]
        terms.append(sql_in("made_by", sorted(active)))
    rows = shown.read("tags", both(*terms), [name for name in TAG_SCHEMA if name != "video"])
    return shown.named(rows, TAG_SCHEMA).sort("video", "start_s", "entry_id", "factor_id", "tagger")


def counts(shown: Shown, where: Where, by: By, bin_s: float) -> pl.DataFrame:
    """How many entries carry each factor, and how many seconds of video these cover; what overlaps, once.

    Raises:
        UnknownNameError: there is no such way to count.
        UsageError: a bin without length, or without end.
    """
    if by not in COUNT_SCHEMAS:
        raise UnknownNameError("way to count by", by, list(COUNT_SCHEMAS))
    bin_s = seconds("bin_seconds", bin_s)
    if not 0 < bin_s < math.inf:
        raise UsageError("bin_seconds must be above 0 and finite")
    begin = (pl.col("start_s") / bin_s).floor() * bin_s
    found = carried(shown, where).with_columns(begin.alias("bin_s"))
    keys = {"factor": [], "video": ["asset_id"], "time": ["asset_id", "bin_s"]}[by]
    one = ["factor", "asset_id", *keys[1:]]
    reached = pl.col("end_s").cum_max().shift(1).over(one)
    more = (pl.col("end_s") - pl.max_horizontal("start_s", reached)).clip(0.0)
    counted = (
        found.sort("start_s", "entry_id")
        .with_columns(more.alias("seconds"))
        .group_by("factor", *keys)
        .agg(pl.len().alias("entries"), pl.sum("seconds"))
    )
    schema = COUNT_SCHEMAS[by]
    if keys:
        return shown.named(counted, schema).sort("video", *keys[1:], "factor")
    return counted.match_to_schema(schema).sort("entries", "factor", descending=[True, False])


def together(shown: Shown, where: Where) -> pl.DataFrame:
    """Pairs of factors that entries carry both of.

    ``lift`` says how many times as often that is as if the two had nothing to do with each other.
    """
    found = carried(shown, where).select("entry_id", "factor")
    total = shown.count(where)
    single = found.group_by("factor").len("n")
    pairs = found.join(found, on="entry_id", suffix="_b").filter(pl.col("factor") < pl.col("factor_b"))
    both_of = pairs.group_by("factor", "factor_b").len("entries")
    rows = both_of.join(single, on="factor").join(single, left_on="factor_b", right_on="factor", suffix="_b")
    either = pl.col("n") + pl.col("n_b") - pl.col("entries")
    return (
        rows.with_columns(
            (pl.col("entries") / either).alias("share"),
            (pl.col("entries") * total / (pl.col("n") * pl.col("n_b"))).alias("lift"),
        )
        .rename({"factor": "factor_a"})
        .select(TOGETHER_SCHEMA.names())
        .cast(TOGETHER_SCHEMA)
        .sort("entries", "factor_a", "factor_b", descending=[True, False, False])
    )


def carried(shown: Shown, where: Where) -> pl.DataFrame:
    """``entry_id, asset_id, start_s, end_s, factor``: a row for each factor of each entry.

    Factors are called as they are now.
    """
    columns = ["entry_id", "asset_id", "start_s", "end_s", "factors"]
    any_of = "array_length(factors) > 0"
    rows = shown.read("entries", both(where.all, any_of), columns)
    present = shown.known_factors.present
    names = pl.col("factor").replace(present) if present else pl.col("factor")
    rows = rows.rename({"factors": "factor"}).explode("factor", empty_as_null=False)
    return rows.with_columns(names.alias("factor")).unique(maintain_order=True)
