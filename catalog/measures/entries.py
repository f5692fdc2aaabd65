"""Measures of what stands in a catalog of one producer: outcomes, texts, records, times."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
from pydantic import ValidationError

from evicat.catalog.likeness import stored_cosines
from evicat.catalog.query import Catalog
from evicat.catalog.reading.serialize import MAX_CHARACTERS
from evicat.catalog.words import WORD
from evicat.schemas.model import Model
from evicat.schemas.records import LocalRecord, NarrativeRecord, ObjectsRecord, SpeechSegment

from .card import FOUND_WITHIN, NEAR, Found, share

SELF_CHECKS = 50
"""Descriptions whose words are looked for again, per producer."""
RECORDS: dict[str, type[Model]] = {
    "local": LocalRecord,
    "narrative": NarrativeRecord,
    "objects": ObjectsRecord,
    "speech": SpeechSegment,
    "sound": SpeechSegment,
}
"""What the record of an entry of each kind is."""


def outcomes(windows: pl.DataFrame) -> Found:
    for name, bad in (
        ("failed_share", ["failed", "refused"]),
        ("empty_share", ["empty", "no_frames"]),
        ("partial_share", ["partial"]),
    ):
        yield name, share(windows["outcome"].is_in(bad)), len(windows)


def texts(catalog: Catalog, own: pl.DataFrame, kind: str, seed: int) -> Found:
    count = len(own)
    yield "flagged_share", share(own["flags"].list.len() > 0), count
    yield "broken_share", 1 - share(fits(own)), count
    words = own["text"].str.count_matches(WORD)
    yield "words_median", float(words.median() or 0), count  # type: ignore[arg-type]  # of integers
    if kind in ("speech", "sound", "objects"):
        return
    yield "cut_share", share(own["text"].str.len_chars() > MAX_CHARACTERS), count
    pairs = _neighbours(own)
    same = pairs["text"].str.replace_all(r"\s+", " ") == pairs["next_text"].str.replace_all(r"\s+", " ")
    yield "repeated_share", share(same), len(pairs)
    yield from _near(catalog, pairs)
    yield from _found_again(catalog, own, seed)


def fits(own: pl.DataFrame) -> pl.Series:
    """Per entry, whether its record is one of its kind."""
    rows = own.select("kind", "record").iter_rows()
    return pl.Series("fits", [_fits(kind, record) for kind, record in rows], pl.Boolean)


def _fits(kind: str, record: str) -> bool:
    try:
        RECORDS[kind].model_validate_json(record)
    except ValidationError:
        return False
    return True


def _neighbours(own: pl.DataFrame) -> pl.DataFrame:
    """Each entry beside the next of its video."""
    ordered = own.sort("asset_id", "start_s", "entry_id")
    following = [
        pl.col(name).shift(-1).over("asset_id").alias(f"next_{name}") for name in ("entry_id", "text")
    ]
    return ordered.with_columns(following).drop_nulls("next_text")


def _near(catalog: Catalog, pairs: pl.DataFrame) -> Found:
    for vectors in searched_vectors(catalog, pairs):
        alike = stored_cosines(lists(pairs["entry_id"]), lists(pairs["next_entry_id"]), vectors, vectors)
        known = alike[~np.isnan(alike)]
        yield "near_share", float((known >= NEAR).mean()) if len(known) else 0.0, len(known)


def searched_vectors(catalog: Catalog, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Stored vectors of the producers of ``rows``, of the first table that the view searches."""
    producers = rows["producer_id"].unique().to_list()
    for table in catalog.embedder_tables()[:1]:
        found = [catalog.vectors(producer)[table] for producer in producers]
        return [pl.concat(found)] if found else []
    return []


def lists(ids: pl.Series) -> pl.Series:
    """Each id as the list of it alone."""
    return pl.Series([[each] for each in ids.to_list()], dtype=pl.List(pl.String))


def _found_again(catalog: Catalog, own: pl.DataFrame, seed: int) -> Found:
    """Half of the words of a description, chosen at random, as a query to its own video."""
    chooser = random.Random(seed)
    rows = own.sort("entry_id").select("entry_id", "asset_id", "kind", "scale", "text").to_dicts()
    sample = chooser.sample(rows, min(SELF_CHECKS, len(rows)))
    tried = found = 0
    for row in sample:
        words = pl.Series([row["text"]]).str.extract_all(WORD)[0].to_list()
        if len(words) < 4:  # half of fewer says nothing
            continue
        query = " ".join(chooser.sample(words, len(words) // 2))
        hits = catalog.search(
            query,
            mode="text",
            limit=FOUND_WITHIN,
            video=row["asset_id"],
            kind=row["kind"],
            scale=row["scale"],
        )
        tried += 1
        found += row["entry_id"] in hits["entry_id"].to_list()
    yield "found_share", found / max(tried, 1), tried


def times(catalog: Catalog, own: pl.DataFrame) -> Found:
    lengths = catalog.videos(missing=True).unique("asset_id").select("asset_id", "duration_s")
    rows = own.join(lengths, on="asset_id", how="left")
    late = pl.col("end_s") > pl.col("duration_s") + 1e-6
    shown = pl.col("frames").list.eval(pl.element().struct.field("time_s"))
    early = shown.list.min() < pl.col("start_s") - 1e-6
    beyond = shown.list.max() >= pl.col("end_s") + 1e-6
    outside = (late | early | beyond).fill_null(value=False)
    yield "outside", float(rows.select(outside.sum()).item()), len(rows)
