"""Comparing what two producers wrote about the same videos, or one catalog with what it was before.

catalog = Catalog.open("my.catalog")
diff(catalog, catalog, "89124f14", "e2f44bc7").agreement
diff_views(Catalog.open("my.catalog", at="before"), catalog).parts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from evicat.catalog.likeness import Numbers, embedded_cosines, stored_cosines
from evicat.catalog.query import Catalog
from evicat.catalog.words import Vocabulary, shared_words, vocabulary, words
from evicat.schemas.errors import UsageError
from evicat.schemas.model import Model
from evicat.storage.tables import DERIVED

_KEY = ["asset_id", "start_s", "end_s"]
_SIDE = ["text", "ids"]
WORDS_SHOWN = 10
"""Over-represented words that are told of each side."""


class Side(Model):
    """One of two producers, and what it wrote about the videos that both have."""

    producer_id: str
    component: str
    version: int
    scale: str
    windows: int
    """Windows (of speech: spans) with a text."""
    words_mean: float | None
    words_median: float | None


class Agreement(Model):
    """How alike the texts of windows are that both sides have."""

    how: str
    """Where the vectors come from, or why there are none."""
    compared: int
    mean: float | None
    median: float | None
    lowest: float | None
    mean_of_changed: float | None


class Pair(Model):
    """Texts of both sides about one span; None where a side has none."""

    video: str
    start_s: float
    end_s: float
    text_a: str | None
    text_b: str | None
    similarity: float | None
    shared_words: float | None
    """Common words among all words of both texts."""


class Diff(Model):
    """What differs between two producers of one kind."""

    kind: str
    a: Side
    b: Side
    aligned: Literal["span", "overlap"]
    """``span``: windows of the same span. ``overlap``: windows have other spans; those of the finer side are
    joined within the window of the other that they overlap most."""
    videos: int
    """Assets that both sides have; all that follows counts these alone."""
    videos_only_a: int
    videos_only_b: int
    only_a: int
    only_b: int
    same: int
    changed: int
    vocabulary: Vocabulary
    agreement: Agreement
    most_different: tuple[Pair, ...]


class ViewDiff(Model):
    """What differs between the default views of two catalogs, or of one at two heads."""

    parts: tuple[Diff, ...]
    """One per kind and scale that both show."""
    only_a: tuple[str, ...]
    """Scales that only one shows."""
    only_b: tuple[str, ...]


def diff_views(a: Catalog, b: Catalog, *, video: str | None = None, limit: int = 5) -> ViewDiff:
    """Compare, for each kind and scale, what the default views of ``a`` and ``b`` show."""
    shown_a, shown_b = _shown(a), _shown(b)
    both = sorted(shown_a.keys() & shown_b.keys())
    return ViewDiff(
        parts=tuple(diff(a, b, shown_a[at], shown_b[at], video=video, limit=limit) for at in both),
        only_a=tuple(scale for _, scale in sorted(shown_a.keys() - shown_b.keys())),
        only_b=tuple(scale for _, scale in sorted(shown_b.keys() - shown_a.keys())),
    )


def diff(
    a: Catalog, b: Catalog, producer_a: str, producer_b: str, *, video: str | None = None, limit: int = 5
) -> Diff:
    """Compare two producers, given by the first digits of their ids; ``a`` and ``b`` may be one catalog.

    Args:
        video: Only this one.
        limit: So many of the most different windows.

    Raises:
        UsageError: they write entries of two kinds, or an id or a video that is none.
    """
    ours, theirs = _Side.read(a, producer_a, video), _Side.read(b, producer_b, video)
    if ours.kind != theirs.kind:
        raise UsageError(
            f"{producer_a} writes {ours.kind} entries and {producer_b} {theirs.kind} ones; "
            "only producers of one kind can be compared"
        )
    common = ours.assets & theirs.assets
    texts_a, texts_b = (window_texts(_of_assets(side.entries, common)) for side in (ours, theirs))
    is_tiled_alike = ours.kind != "speech" and ours.facts["scale"] == theirs.facts["scale"]
    by_span = is_tiled_alike or texts_a.select(_KEY).equals(texts_b.select(_KEY))
    pairs = align(texts_a, texts_b) if by_span else align_by_overlap(texts_a, texts_b)
    pairs, how = _with_similarity(pairs, ours, theirs)
    return Diff(
        kind=ours.kind,
        a=ours.summary(texts_a),
        b=theirs.summary(texts_b),
        aligned="span" if by_span else "overlap",
        videos=len(common),
        videos_only_a=len(ours.assets - common),
        videos_only_b=len(theirs.assets - common),
        **counts(pairs),
        vocabulary=vocabulary(texts_a["text"], texts_b["text"], limit=WORDS_SHOWN),
        agreement=_agreement(pairs, how),
        most_different=_most_different(pairs, limit),
    )


def window_texts(entries: pl.DataFrame) -> pl.DataFrame:
    """Entries (of one producer) as one row per span: ``video, asset_id, start_s, end_s, text, ids``."""
    grouped = entries.sort("entry_id").group_by(_KEY, maintain_order=True)
    return grouped.agg(
        pl.col("video").first(), pl.col("text").str.join("\n"), pl.col("entry_id").alias("ids")
    ).sort(_KEY)


def align(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Windows of equal span side by side: ``video, asset_id, start_s, end_s, text_a, text_b, ids_a, ids_b``.

    What a side lacks is null. Takes what :func:`window_texts` gives.
    """
    joined = a.join(b, on=_KEY, how="full", coalesce=True, suffix="_b")
    names = {name: f"{name}_a" for name in _SIDE}
    return (
        joined.rename(names)
        .with_columns(pl.coalesce("video", "video_b"))
        .select("video", *_KEY, "text_a", "text_b", "ids_a", "ids_b")
        .sort(_KEY)
    )


