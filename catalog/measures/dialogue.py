"""Where the dialogue of a catalog comes from, in which languages, and how much of it is doubted."""

from __future__ import annotations

import polars as pl

from evicat.catalog.query import Catalog
from evicat.schemas.entry import SPEECH_WITHHELD

DIALOGUE_SCHEMA = pl.Schema(
    {
        "source": pl.String(),
        "language": pl.String(),
        "videos": pl.Int64(),
        "lines": pl.Int64(),
        "seconds": pl.Float64(),
        "doubted_share": pl.Float64(),
    }
)
"""One row per source and language, the longest first; ``doubted_share``: of the seconds."""


def dialogue(catalog: Catalog, video: str | None = None) -> pl.DataFrame:
    """Speech that the view shows, by its source and language: schema :data:`DIALOGUE_SCHEMA`.

    ``source`` is ``subtitles`` (a file beside the video or a stream in it) or the transcriber's name; empty
    where the record does not say it. Doubted is what no reader is shown (``SPEECH_WITHHELD``).

    Raises:
        UsageError: no such video.
    """
    spoken = catalog.entries(video, kind="speech")
    seconds = pl.col("end_s") - pl.col("start_s")
    doubted = pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    said = pl.col("record").str.json_path_match("$.source").fill_null("")
    source = said.str.extract(r"^(subtitles:\w+|[^:]*)", 1)
    found = spoken.group_by(source.alias("source"), pl.col("language").fill_null("")).agg(
        pl.col("asset_id").n_unique().cast(pl.Int64).alias("videos"),
        pl.len().cast(pl.Int64).alias("lines"),
        seconds.sum().alias("seconds"),
        (seconds.filter(doubted).sum() / seconds.sum()).fill_nan(0.0).alias("doubted_share"),
    )
    return found.sort(pl.col("seconds").neg(), "source", "language").match_to_schema(DIALOGUE_SCHEMA)
