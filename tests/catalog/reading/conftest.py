"""A shelf of videos whose entries a test writes down."""

import hashlib

import numpy as np
import pytest

from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.query import Catalog
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.recipe import EmbedderOptions, Profile
from evicat.schemas.span import Span
from evicat.storage.store import Store


class Shelf:
    def __init__(self, uri):
        self.uri = str(uri)
        embedder = load_embedder(
            EmbedderOptions(name="sentence-transformers", model="packaged:all-MiniLM-L6-v2"), Profile()
        )
        self.embedding = Producer(
            kind="embedding",
            scale="vectors",
            component=embedder.component,
            version=embedder.version,
            model=embedder.model,
            options=embedder.options.model_dump(mode="json"),
        )
        with Store.connect(uri, write=True, create=True) as store:
            store.add_root(Root(root_id="r", kind="folder", location="/media"))

    def asset_id(self, video):
        return hashlib.sha256(video.encode()).hexdigest()[:32]

    def write(self, video, maker, rows):
        """``rows``: ``(start, end, text)`` and a dict of other fields; ``vector`` in it is the entry's.

        Returns the ids of the entries.
        """
        with Store.connect(self.uri, write=True) as store:
            return self._write(store, video, maker, rows)

    def _write(self, store, video, maker, rows):
        asset_id = self.asset_id(video)
        store.add_name(VideoName("r", video, asset_id, video, FileStamp(1, 2, 3, 4)))
        store.add_producer(maker)
        unit = Unit(asset_id=asset_id, producer_id=maker.producer_id, kind=maker.kind, scale=maker.scale)
        results, vectors = {}, []
        for number, (start, end, text, *more) in enumerate(rows):
            fields = dict(*more)
            vector = fields.pop("vector", None)
            span = Span.from_seconds(start, end)
            entry = Entry(
                entry_id=entry_id(unit, span.start_us, number % 100),
                unit_id=unit.unit_id,
                asset_id=asset_id,
                producer_id=maker.producer_id,
                kind=fields.pop("kind", maker.kind),
                scale=maker.scale,
                span=span,
                text=text,
                **fields,
            )
            results.setdefault(span, []).append(entry)
            if vector is not None:
                vectors.append(self._vector(entry, vector))
        store.open(unit)
        whole = Span(0, max(span.end_us for span in results))
        entries = tuple(entry for made in results.values() for entry in made)
        store.write(unit, WindowResult(span=whole, outcome=Outcome.DONE, entries=entries))
        store.close(unit, complete=True)
        if vectors:
            self._write_vectors(store, unit, maker, whole, vectors)
        return [entry.entry_id for entry in entries]

    def _vector(self, entry, vector):
        same = ("entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale", "span")
        return Vector(**{name: getattr(entry, name) for name in same}, part=0, vector=vector)

    def _write_vectors(self, store, unit, maker, whole, vectors):
        embedding = self.embedding.model_copy(update={"reads": (maker.producer_id,)})
        store.add_producer(embedding)
        own = Unit(
            asset_id=unit.asset_id, producer_id=embedding.producer_id, kind="embedding", scale=unit.scale
        )
        store.open(own)
        store.write(own, WindowResult(span=whole, outcome=Outcome.DONE, vectors=tuple(vectors)))
        store.close(own, complete=True)

    @property
    def catalog(self):
        return Catalog.open(self.uri)


@pytest.fixture(scope="session")
def making_shelf():
    """Makes a shelf at a path."""
    return Shelf


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "shelf.catalog")


@pytest.fixture(scope="session", name="direction")
def _direction():
    """A vector of the packaged embedder's length: the given numbers, then zeros; of length 1."""

    def made(*weights):
        vector = np.zeros(384)
        vector[: len(weights)] = weights
        return tuple(float(value) for value in vector / np.linalg.norm(vector))

    return made