def align_by_overlap(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """As :func:`align`, for windows of other lengths.

    The windows of the finer side are joined within that of the other which they overlap most (of equals, the
    earlier); those that overlap none stand by themselves.
    """
    a_is_finer = _mean_length(a) < _mean_length(b)
    fine, coarse = (a, b) if a_is_finer else (b, a)
    placed = _within(fine, coarse)
    return align(placed, coarse) if a_is_finer else align(coarse, placed)


def counts(pairs: pl.DataFrame) -> dict[str, int]:
    """Windows by what became of them, from what :func:`align` gives."""
    only_a, only_b = pl.col("text_b").is_null(), pl.col("text_a").is_null()
    same = (_plain("text_a") == _plain("text_b")).fill_null(value=False)
    row = pairs.select(
        only_a.sum().alias("only_a"),
        only_b.sum().alias("only_b"),
        same.sum().alias("same"),
        (~only_a & ~only_b & ~same).sum().alias("changed"),
    )
    return {name: int(count) for name, count in row.row(0, named=True).items()}


def _within(fine: pl.DataFrame, coarse: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``fine``, joined to the spans of ``coarse``."""
    spans = coarse.select("asset_id", pl.col("start_s").alias("from_s"), pl.col("end_s").alias("to_s"))
    meeting = fine.join_where(
        spans,
        pl.col("asset_id") == pl.col("asset_id_span"),
        pl.col("start_s") < pl.col("to_s"),
        pl.col("end_s") > pl.col("from_s"),
        suffix="_span",
    )
    overlap = pl.min_horizontal("end_s", "to_s") - pl.max_horizontal("start_s", "from_s")
    best = (
        meeting.with_columns(overlap.alias("overlap"))
        .sort(["overlap", "from_s"], descending=[True, False])
        .unique(_KEY, keep="first", maintain_order=True)
        .sort(_KEY)
    )
    alone = fine.join(best, on=_KEY, how="anti")
    joined = best.group_by("asset_id", "from_s", "to_s", maintain_order=True).agg(
        pl.col("video").first(), pl.col("text").str.join("\n"), pl.col("ids").explode(empty_as_null=False)
    )
    joined = joined.rename({"from_s": "start_s", "to_s": "end_s"}).select(fine.columns)
    return pl.concat([joined, alone]).sort(_KEY)


def _mean_length(windows: pl.DataFrame) -> float:
    mean = windows.select((pl.col("end_s") - pl.col("start_s")).mean()).item()
    return float(mean or 0.0)


def _plain(column: str) -> pl.Expr:
    return pl.col(column).str.replace_all(r"\s+", " ").str.strip_chars()


@dataclass(frozen=True)
class _Side:
    """A producer in a catalog, and its entries."""

    catalog: Catalog
    video: str | None
    facts: dict[str, Any]
    entries: pl.DataFrame
    assets: frozenset[str]

    @classmethod
    def read(cls, catalog: Catalog, producer: str, video: str | None) -> _Side:
        producer_id = catalog.producer_id(producer)
        is_it = pl.col("producer_id") == producer_id
        wanted = set(catalog.asset_ids(video) if video else catalog.videos()["asset_id"].to_list())
        made = set(catalog.units().filter(is_it)["asset_id"].to_list())
        return cls(
            catalog,
            video,
            catalog.producers().filter(is_it).row(0, named=True),
            catalog.entries(video, producer=producer_id),
            frozenset(wanted & made),
        )

    @property
    def kind(self) -> str:
        return str(self.facts["kind"])

    def vectors(self) -> dict[str, pl.DataFrame]:
        return self.catalog.vectors(self.facts["producer_id"], video=self.video)

    def summary(self, texts: pl.DataFrame) -> Side:
        lengths = words(texts["text"]).list.len().cast(pl.Float64)
        same = ("producer_id", "component", "version", "scale")
        return Side(
            **{name: self.facts[name] for name in same},
            windows=len(texts),
            words_mean=_number(lengths.mean()),
            words_median=_number(lengths.median()),
        )


def _shown(catalog: Catalog) -> dict[tuple[str, str], str]:
    rows = catalog.active().filter(~pl.col("kind").is_in(DERIVED))
    return {(kind, scale): producer for kind, scale, producer in rows.iter_rows()}


def _of_assets(entries: pl.DataFrame, assets: frozenset[str]) -> pl.DataFrame:
    return entries.filter(pl.col("asset_id").is_in(sorted(assets)))


def _with_similarity(pairs: pl.DataFrame, a: _Side, b: _Side) -> tuple[pl.DataFrame, str]:
    """``pairs`` with ``same``, ``shared_words`` and ``similarity``, and where the last comes from."""
    same = (_plain("text_a") == _plain("text_b")).fill_null(value=False)
    has_both = pl.col("text_a").is_not_null() & pl.col("text_b").is_not_null()
    pairs = (
        pairs.with_columns(same.alias("same"), shared_words(pairs["text_a"], pairs["text_b"]).round(4))
        .with_columns(pl.when(has_both).then("shared_words").alias("shared_words"))
        .with_row_index()
    )
    changed = pairs.filter(has_both & ~pl.col("same"))
    found, how = _cosines(changed, a, b)
    if found is None:
        return pairs.with_columns(pl.lit(None, pl.Float64).alias("similarity")), how
    measured = changed.select("index", pl.Series("similarity", found, pl.Float64).fill_nan(None).round(4))
    joined = pairs.join(measured, on="index", how="left", maintain_order="left")
    return joined.with_columns(pl.when("same").then(1.0).otherwise("similarity").alias("similarity")), how


def _cosines(changed: pl.DataFrame, a: _Side, b: _Side) -> tuple[Numbers | None, str]:
    """Of windows whose texts differ; and whose vectors these are, or why there are none."""
    stored_a, stored_b = a.vectors(), b.vectors()
    tables = {
        name: min(len(stored_a[name]), len(stored_b[name])) for name in stored_a.keys() & stored_b.keys()
    }
    if any(tables.values()):
        name = max(sorted(tables), key=lambda each: tables[each])
        found = stored_cosines(changed["ids_a"], changed["ids_b"], stored_a[name], stored_b[name])
        return found, f"stored vectors ({name})"
    try:
        embedders = b.catalog.embedders() or a.catalog.embedders()
        if not embedders:
            return None, "none: no embedder is active"
        name, embedder = next(iter(embedders.items()))
        found = embedded_cosines(changed["text_a"], changed["text_b"], embedder)
    except UsageError as error:
        return None, f"none: {error}"
    return found, f"embedded now by {embedder.model.name} ({name})"


def _agreement(pairs: pl.DataFrame, how: str) -> Agreement:
    measured = pairs.filter(pl.col("similarity").is_not_null())
    values = measured["similarity"]
    return Agreement(
        how=how,
        compared=len(values),
        mean=_number(values.mean()),
        median=_number(values.median()),
        lowest=_number(values.min()),
        mean_of_changed=_number(measured.filter(~pl.col("same"))["similarity"].mean()),
    )


def _most_different(pairs: pl.DataFrame, limit: int) -> tuple[Pair, ...]:
    """Changed windows, the least alike first; then windows that only one side has."""
    one_sided = pl.col("text_a").is_null() | pl.col("text_b").is_null()
    order = [one_sided, pl.col("similarity"), pl.col("shared_words"), *map(pl.col, _KEY)]
    rows = pairs.filter(~pl.col("same")).sort(order, nulls_last=True).head(limit)
    return tuple(Pair(**row) for row in rows.select(list(Pair.model_fields)).to_dicts())


def _number(value: Any) -> float | None:
    return None if value is None else round(float(value), 4)
