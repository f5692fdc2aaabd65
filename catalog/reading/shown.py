"""What a view shows of a catalog at one head: the rows behind every answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import polars as pl

from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.loaders import load_embedder
from evicat.schemas.asset import Asset
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.errors import CatalogError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.recipe import EmbedderOptions, Profile
from evicat.storage.reader import Reader
from evicat.storage.roster import by_beginning, what_it_makes
from evicat.storage.sql import sql_equals, sql_in
from evicat.storage.tables import DERIVED

from . import arguments, filters, hits
from .columns import ENTRY_SCHEMA, HIT_SCHEMA
from .factors import KnownFactors, tagged
from .filters import Between, OneOrMore, Where, both
from .ranking import Ranked
from .search import Searcher
from .views import View

_COLUMNS = [name for name in ENTRY_SCHEMA if name != "video"]
ASSET_DIGITS = 12
"""So many digits of its asset's id an entry's id begins with."""
_READ_TOGETHER = 1_000
"""Entries that are read with one filter by id."""


class Shown:
    """The tables of a reader, less what a view does not show. Threads may share it."""

    def __init__(self, reader: Reader, view: View, profile: Profile) -> None:
        self._reader = reader
        self._process = os.getpid()
        self.view = view
        self.profile = profile

    @property
    def reader(self) -> Reader:
        """The tables.

        Raises:
            UsageError: this process was forked from the one that opened them.
        """
        if os.getpid() != self._process:
            raise UsageError(
                "this catalog was opened before the process was forked; open it in the worker "
                "(Catalog.open), or start workers by spawn (multiprocessing_context='spawn' of a DataLoader)"
            )
        return self._reader

    def read(
        self, table: str, where: str = "", columns: list[str] | None = None, limit: int | None = None
    ) -> pl.DataFrame:
        """Rows of any table, as they are; ``limit``: the first so many that are come upon."""
        rows = self.reader.dataset(table).to_table(filter=where or None, columns=columns, limit=limit)
        return polars_frame(rows)

    def entries(self, where: str, limit: int | None = None) -> pl.DataFrame:
        """Entries with their video's name, in no order; ``limit``: any so many of them."""
        return self.named(self.read("entries", where, _COLUMNS, limit), ENTRY_SCHEMA)

    def hits(
        self, ranked: Sequence[Ranked], where: Where, limit: int, per_video: int | None = None
    ) -> pl.DataFrame:
        """The first ``limit`` of ranked entries that fit ``where``, in their order, or all that do.

        They are read in pieces, as most rankings are much longer than what fits.
        """
        if not ranked:
            return HIT_SCHEMA.to_frame()
        at = piece = min(limit, _READ_TOGETHER)
        found = self._of_ranked(ranked[:at], where)
        while True:
            if per_video is not None:
                found = hits.at_most_of_each_video(found, per_video)
            if at >= len(ranked) or len(found) >= limit:
                return found.head(limit)
            piece = min(piece * 4, _READ_TOGETHER)
            found = pl.concat([found, self._of_ranked(ranked[at : at + piece], where)])
            at += piece

    def _of_ranked(self, ranked: Sequence[Ranked], where: Where) -> pl.DataFrame:
        kept = filters.without_flags(SPEECH_WITHHELD)
        rows = self.read("entries", both(_of_these(ranked), where.entries, kept), _COLUMNS)
        ids = rows["entry_id"].to_list()
        at = {each.entry_id: (place, each.score) for place, each in enumerate(ranked)}
        order = sorted(range(len(ids)), key=lambda row: at[ids[row]][0])
        score = pl.Series("score", [at[each][1] for each in ids], pl.Float64)
        return self.named(rows.with_columns(score)[order], HIT_SCHEMA)

    def saying(self, text: str, where: Where) -> pl.DataFrame:
        """All entries with every word and phrase of ``text``, in no order."""
        found = polars_frame(self.searcher.with_every_word(text, where, _COLUMNS))
        withheld = pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
        return self.named(found.filter(~withheld), ENTRY_SCHEMA)

    def _with_ids(self, entry_ids: Sequence[str]) -> str:
        """Entries of these ids. An id begins as that of its asset does, and assets are indexed."""
        known = self._assets_by_beginning
        assets = [known.get(entry_id[:ASSET_DIGITS]) for entry_id in entry_ids]
        wanted = sorted({each for some in assets for each in some or ()})
        return both(
            sql_in("asset_id", wanted) if all(assets) else "",
            sql_in("entry_id", entry_ids),
        )

    @cached_property
    def _assets_by_beginning(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for table in ("videos", "names"):
            for asset_id in self.read(table, "", ["asset_id"])["asset_id"].to_list():
                found.setdefault(asset_id[:ASSET_DIGITS], set()).add(asset_id)
        return found

    def scan(self, table: str) -> pl.LazyFrame:
        """A table, lazily; of entries and vectors what the view shows."""
        lazy = pl.scan_pyarrow_dataset(self.reader.dataset(table).raw)
        if table != "entries" and not table.startswith("vectors_"):
            return lazy
        for hidden, column in ((self.hidden, "producer_id"), (self._nameless, "asset_id")):
            lazy = lazy.filter(~pl.col(column).is_in(hidden)) if hidden else lazy
        if self.view.only is not None:
            return lazy.filter(pl.col("entry_id").is_in(sorted(self.view.only - self.view.without)))
        return (
            lazy.filter(~pl.col("entry_id").is_in(sorted(self.view.without))) if self.view.without else lazy
        )

    def entry(self, entry_id: str) -> dict[str, Any] | None:
        """One entry, whichever view shows it; None where there is none."""
        rows = self.entries(self._with_ids([entry_id]))
        return None if rows.is_empty() else rows.row(0, named=True)

    def asset(self, asset_id: str) -> Asset | None:
        """The facts of an asset; None where its file could not be read."""
        facts = self.read("videos", sql_equals("asset_id", asset_id), ["facts"])["facts"].to_list()
        return Asset.model_validate_json(facts[0]) if facts and facts[0] else None

    def named(self, rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
        """Rows with the name of their video, in the order of ``schema``."""
        names = self.names
        assets = rows["asset_id"].unique().to_list()
        called = [names.get(each, "") for each in assets]
        video = rows["asset_id"].replace_strict(assets, called, return_dtype=pl.String).alias("video")
        return rows.with_columns(video).match_to_schema(schema, extra_columns="ignore").select(schema.names())

    @cached_property
    def _all_names(self) -> pl.DataFrame:
        """Every name that a video ever had."""
        return self.read("names", "", ["name", "asset_id", "missing_since"])

    @cached_property
    def _named_so(self) -> dict[str, set[str]]:
        """Assets by each of their names, and by their id."""
        found: dict[str, set[str]] = {}
        for name, asset_id in self._all_names.select("name", "asset_id").iter_rows():
            found.setdefault(name, set()).add(asset_id)
            found.setdefault(asset_id, set()).add(asset_id)
        return found

    @cached_property
    def names(self) -> dict[str, str]:
        """First video name of every asset that is present."""
        present = self._all_names.filter(pl.col("missing_since").is_null())
        names = present.sort("name", descending=True)
        return dict(zip(names["asset_id"].to_list(), names["name"].to_list(), strict=True))

    @cached_property
    def hidden(self) -> list[str]:
        """Producers of entries that the view leaves out, since another is active or it wants none."""
        writing = self.read("producers").filter(~pl.col("kind").is_in(DERIVED))
        return sorted(set(writing["producer_id"].to_list()) - self.view.producers)

    @cached_property
    def _nameless(self) -> list[str]:
        """Assets that no name leads to any more: overwritten or missing. Their entries are not shown."""
        return sorted(set(self.read("videos")["asset_id"].to_list()) - set(self.names))

    @cached_property
    def known_factors(self) -> KnownFactors:
        """Every factor that entries can be asked for."""
        return KnownFactors.of(self.reader)

    def count(self, where: Where) -> int:
        """How many entries fit."""
        return int(self.reader.dataset("entries").count_rows(filter=where.all or None))

    def asset_ids(self, video: str) -> list[str]:
        """Assets that ``video`` means: a video name, the end of one path (``lec.mp4``), or an asset id.

        Raises:
            UsageError: no video has this name, or it is the end of several.
        """
        exact = self._named_so.get(arguments.words("video", video))
        if exact:
            return sorted(exact)
        found = self._all_names.filter(pl.col("name").str.ends_with(f"/{video}"))
        ids = sorted(set(found["asset_id"].to_list()))
        ids = [each for each in ids if each in self.names] or ids  # what is missing does not stand in the way
        if not ids:
            raise UnknownNameError("video", video, sorted(set(self._all_names["name"].to_list()))[:20])
        if len(ids) > 1:
            names = sorted(set(found["name"].to_list()))
            raise UsageError(f"{video!r} is the end of several: {', '.join(names)}")
        return ids

    def producer_id(self, beginning: str) -> str:
        """The full id of a producer of entries, from the first digits of it.

        Raises:
            UsageError: no producer begins so, or several do.
        """
        writing = self.read("producers").filter(~pl.col("kind").is_in(DERIVED))
        rows = writing.select("producer_id", "component", "scale").iter_rows()
        known = {key: what_it_makes(*what) for key, *what in rows}
        return by_beginning(known, arguments.words("producer", beginning))

    def where(
        self,
        *,
        video: OneOrMore | None = None,
        kind: OneOrMore | None = None,
        scale: OneOrMore | None = None,
        between: Between | None = None,
        producer: str | None = None,
        factors: OneOrMore | None = None,
        text: str | None = None,
        every: bool = False,
    ) -> Where:
        """A filter; ``every``: of all producers and entries, not of the view alone."""
        ranked, most = [], None
        if producer is not None:
            ranked.append(sql_equals("producer_id", self.producer_id(producer)))
        elif self.hidden and not every:
            ranked.append(f"NOT ({sql_in('producer_id', self.hidden)})")
        if self.view.only is not None and not every:
            ids = sorted(self.view.only - self.view.without)
            ranked.append(self._with_ids(ids))
            most = len(ids)
        if video is not None:
            assets = [each for name in arguments.names("video", video) for each in self.asset_ids(name)]
            ranked.append(sql_in("asset_id", assets))
            written = sum(self._entries_of.get(each, 0) for each in set(assets))
            most = written if most is None else min(most, written)
        if kind is not None:
            ranked.append(filters.of_kind(kind))
        if scale is not None:
            ranked.append(filters.of_scale(scale, self._scales))
        if self._nameless:
            ranked.append(f"NOT ({sql_in('asset_id', self._nameless)})")
        if between is not None:
            ranked.append(filters.overlapping(between))
        entries = [
            tagged(factors, self.known_factors) if factors is not None else "",
            filters.saying(text) if text is not None else "",
        ]
        without = frozenset() if every or self.view.only is not None else self.view.without
        is_narrow = most is not None or any(
            each is not None for each in (producer, kind, scale, between, factors, text)
        )
        return Where(both(*ranked), both(*entries), without, most, is_narrow)

    @cached_property
    def _scales(self) -> set[str]:
        return set(self.read("units", "", ["scale"])["scale"].to_list())

    @cached_property
    def _entries_of(self) -> dict[str, int]:
        """How many entries each asset has, of all producers."""
        units = self.read("units", "", ["asset_id", "entries"])
        return dict(units.group_by("asset_id").agg(pl.col("entries").sum()).iter_rows())

    @cached_property
    def embedders(self) -> dict[str, Embedder[Any]]:
        """The embedder of the vectors that the view searches, ready for queries."""
        shown = set(self.view.places.values())
        return {
            name: embedder_of(producer, self.profile)
            for name, producer in self.reader.embedders().items()
            if producer.producer_id in shown
        }

    @cached_property
    def searcher(self) -> Searcher:
        return Searcher(self.reader, lambda: self.embedders)


def _of_these(ranked: Sequence[Ranked]) -> str:
    """The rows of ranked entries, by the quickest way to them."""
    rows = [each.row_id for each in ranked if each.row_id is not None]
    if len(rows) == len(ranked):
        return sql_in("_rowid", rows)
    of_assets = sql_in("asset_id", sorted({each.asset_id for each in ranked}))  # as there is an index
    return both(of_assets, sql_in("entry_id", [each.entry_id for each in ranked]))


def polars_frame(rows: Any) -> pl.DataFrame:
    """An Arrow table as a frame."""
    frame = pl.from_arrow(rows)
    if not isinstance(frame, pl.DataFrame):
        raise IntegrityError(f"a table was to be read, but {type(frame).__name__} came")
    return frame


def embedder_of(producer: Producer, profile: Profile) -> Embedder[Any]:
    """The embedder that made a vector table.

    Raises:
        CatalogError: the weights found here are not those that made the vectors.
    """
    if producer.model is None:
        raise IntegrityError(f"embedder {producer.component} has no model")
    options = EmbedderOptions(
        name=producer.component,
        model=producer.model.name,
        revision=producer.model.revision,
        options=producer.options,
    )
    embedder = load_embedder(options, profile)
    if embedder.model.identity() != producer.model.identity():
        raise CatalogError(
            f"the vectors were made by {producer.model.name} (digest {producer.model.digest or 'unknown'}), "
            f"but the weights found here have digest {embedder.model.digest or 'unknown'}; "
            "search with --mode text, or name the right weights in the profile"
        )
    return embedder
