"""Plots of what was written: how long entries are, and which of them mean alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from evicat.catalog.query import Catalog
from evicat.catalog.reading import arguments
from evicat.catalog.words import words
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.viewer import plots_style as style
from evicat.viewer.plots_style import KIND_COLOURS, OTHERS, SERIES

if TYPE_CHECKING:
    import altair

TEXT_SHOWN = 160
"""Characters of an entry's text in a tooltip."""
WHOLE = "datum.value % 1 ? '' : datum.label"
"""Labels of an axis that counts."""
BARS = 40
"""Bars of a histogram, at most."""


def lengths(catalog: Catalog, of: Literal["words", "seconds"] = "words") -> altair.FacetChart:
    """Draw how many words, or seconds, the entries of each kind have, a histogram for each.

    Raises:
        UnknownNameError: ``of`` is neither.
        UsageError: the view shows no entries.
        MissingExtraError: altair is not installed.
    """
    alt = style.load_altair()
    if of not in ("words", "seconds"):
        raise UnknownNameError("length", of, ["words", "seconds"])
    rows = _lengths(catalog, of)
    style.need_rows(rows, "the view shows no entries")
    bars = pl.concat([_histogram(part, kind, of) for (kind,), part in sorted(rows.group_by("kind"))])
    kinds = [kind for kind in KIND_COLOURS if kind in set(rows["kind"].to_list())]
    label = {kind: _label(rows.filter(pl.col("kind") == kind)["length"], kind, of) for kind in kinds}
    bars = bars.with_columns(pl.col("kind").replace_strict(label).alias("label"))
    chart = (
        alt.Chart(bars)
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("from:Q", title=f"{of} of an entry", scale=alt.Scale(zero=True)),
            x2="to:Q",
            y=alt.Y("entries:Q", title="entries", axis=alt.Axis(format="~s", labelExpr=WHOLE)),
            y2=alt.datum(0),
            color=alt.Color("kind:N", scale=style.colours(alt, KIND_COLOURS, kinds)),
            tooltip=["kind:N", "from:Q", "to:Q", "entries:Q"],
        )
        .properties(width=style.WIDTH - 300, height=90)
    )
    header = alt.Header(labelAnchor="start", labelFontWeight="bold", labelOrient="top")
    by_kind = alt.Facet("label:N", title=None, sort=list(label.values()), header=header)
    facets: altair.FacetChart = (
        chart.facet(by_kind, columns=1)
        .resolve_scale(x="independent", y="independent")
        .properties(title=style.title(alt, f"Length of entries in {of}"))
    )
    return facets


def _lengths(catalog: Catalog, of: str) -> pl.DataFrame:
    """``kind, length`` of every entry."""
    if of == "seconds":
        lazy = catalog.scan().select("kind", (pl.col("end_s") - pl.col("start_s")).alias("length"))
        return lazy.collect()
    counts = pl.col("text").map_batches(lambda texts: words(texts).list.len(), return_dtype=pl.UInt32)
    return catalog.scan().select("kind", counts.cast(pl.Float64).alias("length")).collect()


def _histogram(part: pl.DataFrame, kind: Any, of: str) -> pl.DataFrame:
    """``kind, from, to, entries``: bars of one round width."""
    width = _round_up(max(part["length"].to_list()) / BARS)
    width = max(1.0, width) if of == "words" else width
    number = (pl.col("length") / width).floor()
    counted = part.group_by(number.alias("bar")).agg(pl.len().alias("entries")).sort("bar")
    return counted.select(
        pl.lit(kind).alias("kind"),
        (pl.col("bar") * width).round(6).alias("from"),
        ((pl.col("bar") + 1) * width).round(6).alias("to"),
        "entries",
    )


