"""How often entries carry each factor: along a video, or from video to video."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.viewer import plots_style as style

if TYPE_CHECKING:
    import altair

By = Literal["time", "video"]
MOST_COLUMNS = 72
"""Parts that a timeline is divided into, at most."""
MOST_FACTORS = 40
"""The factors that most entries carry are drawn."""
MOST_VIDEOS = 60
"""The videos in which most factors are found are drawn, together with these."""


def factors(catalog: Catalog, by: By = "time", **filters: Any) -> altair.Chart:
    """Draw how many entries carry each factor, as a heat map of factors.

    Args:
        by: ``time``: along the timeline, all videos laid over each other where there are several; ``video``:
            a column for each video.
        **filters: Those of ``Catalog.entries``, such as ``video="harbour.mp4"`` or ``kind="local"``.

    Raises:
        UnknownNameError: there is no such way to count.
        UsageError: no entry that fits carries a factor; nothing is tagged, maybe.
        MissingExtraError: altair is not installed.
    """
    alt = style.load_altair()
    if by not in get_args(By):
        raise UnknownNameError("way to count by", by, list(get_args(By)))
    totals = catalog.factor_counts(**filters)
    if totals.is_empty():
        raise UsageError("there is nothing to plot: no entry that fits carries a factor; see `evicat tag`")
    drawn = totals.head(MOST_FACTORS)["factor"].to_list()
    cells, across, note = (_timed if by == "time" else _of_videos)(alt, catalog, drawn, filters)
    said = [
        f"{len(drawn):,} of {len(totals):,} factors" if len(drawn) < len(totals) else f"{len(drawn)} factors"
    ]
    chart: altair.Chart = _heat_map(alt, cells, across, drawn).properties(
        title=style.title(alt, f"Factors by {by}", "; ".join([*said, note]))
    )
    return chart


def _timed(
    alt: Any, catalog: Catalog, drawn: list[str], filters: dict[str, Any]
) -> tuple[pl.DataFrame, dict[str, Any], str]:
    """Cells, where they stand along the axis, and what the subtitle says of them."""
    fine = catalog.factor_counts("time", bin_seconds=1.0, **filters)
    longest_s = max(fine["bin_s"].to_list()) + 1.0
    step_s = style.step_for(longest_s, MOST_COLUMNS)
    begin = (pl.col("bin_s") / step_s).floor() * step_s
    counted = fine.filter(pl.col("factor").is_in(drawn)).group_by("factor", begin.alias("start_s"))
    cells = counted.agg(pl.sum("entries")).with_columns((pl.col("start_s") + step_s).alias("end_s"))
    cells = style.milliseconds(cells.with_columns(style.clocks(cells))).sort("factor", "start_s")
    axis = style.time_axis(longest_s, "time in the video")
    x = alt.X("start_ms:T", axis=axis, scale=alt.Scale(type="utc", nice=False))
    videos = fine["asset_id"].n_unique()
    of = "1 video" if videos == 1 else f"{videos:,} videos, one over the other"
    note = f"entries that begin in parts of {style.clock(step_s)}, {of}"
    across = {"x": x, "x2": "end_ms:T", "tooltip": alt.Tooltip("time:N"), "width": style.WIDTH - 200}
    return cells.select("factor", "entries", "time", "start_ms", "end_ms"), across, note


def _of_videos(
    alt: Any, catalog: Catalog, drawn: list[str], filters: dict[str, Any]
) -> tuple[pl.DataFrame, dict[str, Any], str]:
    """As :func:`_timed`, with a column for each video."""
    found = catalog.factor_counts("video", **filters)
    cells = found.filter(pl.col("factor").is_in(drawn))
    most = (
        cells.group_by("asset_id", "video").agg(pl.sum("entries")).sort("entries", "video", descending=True)
    )
    shown = most.head(MOST_VIDEOS).sort("video")
    names = shown.select("asset_id", pl.Series("label", style.short_names(shown["video"].to_list())))
    cells = cells.join(names, on="asset_id").select("factor", "entries", "label").sort("label", "factor")
    x = alt.X(
        "label:N", sort=names["label"].to_list(), title="video", axis=alt.Axis(labelAngle=-40, labelLimit=220)
    )
    total = found["asset_id"].n_unique()
    note = f"entries in {len(shown):,} videos" + (f" of {total:,}" if total > len(shown) else "")
    across = {"x": x, "tooltip": alt.Tooltip("label:N", title="video"), "width": alt.Step(22)}
    return cells, across, note


def _heat_map(alt: Any, cells: pl.DataFrame, across: dict[str, Any], drawn: list[str]) -> Any:
    place = {name: across[name] for name in ("x", "x2") if name in across}
    tips = [alt.Tooltip("factor:N"), across["tooltip"], alt.Tooltip("entries:Q", format=",")]
    return (
        alt.Chart(cells)
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            y=alt.Y("factor:N", sort=sorted(drawn), title="factor", axis=alt.Axis(labelLimit=260)),
            color=alt.Color(
                "entries:Q",
                scale=alt.Scale(range=["#C6DBEF", "#08519C"], domainMin=0),
                legend=alt.Legend(tickMinStep=1, format=",d"),
            ),
            tooltip=tips,
            **place,
        )
        .properties(width=across["width"], height=alt.Step(18))
    )
