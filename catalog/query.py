"""Reading a catalog: what videos it holds, what is written about them, and where a thing is said or seen.

    from evicat.catalog import Catalog

    catalog = Catalog.open("my.catalog")
    catalog.search("thanks for watching", limit=5)

Every answer is a polars frame with one declared schema, whatever matched: those of
``evicat.catalog.reading.columns``.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from evicat.catalog.cast import cast_frame
from evicat.catalog.embedders.base import Embedder
from evicat.catalog.media_files import MediaFiles
from evicat.catalog.reading import arguments, ask_sql, hits, serialize
from evicat.catalog.reading import tags as reading_tags
from evicat.catalog.reading.columns import (
    CITED_FRAME_SCHEMA,
    HIT_SCHEMA,
    LINK_COLUMNS,
    SUPPORT_SCHEMA,
)
from evicat.catalog.reading.filters import Between, OneOrMore, Where, both, span_of
from evicat.catalog.reading.rerank import RERANKED, Reranker, reranked
from evicat.catalog.reading.search import CANDIDATES, MODES, MOST, Mode, Query, QueryVector, first_depth
from evicat.catalog.reading.shown import Shown
from evicat.catalog.reading.views import View, matched_removal, named_view
from evicat.schemas.asset import Asset
from evicat.schemas.errors import CatalogError, UnknownNameError, UsageError
from evicat.schemas.places import expanded
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US, Span
from evicat.storage.reader import Reader
from evicat.storage.roster import by_beginning, what_it_makes
from evicat.storage.rows import DEFAULT_VIEW
from evicat.storage.snapshots import reader_at
from evicat.storage.sql import sql_equals, sql_in
from evicat.storage.tables import SUPPORT
from evicat.storage.views import stored_views

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from evicat.catalog.media.frame import Frame
    from evicat.catalog.reading.media import Frames, SourceMedia
    from evicat.schemas.entry import WindowResult
    from evicat.schemas.identity import Unit

__all__ = ["MODES", "Catalog", "Mode"]


class Catalog:
    """A catalog at one head, through one view; :meth:`refresh` shows what was written since.

    Threads may share it. A process that was forked from one that had it open must open its own: the storage
    engine's threads do not live on in it. It can be pickled, and is opened anew where it is unpickled.
    """

    def __init__(
        self,
        reader: Reader,
        profile: Profile,
        view: View | None = None,
        *,
        uri: str = "",
        at: str | None = None,
    ) -> None:
        """``view``: None for the default one. ``uri`` and ``at``: what it was opened by."""
        self._shown = Shown(reader, view or View(DEFAULT_VIEW, reader.view()), profile)
        self._profile = profile
        self._uri, self._at = uri, at

    @classmethod
    def open(cls, uri: str, profile: Profile | None = None, *, at: str | int | None = None) -> Catalog:
        """Open for reading; nothing is created or changed.

        Args:
            at: A snapshot's name, or the number of an earlier head; None: as the catalog is now.

        Raises:
            CatalogError: there is no catalog, or it is of a newer schema.
            UnknownNameError: there is no such snapshot or head.
        """
        at = None if at is None else str(at)
        reader = Reader.open(uri) if at is None else reader_at(uri, at)
        return cls(reader, profile or Profile(), uri=str(uri), at=at)

    @property
    def view_name(self) -> str:
        return self._shown.view.name

    @property
    def uri(self) -> str:
        """What it was opened by."""
        return self._uri

    @property
    def snapshot(self) -> str | None:
        """The snapshot's name, or number of a head, that it was opened at; None: as it is now."""
        return self._at

    @property
    def written(self) -> str:
        """When its head was written, as ISO 8601 in UTC."""
        return self._shown.reader.head.written

    def refresh(self) -> Catalog:
        """The catalog as it is now, through the view of the same name; an opened snapshot stays as it is."""
        fresh = Catalog.open(self._uri, self._profile, at=self._at)
        view = self._shown.view
        renewed = fresh.view(view.name)._shown.view
        return fresh._through(View(renewed.name, renewed.places, view.only, view.without))

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._uri, self._profile, self._at, self.version, self._shown.view)

    @property
    def version(self) -> int:
        """Number of the head that it shows: ``open(uri, at=str(version))`` shows the same again."""
        return self._shown.reader.version

    # Views

    def views(self) -> pl.DataFrame:
        """The stored views: ``view, kind, scale, producer_id``."""
        return self._shown.read("views").select("view", "kind", "scale", "producer_id").sort(pl.all())

    def view(self, name: str) -> Catalog:
        """The same catalog through another view: a stored one, ``w/o narrative`` or ``+narrative``.

        Raises:
            UnknownNameError: there is none of this name.
        """
        stored = stored_views(self._shown.reader)
        made = self._shown.read("units").filter(pl.col("kind") == "narrative")
        narratives = {
            ("narrative", scale): made_by
            for scale, made_by in made.select("scale", "producer_id").iter_rows()
        }
        return self._through(named_view(name, stored, narratives))

    def only(self, entry_ids: Collection[str]) -> Catalog:
        """Through this view, but nothing else than these entries (cited-only; ASSEMBLE, App. G)."""
        return self._through(self._shown.view.keeping(arguments.entry_ids(entry_ids)))

    def without(self, entry_ids: Collection[str]) -> Catalog:
        """Through this view, without these entries (remove-cited)."""
        return self._through(self._shown.view.removing(arguments.entry_ids(entry_ids)))

    def without_random(self, cited: Collection[str], *, seed: int, video: str | None = None) -> Catalog:
        """Without as many entries at random that are like the cited ones in duration and length of text.

        Chosen among narratives and local entries of ``video``; see :func:`~.reading.views.matched_removal`.
        """
        shown = self.entries(video, kind=["narrative", "local"])
        return self.without(matched_removal(shown, arguments.entry_ids(cited), seed=seed))

    def _through(self, view: View) -> Catalog:
        return Catalog(self._shown.reader, self._profile, view, uri=self._uri, at=self._at)

    # What there is

    def videos(self, *, missing: bool = False) -> pl.DataFrame:
        """One row per video name: ``video, asset_id, duration_s, width, height, status, message, ...``.

        ``missing``: also those whose file is gone, with ``missing_since``.
        """
        names, videos = self._shown.read("names"), self._shown.read("videos")
        if not missing:
            names = names.filter(pl.col("missing_since").is_null())
        return (
            names.select(pl.col("name").alias("video"), "asset_id", "benchmark", "split", "missing_since")
            .join(videos.drop("facts"), on="asset_id", how="left")
            .sort("video")
        )

    def units(self) -> pl.DataFrame:
        """One row per unit: asset, producer, scale, counts of outcomes, cost."""
        return self._shown.read("units")

    def producers(self) -> pl.DataFrame:
        """One row per producer."""
        return self._shown.read("producers")

    def active(self) -> pl.DataFrame:
        """What this view shows: ``kind, scale, producer_id``; of ``embedding`` the embedder's id."""
        rows = [(*place, producer_id) for place, producer_id in self._shown.view.places.items()]
        schema = dict.fromkeys(("kind", "scale", "producer_id"), pl.String)
        return pl.DataFrame(rows, schema=schema, orient="row").sort("kind", "scale")

    def coverage(self, video: str | None = None) -> pl.DataFrame:
        """One row per window, of all producers: span, outcome, error, attempts."""
        rows = self._shown.read("coverage", self._shown.where(video=video, every=True).shared)
        return rows.sort("asset_id", "kind", "scale", "start_s")

    def asset(self, asset_id: str) -> Asset | None:
        """The facts of an asset; None where its file could not be read."""
        return self._shown.asset(asset_id)

    # Entries

    def entries(
        self,
        video: OneOrMore | None = None,
        *,
        kind: OneOrMore | None = None,
        scale: OneOrMore | None = None,
        between: Between | None = None,
        producer: str | None = None,
        factors: OneOrMore | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> pl.DataFrame:
        """Entries in order of video, kind, scale and time.

        Args:
            video: A video name, the end of its path, or an asset id; or several.
            between: Those that overlap it.
            producer: The first digits of one; None: those of the view.
            factors: ``place:kitchen and not people:crowd``: ids with ``and``, ``or``, ``not`` and brackets;
                several expressions must all hold.
            text: Those that hold these characters, in any case.
            limit: At most so many, whichever are come upon first.

        Raises:
            UnknownNameError: no such video, kind, scale, producer or factor.
            UsageError: a reversed or empty span.
        """
        where = self._shown.where(
            video=video,
            kind=kind,
            scale=scale,
            between=between,
            producer=producer,
            factors=factors,
            text=text,
        )
        limit = limit if limit is None else arguments.whole("limit", limit, 1)
        found = self._shown.entries(where.all, limit)
        return found.sort("video", "kind", "scale", "start_s", "entry_id")

    def entry(self, entry_id: str) -> dict[str, Any]:
        """One entry, whichever view shows it.

        Raises:
            UsageError: there is none of this id.
        """
        found = self._shown.entry(arguments.words("entry", entry_id))
        if found is None:
            raise UsageError(f"no entry of this catalog has the id {entry_id!r}; `entries` lists them")
        return found

    def speech(self, video: str, *, between: Between | None = None) -> pl.DataFrame:
        """What is said in a video, in time order, with other sounds that its subtitles describe.

        Speech that is doubted is among it, and says so in ``flags``.
        """
        return self.entries(video, kind=["speech", "sound"], between=between).sort("start_s", "entry_id")

    def overlapping(self, video: str, between: Between, *, kind: OneOrMore | None = None) -> pl.DataFrame:
        """Entries of all kinds that share time with a span, in time order."""
        return self.entries(video, kind=kind, between=between).sort("start_s", "end_s", "entry_id")

    def around(
        self, entry_id: str, *, before: float = 30.0, after: float = 30.0, kind: OneOrMore | None = None
    ) -> pl.DataFrame:
        """Entries of the same video from ``before`` seconds before an entry to ``after`` seconds behind it.

        Itself included, in time order.
        """
        before, after = arguments.seconds("before", before), arguments.seconds("after", after)
        entry = self.entry(entry_id)
        span = (max(0.0, entry["start_s"] - before), entry["end_s"] + after)
        return self.overlapping(entry["asset_id"], span, kind=kind)

    def scan(self, table: str = "entries") -> pl.LazyFrame:
        """A table for large reads, lazily; of ``entries`` and vectors what the view shows.

        Filters and the choice of columns are handed down to the storage engine.

        Raises:
            UnknownNameError: there is no such table.
        """
        return self._shown.scan(table)

    def dataset(self, table: str = "entries") -> Any:
        """A table of this head as ``lance.LanceDataset``, for DuckDB, Ray or pyarrow; all of its rows.

        Raises:
            UnknownNameError: there is no such table.
        """
        return self._shown.reader.dataset(table).raw

    def sql(self, query: str) -> pl.DataFrame:
        """The answer of a ``SELECT`` over the catalog's tables, by polars; no file is read, none written.

        Raises:
            UsageError: the query cannot be understood, or is not a ``SELECT`` over these tables.
        """
        return ask_sql.answer(query, {name: self.scan(name) for name in self._shown.reader.names()})

    # Search

    def search(
        self,
        query: str = "",
        *,
        mode: Mode | None = None,
        limit: int = 10,
        video: OneOrMore | None = None,
        kind: OneOrMore | None = None,
        scale: OneOrMore | None = None,
        between: Between | None = None,
        producer: str | None = None,
        factors: OneOrMore | None = None,
        text: str | None = None,
        vector: QueryVector | None = None,
        per_video: int | None = None,
        rerank: Reranker | None = None,
    ) -> pl.DataFrame:
        """The best ``limit`` entries for ``query``, best first; fewer only where fewer match.

        ``score`` is BM25 for ``text``, cosine similarity for ``vector``, and reciprocal rank fusion of both
        for ``hybrid``: higher is better, comparable within one answer only. Of equal scores the shorter entry
        stands first, then the lower id; of more than 512 of one score, 512 are put in that order. Withheld
        speech (``SPEECH_WITHHELD``) is never found. A blank query finds nothing. What stands in double quotes
        is a phrase that has to be there.

        Args:
            mode: ``hybrid``, ``text`` or ``vector``; None: ``hybrid``, or ``vector`` without any words.
            vector: The query, embedded already; beside ``query`` it takes part in ``hybrid``.
            per_video: At most so many of each asset.
            rerank: Scores the best 50, or five times ``limit``, once more; ``score`` is what it says. Such as
                :class:`~evicat.catalog.reading.rerank.CrossEncoderReranker`.

        The other filters are those of :meth:`entries`; they apply before the best are taken.

        Raises:
            UsageError: unknown names, a limit or vector that does not fit, or a catalog without vectors that
                is asked for them.
        """
        limit = arguments.whole("limit", limit, 1, MOST)
        query = arguments.words("query", query)
        mode = mode or ("vector" if vector is not None and not query.strip() else "hybrid")
        asked = Query(query, mode, vector)
        where = self._shown.where(
            video=video,
            kind=kind,
            scale=scale,
            between=between,
            producer=producer,
            factors=factors,
            text=text,
        )
        if rerank is not None and not query.strip():
            raise UsageError("rerank reads the words of a query: give some beside the vector")
        if asked.is_blank:
            return HIT_SCHEMA.to_frame()
        if rerank is None:
            return self._ranked(asked, where, limit, per_video)
        found = self._ranked(asked, where, min(MOST, max(RERANKED, limit * CANDIDATES)), per_video)
        return reranked(found, query, rerank).head(limit)

    def _ranked(self, asked: Query, where: Where, limit: int, per_video: int | None) -> pl.DataFrame:
        mode = asked.mode
        depth = first_depth(mode, limit, may_lose=per_video is not None or bool(where.entries))
        while True:
            ranked, has_more = self._shown.searcher.rank(asked, where, depth)
            found = self._shown.hits(ranked, where, limit, per_video)
            if len(found) >= limit or not has_more:
                return found
            depth *= 4

    def moments(self, query: str = "", *, gap: float = 0.0, limit: int = 10, **filters_: Any) -> pl.DataFrame:
        """:meth:`search`, with hits of one video at most ``gap`` seconds apart made into one span."""
        limit = arguments.whole("limit", limit, 1, MOST)
        found = self.search(query, limit=min(MOST, limit * CANDIDATES), **filters_)
        return hits.moments(found, gap).head(limit)

    def occurrences(self, text: str, **filters_: Any) -> pl.DataFrame:
        """Every entry with all words of ``text``, in order of video and time: ``[0]`` is the first.

        What stands in double quotes has to be there word for word. The filters are those of :meth:`entries`.
        """
        where = self._shown.where(**filters_)
        found = self._shown.saying(arguments.words("text", text), where)
        return found.sort("video", "start_s", "end_s", "entry_id")

    def related(
        self,
        anchors: pl.DataFrame,
        found: pl.DataFrame,
        relation: hits.Relation,
        *,
        within: float | None = None,
    ) -> pl.DataFrame:
        """What of ``found`` stands before, after, during or over one of ``anchors``, in the same video.

        "When X is said, what is seen within 10 s": ``related(occurrences(X), entries(kind="local"), "after",
        within=10)``. Both are frames of this class's answers.
        """
        return hits.related(anchors, _with_score(found), relation, within)

    def together(self, first: pl.DataFrame, second: pl.DataFrame, *, within: float) -> pl.DataFrame:
        """Pairs of the two, of one video, that a span of ``within`` seconds holds both of."""
        return hits.together(first, _with_score(second), within)

    # What entries rest on

    def cited_frames(
        self,
        video: OneOrMore | None = None,
        *,
        kind: OneOrMore | None = None,
        between: Between | None = None,
        producer: str | None = None,
    ) -> pl.DataFrame:
        """One row per frame that an entry cites: ``entry_id, asset_id, shown_width, pts, time_s``."""
        where = self._shown.where(video=video, kind=kind, between=between, producer=producer)
        rows = self._shown.read("entries", where.all, ["entry_id", "asset_id", "shown_width", "frames"])
        cited = rows.filter(pl.col("frames").list.len() > 0).explode("frames").unnest("frames")
        return cited.match_to_schema(CITED_FRAME_SCHEMA).sort("asset_id", "pts", "entry_id")

    def cast(self, video: str, *, producer: str | None = None) -> pl.DataFrame:
        """Who acts in a video, as its narratives call them: ``identity, descriptor, formerly, ...``.

        Of the view's producers, or of the one whose id begins with ``producer``.
        """
        where = self._shown.where(video=video, kind="narrative", producer=producer)
        columns = ["entry_id", "scale", "producer_id", "start_s", "end_s", "record"]
        return cast_frame(self._shown.read("entries", where.all, columns))

    def supports(
        self, video: str | None = None, *, entry: str | None = None, producer: str | None = None
    ) -> pl.DataFrame:
        """One row per sentence of the narratives of a video, or of one: ``role``, ``text``, ``rests_on``.

        Of the active producer of supports, or of the one whose id begins with ``producer``. A sentence that
        no entry carries has an empty list.
        """
        if (video is None) == (entry is None):
            raise UsageError("supports are those of a video or of an entry: give one of them")
        assets = [self.entry(entry)["asset_id"]] if entry else self.asset_ids(video or "")
        made_by = self._supporting(producer)
        of_assets = sql_in("asset_id", assets)
        units = self._shown.read("units", both(sql_equals("producer_id", made_by), of_assets), ["unit_id"])
        rows = self._shown.read("supports", sql_in("support_unit_id", units["unit_id"].to_list()))
        if entry:
            rows = rows.filter(pl.col("entry_id") == entry)
        places = self._places(of_assets)
        rests_on = [
            [places[link["entry_id"]] | {"score": link["score"]} for link in links]
            for links in rows["rests_on"].to_list()
        ]
        rows = rows.with_columns(pl.Series("rests_on", rests_on, SUPPORT_SCHEMA["rests_on"]))
        return self._shown.named(rows, SUPPORT_SCHEMA).sort("start_s", "entry_id", "sentence")

    def supported_by(self, entry: str, *, producer: str | None = None) -> pl.DataFrame:
        """The inverse: the sentences that rest on an entry, as :meth:`supports` gives them."""
        found = self.supports(self.entry(entry)["asset_id"], producer=producer)
        links = pl.col("rests_on").list.eval(pl.element().struct.field("entry_id") == entry)
        return found.filter(links.list.any())

    def _places(self, of_assets: str) -> dict[str, dict[str, Any]]:
        entries = self._shown.read("entries", of_assets, [name for name in LINK_COLUMNS if name != "score"])
        return {row["entry_id"]: row for row in entries.to_dicts()}

    def _supporting(self, beginning: str | None) -> str:
        """The id of a producer of supports; empty where none is active."""
        if beginning is None:
            places = self._shown.view.places.items()
            return next((producer_id for (kind, _), producer_id in places if kind == SUPPORT), "")
        making = self._shown.read("producers").filter(pl.col("kind") == SUPPORT)
        rows = making.select("producer_id", "component", "scale").iter_rows()
        return by_beginning({key: what_it_makes(*what) for key, *what in rows}, beginning)

    # Tags

    def tags(
        self,
        video: OneOrMore | None = None,
        *,
        factor: str | None = None,
        verdict: str | None = None,
        between: Between | None = None,
        producer: str | None = None,
        every_tagger: bool = False,
    ) -> pl.DataFrame:
        """One row per tag: entry, factor, verdict, value, confidence, where it stands, and what made it.

        Args:
            factor: Of this one, also under earlier ids.
            verdict: ``yes``, or ``abstained``.
            producer: Of entries of this one.
            every_tagger: Also of taggers that are not the active ones of their factor.

        Raises:
            UnknownNameError: no such video, factor, verdict or producer.
        """
        where = self._shown.where(video=video, between=between, producer=producer)
        return reading_tags.tags(
            self._shown, where, factor=factor, verdict=verdict, every_tagger=every_tagger
        )

    def factor_counts(
        self, by: reading_tags.By = "factor", *, bin_seconds: float = 60.0, **filters_: Any
    ) -> pl.DataFrame:
        """Entries that carry each factor, and the seconds they cover: in all, by ``video``, or by ``time``.

        Seconds that several of them cover count once. By ``time``: an entry counts, with all its seconds, in
        the bin of its video in which it begins. The filters are those of :meth:`entries`.
        """
        return reading_tags.counts(self._shown, self._shown.where(**filters_), by, bin_seconds)

    def cooccurrence(self, **filters_: Any) -> pl.DataFrame:
        """Pairs of factors that entries carry both of: ``entries``, ``share`` of either, ``lift``.

        The filters are those of :meth:`entries`: ``kind="local"`` keeps narratives, which carry much at once,
        out of it.
        """
        return reading_tags.together(self._shown, self._shown.where(**filters_))

    def split_factors(self) -> dict[str, tuple[str, ...]]:
        """Factors that became several, by their former id: tags of these are found under that alone."""
        return dict(self._shown.known_factors.split)

    def vocabularies(self) -> pl.DataFrame:
        """Every version of a vocabulary that tagged this catalog: ``vocabulary, version, added, digest``."""
        rows = self._shown.read("vocabularies", "", ["vocabulary", "version", "added", "digest"])
        return rows.sort("vocabulary", "version")

    # The media

    def media_files(self, media_roots: Sequence[str | Path] = ()) -> MediaFiles:
        """Finds the files of assets: where they were registered, or anywhere below ``media_roots``."""
        return self._media.files(media_roots)

    def frames(
        self,
        of: str,
        between: Between | None = None,
        *,
        n: int | None = None,
        fps: float | None = None,
        max_frames: int = 64,
        width: int | None = None,
        media_roots: Sequence[str | Path] = (),
    ) -> Frames:
        """Frames of an entry, or of a span of a video, decoded from its file; a notebook shows them.

        Args:
            of: An entry id: the frames that it cites, unless ``n`` or ``fps`` is given; or a video.
            between: Of a video, its span; None: all of it.
            n: So many, at the middles of equal parts; without ``n`` and ``fps``, 8.
            fps: So many a second, but at most ``max_frames`` in all.
            width: Pixels at most; None: as the file has them.
            media_roots: Folders to look for the file in, where it is not where it was.

        Raises:
            UsageError: no such entry or video, no picture, or numbers that do not fit.
            AssetError: the file was not found, or cannot be decoded.
        """
        from evicat.catalog.reading.media import times_of

        asset_id, span, entry = self._stretch(of, between)
        times = times_of(span, n=n, fps=fps, max_frames=max_frames)
        if entry and entry["frames"] and n is None and fps is None:
            return self._media.of_entry(entry, width, media_roots)
        return self._media.of_span(asset_id, span, times, width, media_roots)

    def clip(
        self,
        of: str,
        path: str | Path,
        between: Between | None = None,
        *,
        media_roots: Sequence[str | Path] = (),
    ) -> Path:
        """Cut an entry, or a span of a video, out of its file, as a new MP4 at ``path``; returns its place.

        Upright pictures at their own times and 16 kHz mono sound; second 0 is the start of the span.

        Raises:
            UsageError: no such entry or video, a span outside, or a path that cannot be.
            AssetError: the file was not found, or cannot be decoded.
        """
        asset_id, span, _ = self._stretch(of, between)
        return self._media.clip(asset_id, span, expanded(path).absolute(), media_roots)

    def _stretch(self, of: str, between: Between | None) -> tuple[str, Span, dict[str, Any] | None]:
        """The asset and span that an entry, or a video and a span, mean; and the entry."""
        entry = self._shown.entry(arguments.words("of", of)) if between is None else None
        if entry:
            return entry["asset_id"], Span.from_seconds(entry["start_s"], entry["end_s"]), entry
        asset_id = self._one_asset(of)
        whole = Span(0, self._media.duration_us(asset_id))
        if between is None:
            return asset_id, whole, None
        inside = span_of(between).clip(whole)
        if inside is None:
            raise UsageError(f"{of} ends at {whole.end_s:g} s: nothing of it lies in {span_of(between)}")
        return asset_id, inside, None

    def cited_pictures(
        self, rows: Sequence[dict[str, Any]], *, media_roots: Sequence[str | Path] = ()
    ) -> Iterator[tuple[str, tuple[Frame, ...]]]:
        """The frames that entries of one asset cite, each with the entry's id, in one pass over the file.

        ``rows``: entries with frames, as :meth:`entries` gives them. They come as they are complete, at the
        size at which they were shown; frames that do not decode any more are missing.

        Raises:
            AssetError: the file was not found, or cannot be decoded.
        """
        return self._media.cited(rows, media_roots)

    def crop(
        self, video: str, time: float, box: Sequence[float], *, media_roots: Sequence[str | Path] = ()
    ) -> npt.NDArray[np.uint8]:
        """The part in ``box`` (x1, y1, x2, y2 in 1000 x 1000) of the frame on display at ``time`` seconds.

        ``(height, width, 3)`` RGB, at the resolution of the file.

        Raises:
            UsageError: no such video, or a time or box outside.
            AssetError: the file was not found, or cannot be decoded.
        """
        from evicat.catalog.reading.media import cropped

        asset_id = self._one_asset(video)
        length_us = self._media.duration_us(asset_id)
        time = arguments.seconds("time", time)
        if not time < length_us / US:
            raise UsageError(f"time must be from 0 to {length_us / US:g} s, got {time:g}")
        at_us = round(time * US)
        frames = self._media.of_span(asset_id, Span(0, at_us + 1), (at_us,), None, media_roots)
        if not frames:
            raise UsageError(f"{video} shows no picture at {time:g} s")
        return cropped(frames[-1].image, box)

    @cached_property
    def _media(self) -> SourceMedia:
        from evicat.catalog.reading.media import SourceMedia

        return SourceMedia(self._shown)

    def _one_asset(self, video: str) -> str:
        """The asset of a video: where its name stands for several, that which is present."""
        ids = self.asset_ids(video)
        return next((each for each in ids if each in self._shown.names), ids[0])

    def asset_ids(self, video: str) -> list[str]:
        """Assets that ``video`` means: a video name, the end of one path (``lec.mp4``), or an asset id.

        Raises:
            UsageError: no video has this name, or it is the end of several.
        """
        return self._shown.asset_ids(video)

    def producer_id(self, beginning: str) -> str:
        """The full id of a producer of entries, from the first digits of it.

        Raises:
            UsageError: no producer begins so, or several do.
        """
        return self._shown.producer_id(beginning)

    # Reading out

    def listing(
        self,
        video: str,
        *,
        kind: OneOrMore | None = None,
        between: Between | None = None,
        producer: str | None = None,
    ) -> pl.DataFrame:
        """Entries for people, with ``rank`` from 1: as :meth:`serialize` has them, then other kinds."""
        rows = self.entries(video, kind=kind, between=between, producer=producer)
        order = pl.col("kind").replace_strict(
            {"narrative": 0, "local": 1, "objects": 2, "speech": 3, "sound": 4}, return_dtype=pl.Int8
        )
        return rows.sort(order, *serialize.ORDER).with_row_index("rank", offset=1)

    def serialize(
        self,
        video: OneOrMore,
        *,
        between: Between | None = None,
        form: serialize.Form = "assemble",
        max_tokens: int | None = None,
        count_tokens: Any = None,
        over_budget: serialize.OverBudget = "raise",
    ) -> serialize.Serialized:
        """The view's narratives and local entries as readers are given them.

        ``str`` of it is the text; ``cited(answer)`` gives the entries that an answer cites. Arguments and
        errors are those of :func:`evicat.catalog.reading.serialize.serialize`.
        """
        return serialize.serialize(
            self.entries(video, kind=["narrative", "local"], between=between),
            form=form,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            over_budget=over_budget,
        )

    def quality(self, video: str | None = None, *, seed: int = 0) -> pl.DataFrame:
        """The score card of each producer: :func:`evicat.catalog.quality.quality`."""
        from evicat.catalog.quality import quality

        return quality(self, video, seed=seed)

    def dialogue(self, video: str | None = None) -> pl.DataFrame:
        """Speech by source and language, with what is doubted: :func:`~.measures.dialogue.dialogue`."""
        from evicat.catalog.measures.dialogue import dialogue

        return dialogue(self, video)

    def stored(self, unit: Unit) -> dict[int, WindowResult]:
        """Results of a unit by start of their window; none where it was made from other inputs, or never."""
        from evicat.storage.results import committed_results

        inputs_hash, results = committed_results(self._shown.reader, unit)
        return results if inputs_hash == unit.inputs_hash else {}

    def vectors(self, producer: str, *, video: str | None = None) -> dict[str, pl.DataFrame]:
        """Stored vectors of a producer's entries, by vector table: ``entry_id, part, vector``."""
        where = both(self._shown.where(video=video, producer=producer).shared, "vector IS NOT NULL")
        columns = ["entry_id", "part", "vector"]
        return {name: self._shown.read(name, where, columns) for name in self._shown.reader.embedders()}

    def embedder_tables(self) -> list[str]:
        """The tables of vectors that the view searches."""
        shown = self._shown.view.producers
        return [name for name, made in self._shown.reader.embedders().items() if made.producer_id in shown]

    def embedders(self) -> dict[str, Embedder[Any]]:
        """The embedder that the view searches with, by its vector table, without its weights.

        Raises:
            UsageError: its package or weights are not here, or are others than made the vectors.
        """
        return self._shown.embedders

    def _repr_html_(self) -> str:
        videos = self.videos()
        kinds = self.scan().group_by("kind").len().sort("kind").collect()
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.iter_rows()) or "no entries"
        hours = (videos.unique("asset_id")["duration_s"].sum() or 0.0) / 3600
        view = html.escape(self._shown.view.name)
        return (
            f"<b>{html.escape(self._uri)}</b> at head {self.version}, view {view}: "
            f"{len(videos)} videos, {hours:.2f} h; {counts}"
        )


def _with_score(found: pl.DataFrame) -> pl.DataFrame:
    """Entries as hits, where they were not ranked."""
    return found if "score" in found.columns else found.with_columns(pl.lit(None, pl.Float64).alias("score"))


def _reopened(uri: str, profile: Profile, at: str | None, version: int, view: View) -> Catalog:
    """A pickled catalog in another process: at the head, and through the view, that it had.

    Raises:
        CatalogError: that head is gone.
    """
    again = f"open {uri} again, and for longer work open a snapshot of it: Catalog.open(uri, at=NAME)"
    try:
        catalog = Catalog.open(uri, profile, at=version if at is None else at)
    except UnknownNameError as error:
        gone = "a maintenance removed it" if at is None else f"the snapshot {at!r} was deleted"
        raise CatalogError(
            f"this catalog was pickled at head {version}, and {gone} since; {again}"
        ) from error
    if catalog.version != version:
        raise CatalogError(
            f"this catalog was pickled at head {version}, but the snapshot {at!r} is head {catalog.version} "
            f"now; {again}"
        )
    return catalog._through(view)
