"""What the plots share: altair, colours, times as a clock shows them, texts that are no markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import polars as pl

from evicat.catalog.query import Catalog
from evicat.schemas.errors import MissingExtraError, UsageError

MOST_ROWS = 4_500
"""Rows that a chart is given at most: altair takes 5,000. What has more is put together, and says so."""
WIDTH = 880
"""Pixels of a plot's panel."""
OTHERS = "all others"

KIND_COLOURS = {
    "narrative": "#0072B2",
    "local": "#56B4E9",
    "objects": "#CC79A7",
    "speech": "#009E73",
    "sound": "#F0E442",
    "embedding": "#999999",
    "support": "#E69F00",
    "tag": "#D55E00",
}
"""Okabe and Ito's colours, which colour-blind people tell apart; in the order in which kinds are shown."""
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
PENDING = "pending"
"""A window without an outcome."""
OUTCOME_COLOURS = {
    "done": "#A8BECB",
    "partial": "#F0E442",
    "empty": "#ECECEC",
    "no_frames": "#CC79A7",
    "stale": "#0072B2",
    "refused": "#E69F00",
    "failed": "#D55E00",
    PENDING: "#555555",
}
_MARKUP = re.compile(r"<(?=[/!?a-zA-Z])")
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)


def load_altair() -> ModuleType:
    """Altair, which an optional package brings.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import altair
    except ModuleNotFoundError:
        raise MissingExtraError("altair", "notebook") from None
    return altair


def clock(seconds: float) -> str:
    """``75.5`` as ``1:15.5``, ``3600`` as ``1:00:00``."""
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    fraction = f".{rest % 10}" if rest % 10 else ""
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02d}" if hours else str(minutes)
    return f"{head}:{rest // 10:02d}{fraction}"


def clocks(frame: pl.DataFrame) -> pl.Series:
    """``start_s`` and ``end_s`` of each row, for tooltips."""
    spans = zip(frame["start_s"].to_list(), frame["end_s"].to_list(), strict=True)
    return pl.Series("time", [f"{clock(start)} \u2013 {clock(end)}" for start, end in spans], pl.String)


def time_axis(longest_s: float, title: str) -> Any:
    """A time axis for columns in milliseconds; its ticks follow the zoom and read as a clock does."""
    alt = load_altair()
    seconds = "utcFormat(datum.value, '%S') + (datum.value % 1000 ? utcFormat(datum.value, '.%L') : '')"
    if longest_s < 3600:
        form, label = "m:ss", f"floor(datum.value / 60000) + ':' + {seconds}"
    else:
        form = "h:mm:ss"
        label = f"floor(datum.value / 3600000) + ':' + utcFormat(datum.value, '%M:') + {seconds}"
    return alt.Axis(title=f"{title} ({form})", labelExpr=label, tickCount=12, labelFlush=True, grid=True)


def milliseconds(frame: pl.DataFrame) -> pl.DataFrame:
    """With ``start_ms`` and ``end_ms``, which :func:`time_axis` reads."""
    return frame.with_columns(
        (pl.col(f"{name}_s") * 1000).round().cast(pl.Int64).alias(f"{name}_ms") for name in ("start", "end")
    )


def step_for(longest: float, parts: int) -> int:
    """The shortest round number of seconds that divides ``longest`` into at most ``parts``."""
    fitting = (step for step in _STEPS_S if longest / step <= parts)
    return next(fitting, -(-int(longest) // (3600 * parts)) * 3600 or 3600)


def inert(text: str, most: int | None = None) -> str:
    """A text as a chart shows it: cut at ``most`` characters, and no markup in a page that holds the chart.

    Saved charts stand in a ``<script>``, which ``</script>`` in a caption would end: an invisible word joiner
    behind each ``<`` that markup could begin with keeps the text as it looks.
    """
    cut = text if most is None or len(text) <= most else text[: most - 1].rstrip() + "\u2026"
    return _MARKUP.sub("<\u2060", cut)


def short_names(names: Sequence[str], most: int = 40) -> list[str]:
    """Video names cut to their ends, where these still tell them apart."""
    short = [name if len(name) <= most else f"\u2026{name[1 - most :]}" for name in names]
    return [inert(name) for name in (short if len(set(short)) == len(set(names)) else names)]


def one_name_each(catalog: Catalog) -> pl.DataFrame:
    """``asset_id, video, duration_s`` of every asset that is present, by the first of its names."""
    videos = catalog.videos().select("asset_id", "video", "duration_s")
    return videos.sort("video").unique("asset_id", keep="first", maintain_order=True)


def producers(catalog: Catalog) -> pl.DataFrame:
    """``producer_id, kind, scale, component, label``; of embedders the scale that they embed."""
    rows = catalog.producers()
    scale_of = dict(zip(rows["producer_id"].to_list(), rows["scale"].to_list(), strict=True))
    labels = [
        f"{_what(row, scale_of)}\n{inert(row['component'])} {row['producer_id'][:8]}"
        for row in rows.iter_rows(named=True)
    ]
    return rows.select("producer_id", "kind", "scale", "component", pl.Series("label", labels, pl.String))


def _what(row: dict[str, Any], scale_of: dict[str, str]) -> str:
    if row["kind"] == "embedding" and row["reads"]:
        return f"vectors of {scale_of.get(row['reads'][0], '?')}"
    return str(row["scale"] or row["kind"])


def colours(alt: ModuleType, known: dict[str, str], seen: Sequence[str]) -> Any:
    """The scale of those names that are seen."""
    names = [name for name in known if name in set(seen)]
    return alt.Scale(domain=names, range=[known[name] for name in names])


def title(alt: ModuleType, text: str, subtitle: str = "") -> Any:
    more = {"subtitle": inert(subtitle)} if subtitle else {}
    return alt.TitleParams(inert(text), anchor="start", **more)


def need_rows(frame: pl.DataFrame, what: str) -> None:
    """Raises:
    UsageError: there is nothing to draw.
    """
    if frame.is_empty():
        raise UsageError(f"there is nothing to plot: {what}")
