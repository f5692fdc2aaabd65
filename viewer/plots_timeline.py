"""The timeline of one video: what each producer wrote when, and what became of its windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from evicat.catalog.query import Catalog
from evicat.catalog.reading.filters import Between, span_of
from evicat.schemas.errors import UsageError
from evicat.schemas.span import Span, to_us
from evicat.storage.tables import DERIVED
from evicat.viewer import plots_style as style
from evicat.viewer.plots_style import KIND_COLOURS, OUTCOME_COLOURS, PENDING

if TYPE_CHECKING:
    import altair

TEXT_SHOWN = 240
"""Characters of an entry's text in a tooltip."""
_TRACK = ["kind", "scale", "producer_id"]
_STEP = 36
_BAR = 17
_STRIP = 5


def timeline(catalog: Catalog, video: str, between: Between | None = None) -> altair.LayerChart:
    """Draw what was written about a video, one track per producer, over the outcomes of its windows.

    All producers that worked on the video stand in it, whichever the view shows. The thin strip below a track
    has its windows' outcomes; what has none is ``pending``. Shift and the wheel zoom, dragging moves.

    Args:
        video: A video name, the end of its path, or an asset id.
        between: Only this span; None: the whole timeline.

    Raises:
        UsageError: no such video, a span outside it, or nothing was written yet.
        MissingExtraError: altair is not installed.
    """
    alt = style.load_altair()
    asset_id, name, whole = _whole(catalog, video)
    shown = whole if between is None else span_of(between).clip(whole)
    if shown is None:
        raise UsageError(f"{name} ends at {style.clock(whole.end_s)}: nothing of it lies in {between}")
    tracks = _tracks(catalog, asset_id)
    style.need_rows(tracks, f"no producer has worked on {name} yet; `evicat status` says why")
    entries, joined_s = _fold(_entries(catalog, asset_id, tracks, shown), len(tracks), shown)
    outcomes = _outcomes(catalog.coverage(asset_id), tracks, whole, shown)
    y = alt.Y("label:N", sort=tracks["label"].to_list(), title=None, axis=_track_axis(alt))
    x = alt.X(
        "start_ms:T",
        axis=style.time_axis(whole.end_s, "time in the video"),
        scale=alt.Scale(type="utc", nice=False),
    )
    entries, outcomes = (_within(rows, shown) for rows in (entries, outcomes))
    chart: altair.LayerChart = (
        alt.layer(_bars(alt, entries, x, y), _strips(alt, outcomes, x, y))
        .resolve_scale(color="independent")
        .properties(
            width=style.WIDTH,
            height=alt.Step(_STEP),
            title=style.title(alt, f"Timeline of {name}", _subtitle(entries, joined_s)),
        )
        .add_params(alt.selection_interval(bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]"))
    )
    return chart


def _whole(catalog: Catalog, video: str) -> tuple[str, str, Span]:
    """The asset, its name, and its timeline."""
    named = style.one_name_each(catalog)
    found = named.filter(pl.col("asset_id").is_in(catalog.asset_ids(video)))
    if found.is_empty() or found["duration_s"][0] is None:
        raise UsageError(
            f"{video} has no timeline: its file is gone, or could not be read when it was indexed"
        )
    asset_id, name, duration_s = found.row(0)
    return asset_id, name, Span(0, to_us(duration_s))


def _tracks(catalog: Catalog, asset_id: str) -> pl.DataFrame:
    """``kind, scale, producer_id, label``, in the order in which they are drawn."""
    units = catalog.units().filter(pl.col("asset_id") == asset_id, ~pl.col("kind").is_in(DERIVED))
    sounds = catalog.entries(asset_id, kind="sound").select(_TRACK)
    order = pl.col("kind").replace_strict(
        {kind: number for number, kind in enumerate(KIND_COLOURS)}, default=len(KIND_COLOURS)
    )
    labels = style.producers(catalog).select("producer_id", "label")
    return (
        pl.concat([units.select(_TRACK), sounds])
        .unique()
        .join(labels, on="producer_id")
        .with_columns(
            pl.when(pl.col("kind") == "sound")
            .then(pl.col("label").str.replace("^speech", "sound"))
            .otherwise("label")
            .alias("label")
        )
        .sort(order, "scale", "label")
    )


def _entries(catalog: Catalog, asset_id: str, tracks: pl.DataFrame, shown: Span) -> pl.DataFrame:
    made_by = tracks["producer_id"].unique(maintain_order=True).to_list()
    found = [catalog.entries(asset_id, producer=each, between=shown) for each in made_by]
    wanted = ["entry_id", "start_s", "end_s", "text", "flags", *_TRACK]
    rows = pl.concat([frame.select(wanted) for frame in found]).join(
        tracks.select(*_TRACK, "label"), on=_TRACK, how="inner"
    )
    return rows.with_columns(pl.lit(1).alias("entries"), pl.col("flags").list.join(", ")).sort(
        "label", "start_s", "entry_id"
    )


def _fold(entries: pl.DataFrame, tracks: int, shown: Span) -> tuple[pl.DataFrame, float]:
    """Entries of busy tracks together, so that all tracks fit; and of how many seconds, 0 where none are."""
    if len(entries) <= style.MOST_ROWS:
        return entries, 0.0
    parts = style.MOST_ROWS // tracks
    length_s = style.step_for(shown.duration_us / 1e6, parts)
    is_busy = pl.len().over("label") > parts
    part = pl.when(is_busy).then((pl.col("start_s") / length_s).floor()).otherwise(pl.int_range(pl.len()))
    folded = (
        entries.with_columns(part.alias("part"), is_busy.alias("is_busy"))
        .group_by(*_TRACK, "label", "is_busy", "part", maintain_order=True)
        .agg(
            pl.col("entry_id").first(),
            pl.col("start_s").min(),
            pl.col("end_s").max(),
            pl.col("text").head(3).str.join(" \u2022 "),
            pl.col("flags").filter(pl.col("flags") != "").unique(maintain_order=True).str.join(", "),
            pl.col("entries").sum(),
        )
    )
    return folded, length_s


def _outcomes(coverage: pl.DataFrame, tracks: pl.DataFrame, whole: Span, shown: Span) -> pl.DataFrame:
    """Stretches of equal outcome per track, what is pending among them."""
    kept = [*_TRACK, "start_s", "end_s", "outcome", "error_class", "message"]
    windows = coverage.select(kept).join(tracks, on=_TRACK, how="inner").with_columns(windows=pl.lit(1))
    runs = pl.concat([windows, _pending(windows, tracks, whole)]).sort("label", "start_s")
    same = ["label", "outcome", "error_class", "message"]
    number = pl.struct(same).rle_id().alias("run")
    runs = (
        runs.with_columns(number)
        .group_by("run", *same, maintain_order=True)
        .agg(pl.col("start_s").min(), pl.col("end_s").max(), pl.col("windows").sum())
        .filter(pl.col("start_s") < shown.end_s, pl.col("end_s") > shown.start_s)
    )
    if len(runs) > style.MOST_ROWS:
        raise UsageError(
            f"outcomes change {len(runs)} times, and a chart has room for {style.MOST_ROWS}; "
            "take a part of the video, with between=(start, end)"
        )
    return runs


def _pending(windows: pl.DataFrame, tracks: pl.DataFrame, whole: Span) -> pl.DataFrame:
    """Rows for what no window covers. Sound has no windows of its own."""
    rows: list[dict[str, Any]] = []
    for track in tracks.filter(pl.col("kind") != "sound").iter_rows(named=True):
        own = windows.filter(pl.col("label") == track["label"]).sort("start_s")
        at_s = 0.0
        spans = [*own.select("start_s", "end_s").iter_rows(), (whole.end_s, whole.end_s)]
        for start_s, end_s in spans:
            if start_s > at_s:
                rows.append(track | {"start_s": at_s, "end_s": start_s, "outcome": PENDING})
            at_s = max(at_s, end_s)
    return pl.DataFrame(rows, schema=windows.schema).with_columns(
        pl.col("error_class", "message").fill_null(""), pl.col("windows").fill_null(0)
    )


def _within(rows: pl.DataFrame, shown: Span) -> pl.DataFrame:
    """Rows with their whole ``time`` as text, and what of it is ``shown`` in milliseconds.

    The strips span all that is shown, so that the axis needs no bounds, which would stop it from zooming.
    """
    in_ms = style.milliseconds(rows.with_columns(style.clocks(rows))).drop("start_s", "end_s")
    low, high = round(shown.start_s * 1000), round(shown.end_s * 1000)
    return in_ms.with_columns(pl.col("start_ms", "end_ms").clip(low, high))


def _subtitle(entries: pl.DataFrame, joined_s: float) -> str:
    count = int(entries["entries"].sum())
    folded = f"; in busy tracks a bar holds all entries of {joined_s:g} s" if joined_s else ""
    return f"{count:,} entries; below each track the outcomes of its windows{folded}"


def _track_axis(alt: Any) -> Any:
    return alt.Axis(labelExpr="split(datum.label, '\\n')", labelLimit=220, ticks=False, domain=False)


def _bars(alt: Any, entries: pl.DataFrame, x: Any, y: Any) -> Any:
    below = alt.Legend(orient="bottom", titleOrient="left")
    parity = (pl.int_range(pl.len()).over("label") % 2).replace_strict({0: 1.0, 1: 0.6})
    rows = entries.with_columns(
        parity.alias("shade"),
        pl.col("text").map_elements(lambda text: style.inert(text, TEXT_SHOWN), return_dtype=pl.String),
        pl.col("scale").alias("track"),
    )
    data = rows.drop("producer_id", "scale")
    tooltip = [("track", "track"), ("time", "time"), ("text", "text"), ("flags", "flags")]
    more = [alt.Tooltip("entries:Q", title="entries"), alt.Tooltip("entry_id:N", title="entry (first)")]
    return (
        alt.Chart(data)
        .mark_bar(size=_BAR, yOffset=-_STRIP, clip=True, tooltip=True)
        .encode(
            x=x,
            x2="end_ms:T",
            y=y,
            color=alt.Color(
                "kind:N",
                scale=style.colours(alt, KIND_COLOURS, entries["kind"].to_list()),
                title="kind",
                legend=below,
            ),
            opacity=alt.Opacity("shade:Q", scale=None),
            tooltip=[*(alt.Tooltip(f"{name}:N", title=shown) for name, shown in tooltip), *more],
        )
    )


def _strips(alt: Any, outcomes: pl.DataFrame, x: Any, y: Any) -> Any:
    rows = outcomes.with_columns(
        pl.col("message").map_elements(lambda text: style.inert(text, TEXT_SHOWN), return_dtype=pl.String),
    )
    names = ["outcome", "time", "windows", "error_class", "message"]
    return (
        alt.Chart(rows.drop("run"))
        .mark_bar(size=_STRIP, yOffset=_BAR // 2 + 1, clip=True)
        .encode(
            x=x,
            x2="end_ms:T",
            y=y,
            color=alt.Color(
                "outcome:N",
                scale=style.colours(alt, OUTCOME_COLOURS, outcomes["outcome"].to_list()),
                title="outcome of windows",
                legend=alt.Legend(orient="bottom", titleOrient="left"),
            ),
            tooltip=[alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in names],
        )
    )
