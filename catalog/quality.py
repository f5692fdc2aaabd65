"""How good a catalog looks from within: measures per producer, without a model and without labels.

They find what is broken (repeats, failures, times that cannot be, narratives that nothing bears out), not
what is wrong: a fluent description of another video would pass.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from evicat.catalog.likeness import stored_cosines
from evicat.catalog.query import Catalog
from evicat.catalog.reading.serialize import MAX_CHARACTERS
from evicat.catalog.words import WORD
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.errors import UnknownNameError, UsageError

NEAR = 0.98
"""Cosine from which on two neighbouring descriptions are near-identical (chosen)."""
MOST_WORDS = 300
"""Words a minute beyond which speech is faster than people are (chosen)."""
FOUND_WITHIN = 10
"""A description counts as found among so many hits."""
SELF_CHECKS = 50
"""Descriptions whose words are looked for again, per producer."""


@dataclass(frozen=True)
class Measure:
    """What a number means, and which way is better."""

    meaning: str
    better: Literal["low", "high"]


MEASURES: dict[str, Measure] = {
    "failed_share": Measure("windows that failed or were refused, of those with an outcome", "low"),
    "empty_share": Measure("windows without anything to write", "low"),
    "partial_share": Measure("windows that only a part of was seen for", "low"),
    "flagged_share": Measure("entries with any flag", "low"),
    "repeated_share": Measure("descriptions that say what the one before them says, word for word", "low"),
    "near_share": Measure(f"neighbours with a cosine of at least {NEAR}, of those with vectors", "low"),
    "outside": Measure("entries, or frames of them, outside their video or span", "low"),
    "words_median": Measure("words of an entry, the median", "high"),
    "cut_share": Measure(f"texts over {MAX_CHARACTERS} characters, which readers get cut", "low"),
    "found_share": Measure(
        f"descriptions found among {FOUND_WITHIN} hits of their video by half of their words", "high"
    ),
    "crammed_share": Measure(f"speech with over {MOST_WORDS} words a minute", "low"),
    "doubted_share": Measure("seconds of speech that is doubted, of all", "low"),
    "spoken_share": Measure("seconds with speech, of the videos", "high"),
    "bare_share": Measure("sentences that no entry bears out", "low"),
    "agreement": Measure("mean cosine of a narrative and the local entries of its span", "high"),
    "renamed_share": Measure("members of the cast who were called otherwise before", "low"),
}
"""Every measure. A share is from 0 to 1."""

CARD_SCHEMA = pl.Schema(
    {
        "producer_id": pl.String(),
        "kind": pl.String(),
        "scale": pl.String(),
        "component": pl.String(),
        "measure": pl.String(),
        "value": pl.Float64(),
        "of": pl.Int64(),
    }
)
"""One row per producer and measure; ``of``: of how many windows, entries, seconds or sentences."""

Found = Iterator[tuple[str, float, int]]
"""Name of a measure, its value, and of how many."""


def quality(catalog: Catalog, video: str | None = None, *, seed: int = 0) -> pl.DataFrame:
    """The score card of every producer that the view shows, schema :data:`CARD_SCHEMA`.

    ``seed`` chooses the descriptions that are looked for again. A measure for which there is nothing to be
    measured is left out.

    Raises:
        UsageError: no such video.
    """
    shown = {made for _, _, made in catalog.active().iter_rows()}
    producers = catalog.producers().filter(pl.col("producer_id").is_in(shown))
    entries = catalog.entries(video)
    coverage = catalog.coverage(video)
    rows = []
    for producer in producers.sort("kind", "scale").to_dicts():
        own = entries.filter(pl.col("producer_id") == producer["producer_id"])
        windows = coverage.filter(pl.col("producer_id") == producer["producer_id"])
        measured = [
            *_outcomes(windows),
            *_texts(catalog, own, producer["kind"], seed),
            *_times(catalog, own),
            *_of_kind(catalog, own, producer["kind"], producer["producer_id"]),
        ]
        facts = {name: producer[name] for name in ("producer_id", "kind", "scale", "component")}
        rows += [
            facts | {"measure": name, "value": float(value), "of": int(of)}
            for name, value, of in measured
            if of > 0
        ]
    return pl.DataFrame(rows, schema=CARD_SCHEMA)


def _share(test: pl.Series) -> float:
    """Of how many it holds; 0 where there are none."""
    return float(test.sum()) / max(len(test), 1)


def _outcomes(windows: pl.DataFrame) -> Found:
    for name, outcomes in (
        ("failed_share", ["failed", "refused"]),
        ("empty_share", ["empty", "no_frames"]),
        ("partial_share", ["partial"]),
    ):
        yield name, _share(windows["outcome"].is_in(outcomes)), len(windows)


def _texts(catalog: Catalog, own: pl.DataFrame, kind: str, seed: int) -> Found:
    count = len(own)
    yield "flagged_share", _share(own["flags"].list.len() > 0), count
    words = own["text"].str.count_matches(WORD)
    yield "words_median", float(words.median() or 0), count  # type: ignore[arg-type]  # of integers
    if kind in ("speech", "sound", "objects"):
        return
    yield "cut_share", _share(own["text"].str.len_chars() > MAX_CHARACTERS), count
    pairs = _neighbours(own)
    same = pairs["text"].str.replace_all(r"\s+", " ") == pairs["next_text"].str.replace_all(r"\s+", " ")
    yield "repeated_share", _share(same), len(pairs)
    yield from _near(catalog, pairs)
    yield from _found_again(catalog, own, seed)


def _neighbours(own: pl.DataFrame) -> pl.DataFrame:
    """Each entry beside the next of its video."""
    ordered = own.sort("asset_id", "start_s", "entry_id")
    following = [
        pl.col(name).shift(-1).over("asset_id").alias(f"next_{name}") for name in ("entry_id", "text")
    ]
    return ordered.with_columns(following).drop_nulls("next_text")


def _near(catalog: Catalog, pairs: pl.DataFrame) -> Found:
    for vectors in _vectors(catalog, pairs):
        alike = stored_cosines(_lists(pairs["entry_id"]), _lists(pairs["next_entry_id"]), vectors, vectors)
        known = alike[~np.isnan(alike)]
        yield "near_share", float((known >= NEAR).mean()) if len(known) else 0.0, len(known)


def _vectors(catalog: Catalog, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Stored vectors of the producers of ``rows``, of the first table that the view searches."""
    producers = rows["producer_id"].unique().to_list()
    for table in catalog.embedder_tables()[:1]:
        found = [catalog.vectors(producer)[table] for producer in producers]
        return [pl.concat(found)] if found else []
    return []


