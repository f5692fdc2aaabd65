"""How long windows took, by producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from evicat.catalog.query import Catalog
from evicat.viewer import plots_style as style
from evicat.viewer.plots_style import KIND_COLOURS

if TYPE_CHECKING:
    import altair

QUANTILES = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
SHORTEST_S = 1e-4
"""Windows that took less are drawn here: a logarithm has no zero."""


def latency(catalog: Catalog) -> altair.LayerChart:
    """Draw how many seconds a window took, for each producer: the middle half as a bar, 90 % as a line.

    Of all producers, also those that the view does not show, and of all windows that something was written
    of; of embedders and speech a window is a chunk or block of several minutes.

    Raises:
        UsageError: nothing was written yet.
        MissingExtraError: altair is not installed.
    """
    alt = style.load_altair()
    rows = _quantiles(catalog)
    style.need_rows(rows, "nothing was written yet")
    scale = alt.Scale(type="log", nice=True)
    spans = [("p5", "p95", 2), ("p25", "p75", 14)]
    hint = [alt.Tooltip("windows:Q", format=","), alt.Tooltip("total:N", title="all of them")]
    hint += [alt.Tooltip(f"{name}:Q", format=".3~g", title=f"{name} (s)") for name in QUANTILES]
    base = alt.Chart(rows).encode(
        y=alt.Y(
            "label:N",
            sort=rows["label"].to_list(),
            title=None,
            axis=alt.Axis(labelExpr="split(datum.label, '\\n')", labelLimit=260, ticks=False),
        ),
        color=alt.Color("kind:N", scale=style.colours(alt, KIND_COLOURS, rows["kind"].to_list())),
        tooltip=["kind:N", *hint],
    )
    bars = [
        base.mark_bar(size=size).encode(
            x=alt.X(f"{low}:Q", scale=scale, title="seconds per window (logarithmic)"), x2=f"{high}:Q"
        )
        for low, high, size in spans
    ]
    median = base.mark_tick(thickness=3, size=22, opacity=1).encode(x="p50:Q", color=alt.value("black"))
    chart: altair.LayerChart = alt.layer(*bars, median).properties(
        width=style.WIDTH - 200,
        height=alt.Step(36),
        title=style.title(
            alt, "Seconds per window", "black: median; bar: the middle half; line: from 5 % to 95 %"
        ),
    )
    return chart


def _quantiles(catalog: Catalog) -> pl.DataFrame:
    """A row per producer: ``kind, label, windows, total`` and quantiles of seconds."""
    written = catalog.scan("coverage").filter(pl.col("outcome").is_in(["done", "partial"]))
    taken = written.select("producer_id", "seconds").collect()
    of_each = taken.group_by("producer_id").agg(
        pl.len().alias("windows"),
        pl.sum("seconds").alias("total_s"),
        *(
            pl.col("seconds").quantile(at, "linear").clip(SHORTEST_S).alias(name)
            for name, at in QUANTILES.items()
        ),
    )
    order = {kind: number for number, kind in enumerate(KIND_COLOURS)}
    rows = style.producers(catalog).join(of_each, on="producer_id")
    total = pl.col("total_s").map_elements(style.clock, return_dtype=pl.String).alias("total")
    place = pl.col("kind").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    return rows.with_columns(total).sort(place, "label").drop("producer_id", "scale", "component", "total_s")
