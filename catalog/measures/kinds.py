"""Measures that only speech has, or only narratives."""

from __future__ import annotations

import numpy as np
import polars as pl

from evicat.catalog.cast import cast_frame
from evicat.catalog.likeness import stored_cosines
from evicat.catalog.query import Catalog
from evicat.catalog.words import WORD
from evicat.schemas.entry import SPEECH_WITHHELD

from .card import LEAST_WORDS, MOST_WORDS, Found, share
from .entries import fits, lists, searched_vectors

_CAST_OF = ["entry_id", "scale", "producer_id", "start_s", "end_s", "record"]


def of_kind(catalog: Catalog, own: pl.DataFrame, kind: str, assets: pl.Series) -> Found:
    """``assets``: those in which the producer has looked for entries, whether it found some or not."""
    if kind == "speech":
        yield from _speech(catalog, own, assets)
    if kind == "narrative":
        yield from _bare(catalog, own)
        yield from _agreement(catalog, own)
        yield from _renamed(own)


def _speech(catalog: Catalog, own: pl.DataFrame, assets: pl.Series) -> Found:
    spoken = own.filter(pl.col("kind") == "speech")
    seconds = spoken["end_s"] - spoken["start_s"]
    words = spoken["text"].str.count_matches(WORD)
    rates = (words / (seconds / 60)).filter(words >= LEAST_WORDS)
    yield "crammed_share", share(rates > MOST_WORDS), len(rates)
    doubted = spoken["flags"].list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    total = float(seconds.sum())
    yield "doubted_share", float(seconds.filter(doubted).sum()) / max(total, 1e-9), round(total)
    lengths = catalog.videos().unique("asset_id").filter(pl.col("asset_id").is_in(assets.to_list()))
    whole = float(lengths["duration_s"].sum() or 0.0)
    yield (
        "spoken_share",
        min(1.0, (total - float(seconds.filter(doubted).sum())) / max(whole, 1e-9)),
        round(whole),
    )


def _bare(catalog: Catalog, own: pl.DataFrame) -> Found:
    sentences = bare = 0
    for asset_id in own["asset_id"].unique().sort():
        supports = catalog.supports(asset_id)
        sentences += len(supports)
        bare += int((supports["rests_on"].list.len() == 0).sum())
    yield "bare_share", bare / max(sentences, 1), sentences


def _agreement(catalog: Catalog, own: pl.DataFrame) -> Found:
    """A narrative beside the mean direction of the local entries that lie mostly in its span."""
    local = catalog.entries(kind="local")
    pairs = own.select("entry_id", "asset_id", "start_s", "end_s").join(
        local.select(
            "asset_id", pl.col("entry_id").alias("local_id"), local_start="start_s", local_end="end_s"
        ),
        on="asset_id",
    )
    middle = (pl.col("local_start") + pl.col("local_end")) / 2
    inside = pairs.filter(middle >= pl.col("start_s"), middle < pl.col("end_s"))
    grouped = inside.group_by("entry_id", maintain_order=True).agg("local_id")
    told, seen = searched_vectors(catalog, own), searched_vectors(catalog, local)
    if not told or not seen or grouped.is_empty():
        return
    alike = stored_cosines(lists(grouped["entry_id"]), grouped["local_id"], told[0], seen[0])
    known = alike[~np.isnan(alike)]
    yield "agreement", float(known.mean()) if len(known) else 0.0, len(known)


def _renamed(own: pl.DataFrame) -> Found:
    """By records that can be read; ``broken_share`` counts the others."""
    readable = own.filter(fits(own))
    parts = readable.partition_by("asset_id") if len(readable) else []
    casts = [cast_frame(part.select(_CAST_OF)) for part in parts]
    members = sum(map(len, casts))
    renamed = sum(int((cast["formerly"].list.len() > 0).sum()) for cast in casts)
    yield "renamed_share", renamed / max(members, 1), members
