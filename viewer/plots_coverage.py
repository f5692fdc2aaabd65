"""Coverage of a library: videos times parts of their timelines, coloured by the share of an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UnknownNameError
from evicat.storage.rows import producer_from_row
from evicat.storage.tables import DERIVED, OUTCOMES
from evicat.viewer import plots_style as style
from evicat.viewer.plots_style import PENDING

if TYPE_CHECKING:
    import altair

SETTLED = ("done", "partial", "empty")
"""Outcomes of windows that need nothing more."""
MOST_LINES = 60
"""Lines of the heat map; where there are more videos, one line stands for several."""
PARTS = 72
"""Parts that the longest video is divided into, at most."""
_ALL = [*(outcome.value for outcome in OUTCOMES), PENDING]
_BAD_SHARES = (0.0, 0.1, 0.5, 1.0)
_GOOD_TO_BAD = ("#C6DBEF", "#F7D9C0", "#EE9C63", "#C44E00")
"""A tenth that is missing shows already."""


def coverage(
    catalog: Catalog, outcome: str | Sequence[str] = SETTLED, *, scale: str | None = None
) -> altair.Chart:
    """Draw, for every video and part of its timeline, the share of time whose windows have an outcome.

    Counted are the windows of the producers that the view shows. Pale blue is well, orange is not; white
    lies beyond the end of a video.

    Args:
        outcome: One or several, ``pending`` among those that there are.
        scale: Only windows of this scale, such as ``local-10s``; None: of all.

    Raises:
        UnknownNameError: no such outcome, or the view has no such scale.
        UsageError: there is no video with a timeline, or none with a picture for this scale.
        MissingExtraError: altair is not installed.
    """
    alt = style.load_altair()
    wanted = [outcome] if isinstance(outcome, str) else list(outcome)
    for each in wanted:
        if each not in _ALL:
            raise UnknownNameError("outcome", each, _ALL)
    made_by = _made_by(catalog, scale)
    named = style.one_name_each(catalog)
    timed = _due(catalog, named.filter(pl.col("duration_s") > 0), made_by)
    style.need_rows(timed, "no video of this catalog has a timeline, or nothing to see for this scale")
    lines = _lines(timed)
    step_s = style.step_for(max(lines["duration_s"].to_list()), PARTS)
    cells = _cells(_windows(catalog, made_by), lines, step_s)
    cells = cells.with_columns(pl.sum_horizontal(wanted).round(4).alias("share"))
    chart: altair.Chart = _heat_map(alt, cells, wanted).properties(
        title=style.title(
            alt,
            f"Coverage: {' + '.join(wanted)}{f', {scale}' if scale else ''}",
            _subtitle(named, timed, lines, step_s),
        )
    )
    return chart


def _made_by(catalog: Catalog, scale: str | None) -> list[str]:
    active = catalog.active().filter(~pl.col("kind").is_in(DERIVED))
    known = active["scale"].unique().to_list()
    if scale is not None and scale not in known:
        raise UnknownNameError("scale", scale, known)
    shown = active if scale is None else active.filter(pl.col("scale") == scale)
    style.need_rows(shown, "the view shows no producer")
    return shown["producer_id"].to_list()


def _due(catalog: Catalog, timed: pl.DataFrame, made_by: list[str]) -> pl.DataFrame:
    """With ``due``: of how many producers each has to be covered, with no picture not of those that see."""
    rows = catalog.producers().filter(pl.col("producer_id").is_in(made_by)).to_dicts()
    seeing = sum("frames" in producer_from_row(row).options for row in rows)
    blind = catalog.videos().filter(pl.col("width").is_null())["asset_id"].to_list()
    fewer = pl.when(pl.col("asset_id").is_in(blind)).then(seeing).otherwise(0)
    return timed.with_columns((len(made_by) - fewer).alias("due")).filter(pl.col("due") > 0)


def _lines(timed: pl.DataFrame) -> pl.DataFrame:
    """Assets with the line that they stand in: ``asset_id, duration_s, line, label, videos``."""
    each = -(-len(timed) // MOST_LINES)
    names = pl.Series("video", style.short_names(timed["video"].to_list()), pl.String)
    numbered = timed.with_columns(names, (pl.int_range(pl.len()) // each).alias("line"))
    first, others = pl.col("video").first(), pl.len() - 1
    label = pl.when(others == 0).then(first).otherwise(pl.format("{} and {} more", first, others))
    of_line = numbered.group_by("line").agg(label.alias("label"), pl.len().alias("videos"))
    return numbered.join(of_line, on="line").drop("video")


def _windows(catalog: Catalog, made_by: list[str]) -> pl.DataFrame:
    lazy = catalog.scan("coverage").filter(pl.col("producer_id").is_in(made_by))
    return lazy.select("asset_id", "start_s", "end_s", "outcome").collect()


def _cells(windows: pl.DataFrame, lines: pl.DataFrame, step_s: int) -> pl.DataFrame:
    """A row per line and part: the share of each outcome of the time that all producers have to cover."""
    whole = lines.with_columns(pl.lit(0.0).alias("start_s"), pl.col("duration_s").alias("end_s"))
    shared = _parts(whole, step_s).group_by("line", "label", "videos", "part")
    due = shared.agg(due_s=(pl.col("shared_s") * pl.col("due")).sum())
    of_lines = windows.join(lines.select("asset_id", "line"), on="asset_id")
    held = _parts(of_lines, step_s).group_by("line", "part", "outcome").agg(pl.sum("shared_s"))
    wide = held.pivot("outcome", index=["line", "part"], values="shared_s")
    missing = [pl.lit(0.0).alias(name) for name in _ALL if name not in wide.columns]
    shares = [(pl.col(name).fill_null(0.0) / pl.col("due_s")).alias(name) for name in _ALL[:-1]]
    return (
        due.join(wide.with_columns(missing), on=["line", "part"], how="left")
        .with_columns(shares)
        .with_columns((1 - pl.sum_horizontal(_ALL[:-1])).clip(0, 1).alias(PENDING))
        .with_columns(pl.col(_ALL).round(4))
        .with_columns(start_s=pl.col("part") * float(step_s), end_s=(pl.col("part") + 1) * float(step_s))
        .sort("line", "part")
    )


def _parts(spans: pl.DataFrame, step_s: int) -> pl.DataFrame:
    """Spans cut at the borders of parts, with ``shared_s`` seconds in each ``part``."""
    first = (pl.col("start_s") / step_s).floor().cast(pl.Int64)
    last = (pl.col("end_s") / step_s).ceil().cast(pl.Int64)
    cut = spans.with_columns(pl.int_ranges(first, last).alias("part")).explode("part")
    begins, ends = pl.col("part") * float(step_s), (pl.col("part") + 1) * float(step_s)
    shared = pl.min_horizontal("end_s", ends) - pl.max_horizontal("start_s", begins)
    return cut.with_columns(shared.alias("shared_s")).filter(pl.col("shared_s") > 0)


def _subtitle(named: pl.DataFrame, timed: pl.DataFrame, lines: pl.DataFrame, step_s: int) -> str:
    said = [f"{len(timed):,} videos, in parts of {style.clock(step_s)}"]
    if (most := max(lines["videos"].to_list())) > 1:
        said.append(f"a line stands for up to {most} videos")
    if left_out := len(named) - len(timed):
        said.append(f"{left_out} with no timeline or picture left out")
    return "; ".join(said)


def _heat_map(alt: Any, cells: pl.DataFrame, wanted: list[str]) -> Any:
    longest_s = max(cells["end_s"].to_list())
    present = [name for name in _ALL if cells[name].sum() > 0]
    data = style.milliseconds(cells.with_columns(style.clocks(cells)))
    data = data.select("label", "videos", "time", "share", "start_ms", "end_ms", *present)
    shares = [alt.Tooltip(f"{name}:Q", format=".1%", title=name) for name in present]
    labels = cells["label"].unique(maintain_order=True).to_list()
    return (
        alt.Chart(data)
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "start_ms:T",
                axis=style.time_axis(longest_s, "time in the video"),
                scale=alt.Scale(type="utc", nice=False),
            ),
            x2="end_ms:T",
            y=alt.Y("label:N", sort=labels, title="video", axis=alt.Axis(labelLimit=330, maxExtent=400)),
            color=alt.Color(
                "share:Q",
                title=["share", "of time"],
                scale=_ramp(alt, is_good=set(wanted) <= set(SETTLED)),
                legend=alt.Legend(format="%"),
            ),
            tooltip=[alt.Tooltip("label:N", title="video"), alt.Tooltip("time:N"), *shares],
        )
        .properties(width=style.WIDTH - 200, height=alt.Step(14))
    )


def _ramp(alt: Any, *, is_good: bool) -> Any:
    """The colours of shares: what is well is pale blue, whether the outcomes are good ones or bad ones."""
    shares = [1 - share for share in reversed(_BAD_SHARES)] if is_good else list(_BAD_SHARES)
    colours = list(reversed(_GOOD_TO_BAD) if is_good else _GOOD_TO_BAD)
    return alt.Scale(domain=shares, range=colours, interpolate="rgb")