def _lists(ids: pl.Series) -> pl.Series:
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


def _times(catalog: Catalog, own: pl.DataFrame) -> Found:
    lengths = catalog.videos(missing=True).unique("asset_id").select("asset_id", "duration_s")
    rows = own.join(lengths, on="asset_id", how="left")
    late = pl.col("end_s") > pl.col("duration_s") + 1e-6
    times = pl.col("frames").list.eval(pl.element().struct.field("time_s"))
    early = times.list.min() < pl.col("start_s") - 1e-6
    beyond = times.list.max() >= pl.col("end_s") + 1e-6
    outside = (late | early | beyond).fill_null(value=False)
    yield "outside", float(rows.select(outside.sum()).item()), len(rows)


def _of_kind(catalog: Catalog, own: pl.DataFrame, kind: str, producer_id: str) -> Found:
    if kind == "speech":
        yield from _speech(catalog, own)
    if kind == "narrative":
        yield from _bare(catalog, own)
        yield from _agreement(catalog, own)
        yield from _renamed(catalog, own, producer_id)


def _speech(catalog: Catalog, own: pl.DataFrame) -> Found:
    spoken = own.filter(pl.col("kind") == "speech")
    seconds = spoken["end_s"] - spoken["start_s"]
    rates = spoken["text"].str.count_matches(WORD) / (seconds / 60)
    yield "crammed_share", _share(rates > MOST_WORDS), len(spoken)
    doubted = spoken["flags"].list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    total = float(seconds.sum())
    yield "doubted_share", float(seconds.filter(doubted).sum()) / max(total, 1e-9), round(total)
    units = catalog.units().filter(pl.col("kind") == "speech")["asset_id"].unique()
    lengths = catalog.videos().unique("asset_id").filter(pl.col("asset_id").is_in(units.to_list()))
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
    told, seen = _vectors(catalog, own), _vectors(catalog, local)
    if not told or not seen or grouped.is_empty():
        return
    alike = stored_cosines(_lists(grouped["entry_id"]), grouped["local_id"], told[0], seen[0])
    known = alike[~np.isnan(alike)]
    yield "agreement", float(known.mean()) if len(known) else 0.0, len(known)


def _renamed(catalog: Catalog, own: pl.DataFrame, producer_id: str) -> Found:
    members = renamed = 0
    for asset_id in own["asset_id"].unique().sort():
        cast = catalog.cast(asset_id, producer=producer_id)
        members += len(cast)
        renamed += int((cast["formerly"].list.len() > 0).sum())
    yield "renamed_share", renamed / max(members, 1), members


@dataclass(frozen=True)
class Bound:
    """What a measure must keep, of every producer that has it."""

    measure: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Bound:
        """``failed_share=0.02``: at most so much where low is better, at least where high is.

        Raises:
            UnknownNameError: there is no such measure.
            UsageError: no bound at all.
        """
        name, equals, limit = text.partition("=")
        if name not in MEASURES:
            raise UnknownNameError("measure", name, list(MEASURES))
        try:
            if not equals:
                raise ValueError(text)
            return cls(name, float(limit))
        except ValueError:
            raise UsageError(
                f"not a bound: {text!r}; write MEASURE=NUMBER, such as failed_share=0.02"
            ) from None

    @property
    def sign(self) -> str:
        return "<=" if MEASURES[self.measure].better == "low" else ">="

    def broken(self, card: pl.DataFrame) -> pl.DataFrame:
        """The rows of a score card that do not keep it."""
        own = card.filter(pl.col("measure") == self.measure)
        value = pl.col("value")
        return own.filter(value > self.limit if self.sign == "<=" else value < self.limit)
