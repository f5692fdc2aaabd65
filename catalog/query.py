"""Reading a catalog: what videos it holds, what is written about them, and where a thing is said or seen.

    catalog = Catalog.open("my.catalog")
    catalog.search("thanks for watching", limit=5)

Every answer is a polars frame with one declared schema, whatever matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl

from evicat.catalog.cast import cast_frame
from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.media_files import MediaFiles
from evicat.schemas.asset import Asset
from evicat.schemas.entry import KINDS, SPEECH_WITHHELD
from evicat.schemas.errors import CatalogError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.naming import Root, VideoName
from evicat.schemas.recipe import EmbedderOptions, Profile
from evicat.schemas.span import Span
from evicat.storage.reader import Reader
from evicat.storage.roster import by_beginning, what_it_makes
from evicat.storage.snapshots import reader_at
from evicat.storage.sql import sql_equals, sql_in, sql_literal
from evicat.storage.tables import DERIVED, SUPPORT

Mode = Literal["hybrid", "text", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "vector")
MOST = 10_000
"""Hits that one search gives at most."""
RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
CANDIDATES = 5
"""Rankings are read this many times deeper than asked: to be fused, and as long texts have several parts."""

ENTRY_SCHEMA = pl.Schema(
    [
        ("entry_id", pl.String()),
        ("video", pl.String()),
        ("asset_id", pl.String()),
        ("start_s", pl.Float64()),
        ("end_s", pl.Float64()),
        ("kind", pl.String()),
        ("scale", pl.String()),
        ("text", pl.String()),
    ]
)
LINK_COLUMNS = {
    "entry_id": pl.String(),
    "kind": pl.String(),
    "start_s": pl.Float64(),
    "end_s": pl.Float64(),
    "score": pl.Float64(),
}
"""Of each entry that a sentence rests on, best first."""
FRAME_SCHEMA = pl.Schema(
    [
        ("entry_id", pl.String()),
        ("asset_id", pl.String()),
        ("shown_width", pl.Int32()),
        ("pts", pl.Int64()),
        ("time_s", pl.Float64()),
    ]
)
SUPPORT_SCHEMA = pl.Schema(
    [
        ("entry_id", pl.String()),
        ("video", pl.String()),
        ("asset_id", pl.String()),
        ("start_s", pl.Float64()),
        ("end_s", pl.Float64()),
        ("sentence", pl.Int32()),
        ("role", pl.String()),
        ("text", pl.String()),
        ("rests_on", pl.List(pl.Struct(LINK_COLUMNS))),
    ]
)
HIT_SCHEMA = pl.Schema([*ENTRY_SCHEMA.items(), ("score", pl.Float64())])
_COLUMNS = [name for name in ENTRY_SCHEMA if name != "video"]


class Catalog:
    """A catalog at one head; :meth:`open` it anew to see what was written since."""

    def __init__(self, reader: Reader, profile: Profile) -> None:
        self._reader = reader
        self._profile = profile

    @classmethod
    def open(cls, uri: str, profile: Profile | None = None, *, at: str | None = None) -> Catalog:
        """Open for reading; nothing is created or changed.

        Args:
            at: A snapshot's name, or the number of an earlier head; None: as the catalog is now.

        Raises:
            CatalogError: there is no catalog, or it is of a newer schema.
            UnknownNameError: there is no such snapshot or head.
        """
        reader = Reader.open(uri) if at is None else reader_at(uri, at)
        return cls(reader, profile or Profile())

    @property
    def version(self) -> int:
        """Number of the head that it shows: ``open(uri, at=str(version))`` shows the same again."""
        return self._reader.version

    def videos(self, *, missing: bool = False) -> pl.DataFrame:
        """One row per video name: ``video, asset_id, duration_s, width, height, status, message, ...``.

        ``missing``: also those whose file is gone, with ``missing_since``.
        """
        names, videos = self._read("names"), self._read("videos")
        if not missing:
            names = names.filter(pl.col("missing_since").is_null())
        return (
            names.select(pl.col("name").alias("video"), "asset_id", "benchmark", "split", "missing_since")
            .join(videos.drop("facts"), on="asset_id", how="left")
            .sort("video")
        )

    def units(self) -> pl.DataFrame:
        """One row per unit: asset, producer, scale, counts of outcomes, cost."""
        return self._read("units")

    def producers(self) -> pl.DataFrame:
        """One row per producer."""
        return self._read("producers")

    def active(self) -> pl.DataFrame:
        """What the default view shows: ``kind, scale, producer_id``; of ``embedding`` the embedder's id."""
        rows = [(*place, producer_id) for place, producer_id in self._reader.view().items()]
        schema = dict.fromkeys(("kind", "scale", "producer_id"), pl.String)
        return pl.DataFrame(rows, schema=schema, orient="row").sort("kind", "scale")

    def vectors(self, producer: str, *, video: str | None = None) -> dict[str, pl.DataFrame]:
        """Stored vectors of a producer's entries, by vector table: ``entry_id, part, vector``."""
        where = _and(self._where(video=video, producer=producer), "vector IS NOT NULL")
        columns = ["entry_id", "part", "vector"]
        return {name: self._read(name, where, columns) for name in self._reader.embedders()}

    def embedders(self) -> dict[str, Embedder[Any]]:
        """The embedder that the default view searches with, by its vector table, without its weights.

        Raises:
            UsageError: its package or weights are not here, or are others than made the vectors.
        """
        return self._embedders

    def coverage(self, video: str | None = None) -> pl.DataFrame:
        """One row per window: span, outcome, error, attempts."""
        rows = self._read("coverage", self._where(video=video, every=True))
        return rows.sort("asset_id", "kind", "scale", "start_s")

    def entries(
        self,
        video: str | None = None,
        *,
        kind: str | None = None,
        between: Span | None = None,
        producer: str | None = None,
    ) -> pl.DataFrame:
        """Entries in order of video, kind, scale and time; ``between`` keeps those that overlap it.

        Of the active producers, or of the one whose id begins with ``producer``.
        """
        where = self._where(video=video, kind=kind, between=between, producer=producer)
        rows = self._read("entries", where, _COLUMNS)
        return self._named(rows, ENTRY_SCHEMA).sort("video", "kind", "scale", "start_s", "entry_id")

    def frames(
        self,
        video: str | None = None,
        *,
        kind: str | None = None,
        between: Span | None = None,
        producer: str | None = None,
    ) -> pl.DataFrame:
        """One row per frame that an entry cites: ``entry_id, asset_id, shown_width, pts, time_s``."""
        where = self._where(video=video, kind=kind, between=between, producer=producer)
        rows = self._read("entries", where, ["entry_id", "asset_id", "shown_width", "frames"])
        cited = rows.filter(pl.col("frames").list.len() > 0).explode("frames").unnest("frames")
        return cited.match_to_schema(FRAME_SCHEMA).sort("asset_id", "pts", "entry_id")

    def cast(self, video: str, *, producer: str | None = None) -> pl.DataFrame:
        """Who acts in a video, as its narratives call them: ``identity, descriptor, formerly, ...``.

        Of the active producers, or of the one whose id begins with ``producer``.
        """
        where = self._where(video=video, kind="narrative", producer=producer)
        columns = ["entry_id", "scale", "producer_id", "start_s", "end_s", "record"]
        return cast_frame(self._read("entries", where, columns))

    def supports(self, video: str, *, producer: str | None = None) -> pl.DataFrame:
        """One row per sentence of the narratives of a video: ``role``, ``text``, and what it ``rests_on``.

        Of the active producer of supports, or of the one whose id begins with ``producer``. A sentence that
        no entry carries has an empty list.
        """
        made_by = self._supporting(producer)
        assets = sql_in("asset_id", self.asset_ids(video))
        units = self._read("units", _and(sql_equals("producer_id", made_by), assets), ["unit_id"])
        rows = self._read("supports", sql_in("support_unit_id", units["unit_id"].to_list()))
        entries = self._read("entries", assets, [name for name in LINK_COLUMNS if name != "score"])
        places = {row["entry_id"]: row for row in entries.to_dicts()}
        rests_on = [
            [places[link["entry_id"]] | {"score": link["score"]} for link in links]
            for links in rows["rests_on"].to_list()
        ]
        rows = rows.with_columns(pl.Series("rests_on", rests_on, SUPPORT_SCHEMA["rests_on"]))
        return self._named(rows, SUPPORT_SCHEMA).sort("start_s", "entry_id", "sentence")

    def _supporting(self, beginning: str | None) -> str:
        """The id of a producer of supports; empty where none is active."""
        if beginning is None:
            places = self._reader.view().items()
            return next((producer_id for (kind, _), producer_id in places if kind == SUPPORT), "")
        making = self._read("producers").filter(pl.col("kind") == SUPPORT)
        rows = making.select("producer_id", "component", "scale").iter_rows()
        return by_beginning({key: what_it_makes(*what) for key, *what in rows}, beginning)

    def asset(self, asset_id: str) -> Asset | None:
        """The facts of an asset; None where its file could not be read."""
        rows = self._read("videos", sql_equals("asset_id", asset_id), ["facts"])
        facts = rows["facts"].to_list()
        return Asset.model_validate_json(facts[0]) if facts and facts[0] else None

    def media_files(self, media_roots: Sequence[str | Path] = ()) -> MediaFiles:
        """Finds the files of assets: where they were registered, or anywhere below ``media_roots``."""
        roots = [Root(**row) for row in self._read("roots").to_dicts()]
        names = [VideoName.from_row(row) for row in self._read("names").to_dicts()]
        return MediaFiles(roots, names, media_roots)

    def serialize(
        self,
        video: str,
        *,
        kind: str | None = None,
        between: Span | None = None,
        producer: str | None = None,
    ) -> pl.DataFrame:
        """Entries as readers cite them: ``rank`` from 1, span, text; narratives first (ASSEMBLE, App. A)."""
        rows = self.entries(video, kind=kind, between=between, producer=producer)
        order = pl.col("kind").replace_strict(
            {"narrative": 0, "local": 1, "speech": 2, "sound": 3}, return_dtype=pl.Int8
        )
        return rows.sort(order, "scale", "start_s", "entry_id").with_row_index("rank", offset=1)

    def search(
        self,
        query: str,
        *,
        mode: Mode = "hybrid",
        limit: int = 10,
        video: str | None = None,
        kind: str | None = None,
        between: Span | None = None,
        producer: str | None = None,
    ) -> pl.DataFrame:
        """The best ``limit`` entries for ``query``, best first.

        Of the active producers, or of the one whose id begins with ``producer``.

        ``score`` is BM25 for ``text``, cosine similarity for ``vector``, and reciprocal rank fusion of both
        for ``hybrid``: comparable within one answer only. Withheld speech (:data:`SPEECH_WITHHELD`) is
        never found. A blank query finds nothing.

        Raises:
            UsageError: unknown mode, kind or video, a limit that does not fit, or a catalog without vectors
                that is asked for them.
        """
        if mode not in MODES:
            raise UnknownNameError("mode", mode, list(MODES))
        if not 1 <= limit <= MOST:
            raise UsageError(f"limit must be from 1 to {MOST}, got {limit}")
        if not query.strip():
            return HIT_SCHEMA.to_frame()
        where = self._where(video=video, kind=kind, between=between, producer=producer)
        depth = limit if mode == "text" else limit * CANDIDATES
        text = self._by_text(query, where, depth) if mode != "vector" else {}
        vector = self._by_vector(query, where, depth, only=mode == "vector") if mode != "text" else {}
        scores = _fuse(text, vector) if mode == "hybrid" else text or vector
        return self._hits(scores).head(limit)

    def _by_text(self, query: str, where: str, depth: int) -> dict[str, float]:
        withheld = ", ".join(sql_literal(flag) for flag in sorted(SPEECH_WITHHELD))
        only = f"NOT array_has_any(flags, [{withheld}])"
        with self._reading("entries") as table:
            search = table.search(query, query_type="fts", fts_columns="text").where(
                _and(where, only), prefilter=True
            )
            rows = search.select(["entry_id", "_score"]).limit(depth).to_arrow().to_pylist()
        return {row["entry_id"]: float(row["_score"]) for row in rows}

    def _by_vector(self, query: str, where: str, depth: int, *, only: bool) -> dict[str, float]:
        scores: dict[str, float] = {}
        if only and not self._embedders:
            raise UsageError("this catalog has no vectors; search with mode text, or index with an embedder")
        for name, embedder in self._embedders.items():
            vector = embedder.embed_query(query)
            self._check_length(name, vector, embedder)
            with self._reading(name) as table:
                search = table.search(vector, vector_column_name="vector").distance_type("cosine")
                if where:
                    search = search.where(where, prefilter=True)
                rows = search.select(["entry_id", "_distance"]).limit(depth).to_arrow().to_pylist()
            for row in rows:
                score = 1.0 - float(row["_distance"])
                scores[row["entry_id"]] = max(score, scores.get(row["entry_id"], -1.0))
        return scores

    @contextmanager
    def _reading(self, name: str) -> Iterator[Any]:
        """A table to be searched; what is damaged is told as such."""
        table = self._reader.table(name)
        with self._reader.reading(name):
            yield table

    def _check_length(self, table: str, vector: Sized, embedder: Embedder[Any]) -> None:
        """Whether a query is as long as what it is compared with: a server may have changed its model.

        Raises:
            CatalogError: it is not.
        """
        length = self._reader.dataset(table).schema.field("vector").type.list_size
        if len(vector) != length:
            raise CatalogError(
                f"the vectors of {embedder.model.name!r} in this catalog have {length} numbers, but the "
                f"query got {len(vector)} numbers: another model answers under that name; search with "
                "--mode text, or name the right model in the profile"
            )

    @cached_property
    def _embedders(self) -> dict[str, Embedder[Any]]:
        """The embedder of the vectors that the default view searches, ready for queries."""
        found = {}
        shown = set(self._reader.view().values())
        for name, producer in self._reader.embedders().items():
            if producer.producer_id in shown:
                found[name] = _embedder(producer, self._profile)
        return found

    def _hits(self, scores: dict[str, float]) -> pl.DataFrame:
        if not scores:
            return HIT_SCHEMA.to_frame()
        rows = self._named(self._read("entries", sql_in("entry_id", scores), _COLUMNS), ENTRY_SCHEMA)
        score = pl.col("entry_id").replace_strict(scores, return_dtype=pl.Float64).alias("score")
        length = pl.col("end_s") - pl.col("start_s")
        by = [pl.col("score").neg(), length, "entry_id"]  # of equals, the one that cites less time
        return rows.with_columns(score).sort(by).match_to_schema(HIT_SCHEMA)

    def _named(self, rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
        video = (
            pl.col("asset_id").replace_strict(self._names, default="", return_dtype=pl.String).alias("video")
        )
        return rows.with_columns(video).select(schema.names()).match_to_schema(schema)

    @cached_property
    def _names(self) -> dict[str, str]:
        """First video name of every asset that is present."""
        present = self._read("names").filter(pl.col("missing_since").is_null())
        names = present.sort("name", descending=True)
        return dict(zip(names["asset_id"].to_list(), names["name"].to_list(), strict=True))

    @cached_property
    def _inactive(self) -> list[str]:
        """Producers of entries that the default view leaves out, since another is active."""
        active = set(self._reader.view().values())
        writing = self._read("producers").filter(~pl.col("kind").is_in(DERIVED))
        return sorted(set(writing["producer_id"].to_list()) - active)

    @cached_property
    def _nameless(self) -> list[str]:
        """Assets that no name leads to any more: overwritten or missing. Their entries are not shown."""
        return sorted(set(self._read("videos")["asset_id"].to_list()) - set(self._names))

    def asset_ids(self, video: str) -> list[str]:
        """Assets that ``video`` means: a video name, the end of one path (``lec.mp4``), or an asset id.

        Raises:
            UsageError: no video has this name, or it is the end of several.
        """
        names = self._read("names").select("name", "asset_id").unique()
        exact = names.filter((pl.col("name") == video) | (pl.col("asset_id") == video))
        found = exact if len(exact) else names.filter(pl.col("name").str.ends_with(f"/{video}"))
        ids = sorted(set(found["asset_id"].to_list()))
        if not ids:
            raise UnknownNameError("video", video, sorted(set(names["name"].to_list()))[:20])
        if len(ids) > 1 and not len(exact):
            raise UsageError(f"{video!r} is the end of several: {', '.join(sorted(found['name'].to_list()))}")
        return ids

    def producer_id(self, beginning: str) -> str:
        """The full id of a producer of entries, from the first digits of it.

        Raises:
            UsageError: no producer begins so, or several do.
        """
        writing = self._read("producers").filter(~pl.col("kind").is_in(DERIVED))
        rows = writing.select("producer_id", "component", "scale").iter_rows()
        return by_beginning({key: what_it_makes(*what) for key, *what in rows}, beginning)

    def _where(
        self,
        *,
        video: str | None = None,
        kind: str | None = None,
        between: Span | None = None,
        producer: str | None = None,
        every: bool = False,
    ) -> str:
        """A filter; ``every``: whether producers that are not active count too."""
        terms = []
        if producer is not None:
            terms.append(sql_equals("producer_id", self.producer_id(producer)))
        elif self._inactive and not every:
            terms.append(f"NOT ({sql_in('producer_id', self._inactive)})")
        if video is not None:
            terms.append(sql_in("asset_id", self.asset_ids(video)))
        if kind is not None:
            if kind not in KINDS:
                raise UnknownNameError("kind", kind, list(KINDS))
            terms.append(sql_equals("kind", kind))
        if self._nameless:
            terms.append(f"NOT ({sql_in('asset_id', self._nameless)})")
        if between is not None:
            terms.append(f"start_s < {sql_literal(between.end_s)} AND end_s > {sql_literal(between.start_s)}")
        return _and(*terms)

    def _read(self, table: str, where: str = "", columns: list[str] | None = None) -> pl.DataFrame:
        rows = self._reader.dataset(table).to_table(filter=where or None, columns=columns)
        frame = pl.from_arrow(rows)
        if not isinstance(frame, pl.DataFrame):
            raise IntegrityError(f"table {table} is not a table")
        return frame


def _and(*terms: str) -> str:
    return " AND ".join(f"({term})" for term in terms if term)


def _fuse(*rankings: dict[str, float]) -> dict[str, float]:
    """Reciprocal rank fusion: the sum over rankings of ``1 / (RRF_K + rank)``, ranks from 1."""
    fused: dict[str, float] = {}
    for ranking in rankings:
        ordered = sorted(ranking.items(), key=lambda item: (-item[1], item[0]))
        for rank, (entry_id, _) in enumerate(ordered, start=1):
            fused[entry_id] = fused.get(entry_id, 0.0) + 1.0 / (RRF_K + rank)
    return fused


def _embedder(producer: Producer, profile: Profile) -> Embedder[Any]:
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