def _round_up(width: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``width``."""
    if width <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9)))


def _label(values: pl.Series, kind: str, of: str) -> str:
    return f"{kind}: {len(values):,} entries, median {np.median(values.to_numpy()):.3g} {of}"


def embedding_map(
    catalog: Catalog, color: Literal["video", "kind"] = "video", *, sample: int = 2000, seed: int = 0
) -> altair.Chart:
    """Draw the entries' vectors in the plane of their two main directions: what lies near means alike.

    The projection (principal components) and the sample follow from the catalog and ``seed`` alone. Two
    dimensions hold a part of what the vectors say: the axes tell how much.

    Args:
        sample: So many entries at most, drawn at random.

    Raises:
        UnknownNameError: ``color`` is neither ``video`` nor ``kind``.
        UsageError: a sample that does not fit, or fewer than three entries with vectors.
        MissingExtraError: altair is not installed.
    """
    alt = style.load_altair()
    if color not in ("video", "kind"):
        raise UnknownNameError("color", color, ["video", "kind"])
    sample = arguments.whole("sample", sample, 3, style.MOST_ROWS)
    entries, vectors, total = _sampled(catalog, sample, seed)
    points, parts = _plane(vectors)
    rows = _described(catalog, pl.DataFrame([entries, *points]))
    rows, scale = _coloured(alt, rows, color)
    axes = [f"component {number + 1} ({part:.0%} of variance)" for number, part in enumerate(parts)]
    said = f"{total:,} entries" if total == len(rows) else f"{len(rows):,} of {total:,} entries, seed {seed}"
    chart: altair.Chart = (
        alt.Chart(rows)
        .mark_circle(size=45, opacity=0.8, stroke="#333333", strokeWidth=0.3)
        .encode(
            x=alt.X("x:Q", title=axes[0], scale=alt.Scale(zero=False, nice=True)),
            y=alt.Y("y:Q", title=axes[1], scale=alt.Scale(zero=False, nice=True)),
            color=alt.Color("series:N", title=color, scale=scale, legend=alt.Legend(labelLimit=260)),
            tooltip=["video:N", "kind:N", "time:N", "text:N", alt.Tooltip("entry_id:N", title="entry")],
        )
        .properties(
            width=620, height=480, title=style.title(alt, "Entries by meaning", f"{said}; near means alike")
        )
        .interactive()
    )
    return chart


def _sampled(catalog: Catalog, sample: int, seed: int) -> tuple[pl.Series, npt.NDArray[np.float64], int]:
    """Ids and vectors of a sample (of a long text the mean of its parts), and of how many it is one."""
    tables = catalog.embedder_tables()
    if not tables:
        raise UsageError("this view has no vectors to map; index with a recipe that has an [embedder]")
    vectors = catalog.scan(tables[0])
    ids = vectors.select("entry_id").collect()["entry_id"].unique().sort()
    if len(ids) < 3:
        raise UsageError(f"a map needs at least 3 entries with vectors, and the view shows {len(ids)}")
    picked = np.random.default_rng(seed).permutation(len(ids))[:sample]
    wanted = ids.gather(np.sort(picked))
    rows = vectors.filter(pl.col("entry_id").is_in(wanted.implode())).select("entry_id", "part", "vector")
    parts = rows.collect().drop_nulls("vector").sort("entry_id", "part")
    entries = parts["entry_id"].unique(maintain_order=True)
    starts = parts["entry_id"].search_sorted(entries, side="left").to_numpy()
    sums = np.add.reduceat(parts["vector"].to_numpy().astype(np.float64), starts)
    counts = np.diff([*starts, len(parts)])
    return entries, sums / counts[:, None], len(ids)


def _plane(matrix: npt.NDArray[np.float64]) -> tuple[list[pl.Series], list[float]]:
    """``x`` and ``y`` of rows, and the share of variance of each; an axis's largest weight is positive."""
    centred = matrix - matrix.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, [-1, -2]]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    points = (centred @ axes * signs).round(6)
    shares = variances[[-1, -2]] / (variances.sum() or 1.0)
    return [pl.Series(name, points[:, at]) for at, name in enumerate("xy")], shares.tolist()


def _described(catalog: Catalog, rows: pl.DataFrame) -> pl.DataFrame:
    """With ``video, kind, time, text``."""
    wanted = catalog.scan().filter(pl.col("entry_id").is_in(rows["entry_id"].implode()))
    names = style.one_name_each(catalog).select("asset_id", "video")
    found = wanted.select("entry_id", "asset_id", "kind", "start_s", "end_s", "text").collect()
    full = rows.join(found, on="entry_id", how="inner").join(names, on="asset_id", how="inner")
    return full.with_columns(
        style.clocks(full),
        pl.Series("video", style.short_names(full["video"].to_list()), pl.String),
        pl.col("text").map_elements(lambda text: style.inert(text, TEXT_SHOWN), return_dtype=pl.String),
    ).drop("asset_id", "start_s", "end_s")


def _coloured(alt: Any, rows: pl.DataFrame, color: str) -> tuple[pl.DataFrame, Any]:
    """With ``series``; of many videos the most frequent have colours of their own."""
    if color == "kind":
        kinds = rows["kind"].to_list()
        return rows.with_columns(pl.col("kind").alias("series")), style.colours(alt, KIND_COLOURS, kinds)
    counts = rows["video"].value_counts().sort(["count", "video"], descending=[True, False])
    first = counts["video"].head(len(SERIES)).to_list()
    known = dict(zip(first, SERIES, strict=False)) | {OTHERS: "#BBBBBB"}
    series = pl.when(pl.col("video").is_in(first)).then("video").otherwise(pl.lit(OTHERS)).alias("series")
    coloured = rows.with_columns(series)
    return coloured, style.colours(alt, known, coloured["series"].to_list())
