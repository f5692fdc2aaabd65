"""The clock check: gold texts, whose times people gave, must fit the catalog best where it stands.

The catalog is moved along the timeline, second by second, and each gold text is compared with the entries
that then overlap its span. A catalog whose times are right fits best unmoved; one that is 8 s late fits best
when it is moved by -8 s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evicat.catalog.embedders.base import Embedder
from evicat.catalog.likeness import stored_cosines
from evicat.catalog.query import Catalog
from evicat.catalog.words import words
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.errors import UnknownNameError, UsageError

from .card import CARD_SCHEMA, Looked, card_of, shown_producers
from .entries import lists
from .gold import Gold

KINDS = ("local", "narrative", "speech")
"""Kinds of entries whose clock is checked."""
FARTHEST_S = 30
"""The catalog is moved by so much, either way."""
FAR_S = 10
"""Shifts so far from the best one tell how well texts fit that have nothing to do with each other."""
TOLD_S = 5
"""So far from the best shift others may fit as well, for all that gold texts tell (chosen)."""
ROUNDED_S = 1.0
"""Gold texts may end so much after their video: times are rounded (chosen)."""
LEAST = 3
"""Gold texts that a verdict needs."""
SURE = 3.0
"""Standard errors by which one shift must fit better than another (chosen)."""
ALIKE = 0.02
"""Shifts fit alike within this share of the height of the curve: windows are longer than a second."""
CURVE_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("producer_id", "kind", "scale", "component"), pl.String()),
        "shift_s": pl.Int64(),
        "similarity": pl.Float64(),
        "of": pl.Int64(),
        "best": pl.Boolean(),
    }
)
"""How well gold texts fit, by what the catalog is moved by; ``best``: where they do best."""
SHIFTS = np.arange(-FARTHEST_S, FARTHEST_S + 1)
Fits = npt.NDArray[np.float64]
"""``(gold texts, shifts)``: how well each fits; NaN where no entry overlaps it."""


@dataclass(frozen=True)
class Clock(Looked):
    """Rows of the card, and the curve behind them: schema :data:`CURVE_SCHEMA`."""

    curve: pl.DataFrame = field(default_factory=CURVE_SCHEMA.to_frame)


def clock_check(catalog: Catalog, gold: Sequence[Gold], video: str | None = None) -> Clock:
    """``clock_shift_s`` of each producer of local entries, narratives and speech that gold texts fit at all.

    Texts are compared by stored vectors where the view searches by them (the gold texts are embedded), else
    by words: the share of the gold text's words that an entry has, rare words counting more.

    Raises:
        UsageError: no gold text is about a video of this catalog, or the embedder's weights are not here.
    """
    spans, notes = _placed(catalog, gold, video)
    embedders = catalog.embedders()
    cards, curves = [CARD_SCHEMA.to_frame()], [CURVE_SCHEMA.to_frame()]
    for producer in shown_producers(catalog).filter(pl.col("kind").is_in(KINDS)).to_dicts():
        fits = _fits(_compared(catalog, spans, producer["producer_id"], embedders), len(spans))
        shift = best_shift(fits)
        curves.append(_curve(producer, fits, shift))
        if shift is None:
            told = f"{producer['scale']} by {producer['component']} {producer['producer_id'][:8]}"
            notes.append(
                f"gold texts do not tell when {told} fits best to within {TOLD_S} s: its clock is unchecked"
            )
        else:
            cards.append(card_of(producer, [("clock_shift_s", abs(shift), _heard(fits))]))
    return Clock(pl.concat(cards), tuple(notes), curve=pl.concat(curves))


def _placed(catalog: Catalog, gold: Sequence[Gold], video: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Gold texts by asset: ``gold, asset_id, gold_start, gold_end, gold_text``; and what is left out."""
    only = set(catalog.asset_ids(video)) if video else None
    rows: list[tuple[int, str, float, float, str]] = []
    unknown = set()
    for each in gold:
        try:
            assets = catalog.asset_ids(each.video)
        except UnknownNameError:
            unknown.add(each.video)
            continue
        wanted = [asset for asset in assets if only is None or asset in only]
        rows += [(len(rows) + at, a, each.start_s, each.end_s, each.text) for at, a in enumerate(wanted)]
    if not rows:
        raise UsageError(
            f"none of {len(gold)} gold texts is about {video or 'a video of this catalog'}; the first is "
            f"about {gold[0].video!r}, and `evicat status` lists the videos"
        )
    notes = [*_unknown(unknown), *_behind_the_end(catalog, rows)]
    names = ("gold", "asset_id", "gold_start", "gold_end", "gold_text")
    kinds = (pl.Int64, pl.String, pl.Float64, pl.Float64, pl.String)
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row"), notes


