"""A small library whose entries a test writes down, with records and vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evicat.catalog.context import context_hash, embedded_in
from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.query import Catalog
from evicat.catalog.tagging.done import Done
from evicat.catalog.tagging.run import run
from evicat.catalog.tagging.vocabulary import Vocabulary
from evicat.catalog.tagging.work import find_work
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.identity import ModelRef, Producer, Unit, entry_id
from evicat.schemas.model import Model, content_hash
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.recipe import EmbedderOptions, Profile
from evicat.schemas.span import US, Span
from evicat.storage.reader import Reader
from evicat.storage.store import Store

WINDOW_S = 10
AXES = ("kitchen", "street", "rain", "hello")
"""What the embedder of these tests knows: one number for each word, and one for all else."""


class AxesEmbedder(Embedder[Model]):
    """A vector says how often a text has each of ``AXES``."""

    component: ClassVar[str] = "axes"
    version: ClassVar[int] = 1
    options_class: ClassVar[type[Model]] = Model

    def __init__(self) -> None:
        super().__init__(EmbedderOptions(name="axes", model="axes"), Model(), Profile())
        self.embedded = 0

    @property
    def model(self) -> ModelRef:
        return ModelRef(name="axes", digest="ab" * 32)

    @property
    def dimension(self) -> int:
        return len(AXES) + 1

    def parts(self, text: str) -> list[str]:
        return [text] if text.strip() else []

    def embed(self, parts: list[str]) -> Any:
        self.embedded += len(parts)
        return np.stack([self._vector(part) for part in parts])

    def embed_query(self, query: str) -> Any:
        return self._vector(query)

    def _vector(self, text: str) -> Any:
        words = text.lower()
        counts = [float(words.count(axis)) for axis in AXES]
        vector = np.array([*counts, 0.0 if any(counts) else 1.0], np.float32)
        return vector / np.linalg.norm(vector)


SIGHT = Producer(kind="local", scale="local-10s", component="sight", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)


def embedding(source: Producer) -> Producer:
    made = AxesEmbedder()
    return Producer(
        kind="embedding", scale="vectors", component=made.component, version=made.version,
        model=made.model, options={}, reads=(source.producer_id,),
    )  # fmt: skip


def asset_id(video: str) -> str:
    return content_hash(video)


def unit(video: str, producer: Producer) -> Unit:
    return Unit(
        asset_id=asset_id(video),
        producer_id=producer.producer_id,
        kind=producer.kind,
        scale=producer.scale,
    )


def asset(video: str, windows: int) -> Asset:
    facts = VideoFacts(
        stream_index=0, codec="h264", width=64, height=48, time_base="1/90000", origin_pts=0, frame_count=1
    )
    return Asset(
        asset_id=asset_id(video),
        source_id=asset_id(video),
        size_bytes=1,
        container="mov,mp4",
        duration_us=windows * WINDOW_S * US,
        origin_us=0,
        video=facts,
    )


class Library:
    """A catalog at ``path``; every video has a window of ten seconds for each of its texts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with Store.connect(path, write=True, create=True) as store:
            store.add_root(Root("r", "folder", "/media"))

    def write(
        self,
        video: str,
        texts: Sequence[str],
        *,
        producer: Producer = SIGHT,
        records: Sequence[dict[str, Any]] = (),
        flags: Sequence[str] = (),
        embed: bool = True,
    ) -> list[str]:
        """Entries of a video, in place of what was there; their ids. ``records``: of the first windows."""
        with Store.connect(self.path, write=True) as store:
            store.add_name(VideoName("r", video, asset_id(video), video, FileStamp(1, 2, 3, 4)))
            store.add_asset(asset(video, len(texts)))
            store.add_producer(producer)
            of = unit(video, producer)
            entries = [
                Entry(
                    entry_id=entry_id(of, at * WINDOW_S * US, 0),
                    unit_id=of.unit_id,
                    asset_id=of.asset_id,
                    producer_id=of.producer_id,
                    kind=producer.kind,
                    scale=producer.scale,
                    span=_span(at),
                    text=text,
                    record=json.dumps(records[at] if at < len(records) else {}),
                    flags=tuple(flags),
                )
                for at, text in enumerate(texts)
            ]
            store.open(of)
            for entry in entries:
                store.write(of, WindowResult(span=entry.span, outcome=Outcome.DONE, entries=(entry,)))
            store.close(of, complete=True)
            if embed:
                self._embed(store, video, producer, entries)
        return [entry.entry_id for entry in entries]

    def write_with_packaged_vectors(self, video: str, texts: Sequence[str]) -> None:
        """With vectors of the packaged model."""
        entry_ids = self.write(video, texts, embed=False)
        model = EmbedderOptions(name="sentence-transformers", model="packaged:all-MiniLM-L6-v2")
        embedder = load_embedder(model, Profile())
        made = Producer(
            kind="embedding", scale="vectors", component=embedder.component, version=embedder.version,
            model=embedder.model, options=embedder.options.model_dump(mode="json"),
            reads=(SIGHT.producer_id,),
        )  # fmt: skip
        own, of = unit(video, made), unit(video, SIGHT)
        same = {name: getattr(of, name) for name in ("unit_id", "asset_id", "producer_id", "kind", "scale")}
        vectors = tuple(
            Vector(**same, entry_id=entry_id, span=_span(at), part=0, vector=tuple(map(float, row)))
            for at, (entry_id, row) in enumerate(zip(entry_ids, embedder.embed(list(texts)), strict=True))
        )
        whole = Span(0, len(texts) * WINDOW_S * US)
        with Store.connect(self.path, write=True) as store:
            store.add_producer(made)
            store.open(own)
            store.write(own, WindowResult(span=whole, outcome=Outcome.DONE, vectors=vectors))
            store.close(own, complete=True)

    def _embed(self, store: Store, video: str, producer: Producer, entries: Sequence[Entry]) -> None:
        made, embedder = embedding(producer), AxesEmbedder()
        store.add_producer(made)
        own = unit(video, made)
        same = ("entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale", "span")
        vectors = tuple(
            Vector(
                **{name: getattr(entry, name) for name in same},
                part=0,
                vector=tuple(map(float, embedder.embed([entry.text])[0])),
            )
            for entry in entries
        )
        whole = Span(0, entries[-1].span.end_us)
        store.open(own)
        read = context_hash(embedded_in(whole, entries))
        store.write(own, WindowResult(span=whole, outcome=Outcome.DONE, vectors=vectors, context_hash=read))
        store.close(own, complete=True)

    def tag(self, tagger: Any, *vocabularies: Vocabulary, **options: Any) -> Done:
        """Tag what is left; ``tagger`` is one, or makes one of a store."""
        max_calls = options.pop("max_calls", None)
        with Store.connect(self.path, write=True) as store:
            made = tagger(store) if callable(tagger) else tagger
            work = find_work(store.reader(), made, vocabularies, **options)
            return run(store, work, max_calls=max_calls)

    def left(self, tagger: Any, *vocabularies: Vocabulary, **options: Any) -> int:
        """How many units are left to tag."""
        return find_work(self.reader, tagger, vocabularies, **options).units

    @property
    def reader(self) -> Reader:
        return Reader.open(self.path)

    @property
    def catalog(self) -> Catalog:
        return Catalog.open(str(self.path))

    def rows(self, table: str) -> list[dict[str, Any]]:
        return list(self.reader.dataset(table).to_table().to_pylist())

    def factors(self) -> dict[str, list[str]]:
        """By text: the factors that entries carry."""
        return {row["text"]: row["factors"] for row in self.rows("entries")}


def _span(at: int) -> Span:
    return Span(at * WINDOW_S * US, (at + 1) * WINDOW_S * US)


def vocabulary(*factors: dict[str, Any], version: int = 1, **more: Any) -> Vocabulary:
    """One called ``place``, for local entries and speech, whose words are looked for in the text."""
    facts = {"vocabulary": "place", "version": version, "kinds": ["local", "speech"], "fields": ["text"]}
    return Vocabulary.model_validate(facts | {"factors": factors} | more)


def factor(name: str, **more: Any) -> dict[str, Any]:
    return {"id": f"place:{name}", "descriptor": f"a {name}", "words": [name]} | more


KITCHEN, STREET = factor("kitchen"), factor("street")
PLACES = vocabulary(KITCHEN, STREET)
TEXTS = ("A kitchen.", "A street in the rain.", "A kitchen on a street.", "Nothing of note.")
