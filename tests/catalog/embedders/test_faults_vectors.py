"""Vectors that are no vectors, texts that cannot be embedded, and models that change, up to the search."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from evicat.catalog.embedders import loaders
from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.parts import split_text
from evicat.catalog.embedders.vectors import check_query, query_vector, unit_rows
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.query import Catalog
from evicat.catalog.stages import embed
from evicat.schemas.entry import Entry
from evicat.schemas.errors import CatalogError, EvicatError, IntegrityError
from evicat.schemas.identity import ModelRef, entry_id
from evicat.schemas.model import Model
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.storage.reader import Reader
from evicat.storage.store import Store

RECIPE = """
name = "vectors"
[[scales]]
kind = "local"
window_seconds = 10
describer = "sight"
frames = { per_window = 1, max_width = 64 }
[embedder]
name = "words"
model = "a"
"""
TOPICS = ("dog", "phone", "treasure", "rain")
BAD = {"nan": float("nan"), "inf": float("inf"), "zeros": 0.0}


class NoOptions(Model):
    """It has none."""


class Words(Embedder[NoOptions]):
    """Counts four words; reads 50 words at once. Words of ``BAD`` make a row of such numbers."""

    component, version, options_class = "words", 1, NoOptions
    dimension = len(TOPICS)

    @property
    def model(self) -> ModelRef:
        return ModelRef(name=self.embedder.model)

    def parts(self, text):
        starts = lambda text: [at for at, letter in enumerate(text) if letter == " "]  # noqa: E731
        return split_text(text, starts, 50)

    def rows(self, parts):
        rows = np.array([[part.count(topic) for topic in TOPICS] for part in parts], np.float32)
        rows = np.pad(rows, ((0, 0), (0, self.dimension - len(TOPICS))), constant_values=0.01) + 0.001
        for row, part in zip(rows, parts, strict=True):
            row[:] = next((number for word, number in BAD.items() if word in part.split()), row)
        return rows

    def embed(self, parts):
        return unit_rows(self.rows(parts))

    def embed_query(self, query):
        check_query(query)
        return query_vector(self.embed(self.parts(query)), query, self.embedder.model)


@pytest.fixture(autouse=True)
def words(monkeypatch):
    """Recipes can name the embedder ``words``."""
    module = ModuleType("evicat_tests_words")
    module.Words = Words
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(loaders.EMBEDDERS, "words", f"{module.__name__}:Words")


def kit(model: str = "a") -> Kit:
    return Kit(parse_toml(Recipe, RECIPE.replace('"a"', f'"{model}"'), "test.toml"), Profile())


class Shelf:
    """A catalog of films, one entry per 10 s."""

    def __init__(self, making, path: Path) -> None:
        self.making, self.path = making, path

    def index(self, *texts: str, model: str = "a", film: str = "film.mp4") -> None:
        """Texts of the windows of a film, embedded as the recipe says."""
        parts = kit(model)
        asset = self.making.asset(film, windows=len(texts))
        job = Job(Path(film), asset, None, 0, None, "", parts)
        (source,) = job.units
        with Store.connect(self.path, write=True, create=True) as store:
            store.add_root(Root("r", "folder", "x"))
            store.add_name(VideoName("r", film, asset.asset_id, film, FileStamp(1, 2, 3, 4)))
            store.add_asset(asset)
            for producer in parts.producers:
                store.add_producer(producer)
            if not store.is_complete(source):
                store.open(source)
                for window, text in enumerate(texts):
                    store.write(source, self._result(source, window, text))
                store.close(source, complete=True)
            embed(job, parts, store)

    def _result(self, unit, window: int, text: str):
        span = self.making.span(window)
        made = Entry(
            entry_id=entry_id(unit, span.start_us, 0),
            unit_id=unit.unit_id,
            asset_id=unit.asset_id,
            producer_id=unit.producer_id,
            kind="local",
            scale=unit.scale,
            span=span,
            text=text,
        )
        return self.making.done(unit, window).model_copy(update={"entries": (made,)})

    def found(self, query: str, mode: str) -> list[float]:
        """Where the entries that are found start, best first."""
        return Catalog.open(str(self.path)).search(query, mode=mode)["start_s"].to_list()

    def vectors(self) -> dict[str, list[tuple[float, int, bool]]]:
        """Per vector table: start, part and whether it has a vector, of each row."""
        reader = Reader.open(self.path)
        return {
            name: sorted(
                (row["start_s"], row["part"], row["vector"] is not None)
                for row in reader.dataset(name).to_table().to_pylist()
            )
            for name in reader.embedders()
        }


@pytest.fixture
def shelf(making, tmp_path) -> Shelf:
    return Shelf(making, tmp_path / "catalog")


@pytest.mark.parametrize("bad", sorted(BAD))
def test_a_row_that_is_no_vector_is_null_found_by_its_text_and_costs_no_other(shelf, bad: str) -> None:
    shelf.index("a dog runs", f"{bad} stands here", "a phone rings")
    (rows,) = shelf.vectors().values()
    assert rows == [(0.0, 0, True), (10.0, 0, False), (20.0, 0, True)]
    assert shelf.found(f"{bad} stands", "text") == [10.0]
    assert shelf.found("dog", "vector") == [0.0, 20.0]
    assert 10.0 in shelf.found("dog stands", "hybrid")


@pytest.mark.parametrize("bad", sorted(BAD))
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_query_without_direction_is_an_error_and_no_empty_answer(shelf, bad: str, mode: str) -> None:
    shelf.index("a dog runs")
    with pytest.raises(EvicatError, match=f"no usable vector for the query '{bad}'"):
        shelf.found(bad, mode)


@pytest.mark.parametrize("blank", [" ", "\n\t", "\u3000"])
def test_a_blank_text_has_no_vector_and_the_rest_of_its_batch_has(shelf, blank: str) -> None:
    shelf.index("a dog runs", blank, "a phone rings")
    (rows,) = shelf.vectors().values()
    assert rows == [(0.0, 0, True), (20.0, 0, True)]
    assert shelf.found("phone", "vector") == [20.0, 0.0]


def test_the_last_sentence_of_five_thousand_words_is_found(shelf) -> None:
    long = "They talk about the rain again. " * 833 + "The treasure lies under the oak."
    assert len(long.split()) > 5000
    shelf.index("a dog runs", long, "a phone rings")
    (rows,) = shelf.vectors().values()
    parts = [part for start_s, part, has_vector in rows if start_s == 10.0 and has_vector]
    assert parts == list(range(len(parts)))
    assert len(parts) > 100
    for mode in ("vector", "text", "hybrid"):
        assert shelf.found("treasure", mode)[0] == 10.0


def test_another_model_of_the_same_dimension_gets_a_table_of_its_own(shelf) -> None:
    shelf.index("a dog runs", "a phone rings")
    before = shelf.vectors()
    shelf.index("a dog runs", "a phone rings", model="b")
    after = shelf.vectors()
    assert len(after) == 2
    assert before.items() <= after.items()
    assert list(after.values()) == [[(0.0, 0, True), (10.0, 0, True)]] * 2
    models = {producer.model.name for producer in Reader.open(shelf.path).embedders().values()}
    assert models == {"a", "b"}
    assert {each.embedder.model for each in Catalog.open(str(shelf.path)).embedders().values()} == {"a"}


def test_another_embedder_leaves_what_it_embeds_as_it_is() -> None:
    first, other = kit("a"), kit("b")
    assert first.sources == other.sources
    assert {each.producer_id for each in first.producers} & {
        each.producer_id for each in other.producers
    } == {each.producer_id for each in first.sources}


def test_vectors_of_another_length_under_the_same_name_are_refused(shelf, monkeypatch) -> None:
    shelf.index("a dog runs")
    before = shelf.vectors()
    monkeypatch.setattr(Words, "dimension", 7)
    with pytest.raises(IntegrityError, match=r"vectors of 4 numbers .* got one of 7"):
        shelf.index("a phone rings", film="other.mp4")
    assert shelf.vectors() == before


def test_a_query_of_another_length_is_refused_by_name(shelf, monkeypatch) -> None:
    shelf.index("a dog runs")
    monkeypatch.setattr(Words, "dimension", 7)
    with pytest.raises(CatalogError, match=r"have 4 numbers, but the query got 7 numbers.*--mode text"):
        shelf.found("dog", "vector")


def test_an_embedder_that_hands_over_what_is_not_finite_is_stopped(shelf, monkeypatch) -> None:
    monkeypatch.setattr(Words, "embed", lambda self, parts: np.array([[1, np.inf, 0, 0]], np.float32))
    with pytest.raises(IntegrityError, match=r"not finite; store None"):
        shelf.index("a dog runs")