def _unknown(videos: Collection[str]) -> list[str]:
    told = "1 video of the gold texts is" if len(videos) == 1 else f"{len(videos)} videos of gold texts are"
    return [f"{told} not in this catalog; the first is {min(videos)!r}"] if videos else []


def _behind_the_end(catalog: Catalog, rows: Sequence[tuple[int, str, float, float, str]]) -> list[str]:
    """Gold texts of times that their video does not have."""
    lengths = dict(catalog.videos().select("asset_id", "duration_s").iter_rows())
    behind = [row for row in rows if row[3] > (lengths.get(row[1]) or math.inf) + ROUNDED_S]
    if not behind:
        return []
    _, asset_id, start_s, end_s, _ = behind[0]
    told = "1 gold text ends" if len(behind) == 1 else f"{len(behind)} gold texts end"
    return [
        f"{told} after the end of the video; the first is at {start_s:g} to {end_s:g} s of a video of "
        f"{lengths[asset_id]:g} s (asset {asset_id}). Are these the same file and seconds?"
    ]


def _compared(
    catalog: Catalog, spans: pl.DataFrame, producer_id: str, embedders: Mapping[str, Embedder[Any]]
) -> pl.DataFrame:
    """Each gold text beside every entry that some shift makes overlap it, with ``alike``."""
    withheld = pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    entries = catalog.entries(producer=producer_id).filter(~withheld)
    own = entries.select("entry_id", "asset_id", "start_s", "end_s", "text")
    from_s, to_s = pl.col("gold_start") - FARTHEST_S, pl.col("gold_end") + FARTHEST_S
    pairs = spans.join(own, on="asset_id").filter(pl.col("end_s") > from_s, pl.col("start_s") < to_s)
    for table, embedder in embedders.items():
        alike = _by_vectors(spans, pairs, catalog.vectors(producer_id)[table], embedder)
        return pairs.with_columns(pl.Series("alike", alike, pl.Float64))
    return pairs.with_columns(pl.Series("alike", _by_words(spans, pairs, own), pl.Float64))


def _by_vectors(
    spans: pl.DataFrame, pairs: pl.DataFrame, stored: pl.DataFrame, embedder: Embedder[Any]
) -> Fits:
    texts = spans["gold_text"].unique(maintain_order=True).to_list()
    parts = [(text, part) for text in texts for part in embedder.parts(text)]
    matrix = embedder.embed([part for _, part in parts]) if parts else np.empty((0, 0), np.float32)
    known = pl.Series(~np.isnan(matrix).any(axis=1))
    gold = pl.DataFrame({"entry_id": [text for text, _ in parts], "vector": matrix}).filter(known)
    of_gold, of_entry = (lists(pairs[name]) for name in ("gold_text", "entry_id"))
    return stored_cosines(of_gold, of_entry, gold, stored)


