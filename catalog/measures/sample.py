"""Windows that are described once more: drawn by a seed, with what describing them took the first time."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import polars as pl

from evicat.catalog.kit import Kit
from evicat.catalog.query import Catalog
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import UsageError

from .card import shown_producers

LEAST = 20
"""Windows of each describer that are drawn where it has so many, however small the share (chosen)."""
_TOOK = ("attempts", "prompt_tokens", "completion_tokens", "seconds")
_ENTRY = ("entry_id", "video", "asset_id", "start_s", "end_s", "text", "record")
SAMPLE_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("producer_id", "kind", "scale", "component"), pl.String()),
        **dict.fromkeys(("entry_id", "video", "asset_id"), pl.String()),
        **dict.fromkeys(("start_s", "end_s"), pl.Float64()),
        **dict.fromkeys(("text", "record"), pl.String()),
        **dict.fromkeys(("attempts", "prompt_tokens", "completion_tokens"), pl.Int64()),
        "seconds": pl.Float64(),
    }
)
"""One row per window: its entry, its producer, and what it took."""


@dataclass(frozen=True)
class Sample:
    """What is described again; schema :data:`SAMPLE_SCHEMA`."""

    windows: pl.DataFrame
    notes: tuple[str, ...] = ()

    def cost(self, runs: int = 1) -> str:
        """What ``runs`` descriptions of each window will take, if they take what the first one took."""
        count, took = len(self.windows), self.windows.select(_TOOK).sum().row(0, named=True)
        tokens = round(runs * (took["prompt_tokens"] + took["completion_tokens"]))
        spent = f", about {tokens:,} tokens" if tokens else ""
        videos = self.windows["asset_id"].n_unique()
        return (
            f"{runs * count} calls for {count} windows of {videos} {'video' if videos == 1 else 'videos'}"
            f"{spent}, {runs * took['seconds']:.1f} s of work"
        )


def parse_share(text: str) -> float:
    """``1%`` or ``0.01``.

    Raises:
        UsageError: it is no share above 0 and at most 1.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if rest or not 0 < share <= 1:
        raise UsageError(f"not a share of windows: {text!r}; write such as 1% or 0.01, at most 100%")
    return share


def draw(
    catalog: Catalog,
    kit: Kit,
    *,
    share: float,
    seed: int = 0,
    video: str | None = None,
    most: int | None = None,
    with_frames: bool = False,
) -> Sample:
    """Windows with an entry of each of the kit's describers that the view shows, at least :data:`LEAST`.

    Of a describer that reads its own past no two windows in a row are drawn: each is to read the stored
    narrative before it, as the first time.

    Args:
        most: So many windows at most, of all describers together.
        with_frames: Only of describers that are shown frames.

    Raises:
        UsageError: the recipe makes nothing that the view shows.
    """
    made = {each.producer_id: each for each in kit.sources if each.kind != "speech"}
    shown = shown_producers(catalog).filter(pl.col("kind").is_in(["local", "narrative", "objects"]))
    ours = shown.filter(pl.col("producer_id").is_in(list(made)))
    if ours.is_empty():
        raise UsageError(_makes_another(catalog, kit, shown))
    notes = tuple(
        f"{row['scale']} by {row['component']} {row['producer_id'][:8]} is not made by this recipe: left out"
        for row in shown.filter(~pl.col("producer_id").is_in(list(made))).to_dicts()
    )
    drawn = [SAMPLE_SCHEMA.to_frame()]
    for row in ours.to_dicts():
        describer = kit.describers[row["scale"]]
        if with_frames and "frames" not in describer.reads:
            continue
        windows = _windows(catalog, row["producer_id"], video)
        count = max(math.ceil(share * len(windows)), min(LEAST, len(windows)))
        chosen = _chosen(windows, count, f"{seed} {row['producer_id']}", apart="past" in describer.reads)
        facts = [pl.lit(row[name]).alias(name) for name in ("producer_id", "kind", "scale", "component")]
        drawn.append(chosen.with_columns(facts).match_to_schema(SAMPLE_SCHEMA))
    windows = pl.concat(drawn)
    if most is not None and len(windows) > most:
        notes += (
            f"{most} of {len(windows)} windows that were drawn are described: so many calls are allowed",
        )
        windows = windows.sample(most, seed=seed, shuffle=False)
    return Sample(windows.sort("asset_id", "scale", "start_s"), notes)


def _makes_another(catalog: Catalog, kit: Kit, shown: pl.DataFrame) -> str:
    def named(rows: list[tuple[str, str, str]]) -> str:
        return ", ".join(f"{scale} by {component} {made[:8]}" for scale, component, made in rows) or "nothing"

    ours = [(each.scale, each.component, each.producer_id) for each in kit.sources if each.kind != "speech"]
    theirs = list(shown.select("scale", "component", "producer_id").iter_rows())
    return (
        f"recipe {kit.recipe.name} (with this profile) makes {named(ours)}, and the view {catalog.view_name} "
        f"shows {named(theirs)}; name the recipe and profile that it was indexed with"
    )


def _windows(catalog: Catalog, producer_id: str, video: str | None) -> pl.DataFrame:
    """Windows of a producer that wrote an entry, in order, with what they took."""
    writing = [each.value for each in Outcome if each.writes_entries]
    took = catalog.coverage(video).filter(
        pl.col("producer_id") == producer_id, pl.col("outcome").is_in(writing)
    )
    entries = catalog.entries(video, producer=producer_id).select(_ENTRY)
    key = ["asset_id", "start_s", "end_s"]
    columns = [pl.col(name).cast(SAMPLE_SCHEMA[name]) for name in _TOOK]
    return entries.join(took.select(*key, *columns), on=key).sort("asset_id", "start_s")


def _chosen(windows: pl.DataFrame, count: int, seed: str, *, apart: bool) -> pl.DataFrame:
    order = list(range(len(windows)))
    random.Random(seed).shuffle(order)
    assets = windows["asset_id"].to_list()
    taken: set[int] = set()
    for at in order:
        beside = {near for near in (at - 1, at + 1) if near in taken and assets[near] == assets[at]}
        if len(taken) < count and not (apart and beside):
            taken.add(at)
    return windows[sorted(taken)]