def _by_words(spans: pl.DataFrame, pairs: pl.DataFrame, own: pl.DataFrame) -> Fits:
    """Weight of the words that both have, of those of the gold text; a word weighs by how rare it is."""
    of_entries = dict(zip(own["entry_id"].to_list(), map(set, words(own["text"]).to_list()), strict=True))
    of_gold = list(map(set, words(spans["gold_text"]).to_list()))
    counts = Counter(word for each in of_entries.values() for word in each)
    unknown = math.log(1 + len(of_entries))
    weight = {word: math.log(1 + len(of_entries) / count) for word, count in counts.items()}
    whole = [sum(weight.get(word, unknown) for word in each) for each in of_gold]
    rows = pairs.select("gold", "entry_id").iter_rows()
    shared = [(at, sum(weight[word] for word in of_gold[at] & of_entries[entry])) for at, entry in rows]
    return np.array([both / whole[at] if whole[at] else np.nan for at, both in shared], np.float64)


def _fits(pairs: pl.DataFrame, count: int) -> Fits:
    """Mean likeness of the entries that overlap each gold text, by overlap, for every shift."""
    rows = pairs.filter(pl.col("alike").is_not_nan())
    alike, start, end, low, high = (
        rows[name].to_numpy()[:, None] for name in ("alike", "start_s", "end_s", "gold_start", "gold_end")
    )
    overlap = np.clip(np.minimum(end + SHIFTS, high) - np.maximum(start + SHIFTS, low), 0, None)
    weighted, weights = np.zeros((count, len(SHIFTS))), np.zeros((count, len(SHIFTS)))
    np.add.at(weighted, rows["gold"].to_numpy(), overlap * alike)
    np.add.at(weights, rows["gold"].to_numpy(), overlap)
    fits: Fits = np.divide(weighted, weights, out=np.full_like(weights, np.nan), where=weights > 0)
    return fits


def best_shift(fits: Fits) -> int | None:
    """By how many seconds to move the catalog so that gold texts fit best; None: they do not tell.

    0 unless another shift fits surely better. Of shifts that fit alike, the middle one. They tell where that
    one fits surely better than those far off, and than each that is more than :data:`TOLD_S` from it.
    """
    usable = (~np.isnan(fits)).sum(axis=0) >= max(LEAST, len(fits) / 2)
    if not usable.any():
        return None
    curve = np.where(usable, _means(fits), -np.inf)
    height = curve[usable].max() - curve[usable].min()
    best = np.flatnonzero(curve >= curve.max() - ALIKE * height)
    at = int(best[len(best) // 2])
    far = usable & (np.abs(SHIFTS - SHIFTS[at]) >= FAR_S)
    if not far.any() or not _surely_better(fits[:, at], _means(fits[:, far].T)):
        return None
    rivals = [n for n in np.flatnonzero(usable) if not _surely_better(fits[:, at], fits[:, n])]
    if max(abs(n - at) for n in rivals) > TOLD_S:
        return None
    return 0 if FARTHEST_S in rivals else int(SHIFTS[at])


def _means(fits: Fits) -> Fits:
    """Mean of each column over the gold texts that have a number; NaN where none has."""
    known = ~np.isnan(fits)
    sums, count = np.where(known, fits, 0.0).sum(axis=0), known.sum(axis=0)
    means: Fits = np.divide(sums, count, out=np.full(len(sums), np.nan), where=count > 0)
    return means


def _surely_better(a: Fits, b: Fits) -> bool:
    """Whether ``a`` is above ``b``, gold text by gold text, beyond what chance does."""
    gain = (a - b)[~np.isnan(a - b)]
    if len(gain) < LEAST or gain.mean() <= 0:
        return False
    return bool(gain.mean() > SURE * gain.std(ddof=1) / math.sqrt(len(gain)))


def _heard(fits: Fits) -> int:
    return int((~np.isnan(fits)).any(axis=1).sum())


def _curve(producer: dict[str, Any], fits: Fits, shift: int | None) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "shift_s": SHIFTS,
            "similarity": pl.Series(_means(fits)).fill_nan(None),
            "of": (~np.isnan(fits)).sum(axis=0),
            "best": np.isin(SHIFTS, [] if shift is None else [shift]),
        }
    )
    facts = [pl.lit(producer[name]).alias(name) for name in ("producer_id", "kind", "scale", "component")]
    return frame.with_columns(facts).select(pl.col(name).cast(kind) for name, kind in CURVE_SCHEMA.items())
