"""What every embedder keeps to, with real weights."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.loaders import EMBEDDERS, load_embedder
from evicat.schemas.errors import UsageError
from evicat.schemas.recipe import EmbedderOptions, Profile

MODEL = "packaged:all-MiniLM-L6-v2"
NEEDS = {"openai": "openai", "sentence-transformers": "sentence_transformers"}
"""The package that an embedder needs; without it its tests are skipped."""
OPTIONS = {"openai": {"max_tokens": 254}}
"""MiniLM reads 256 tokens, two of them its own marks."""
TEXTS = [
    "A dog runs over green grass.",
    "Two women talk on the telephone.",
    "日本語のテキスト",
    "x",
    "🐕" * 30,
]


@pytest.fixture(scope="module", params=sorted(EMBEDDERS))
def embedder(request) -> Embedder:
    name = request.param
    pytest.importorskip(NEEDS[name], reason=f"embedder {name!r} needs the package {NEEDS[name]!r}")
    profile = request.getfixturevalue("serving") if name == "openai" else Profile()
    return load_embedder(EmbedderOptions(name=name, model=MODEL, options=OPTIONS.get(name, {})), profile)


def test_every_embedder_is_tested():
    assert set(NEEDS) == set(EMBEDDERS)


def test_vectors_have_the_dimension_and_length_one(embedder):
    found = embedder.embed(TEXTS)
    assert (found.shape, found.dtype) == ((len(TEXTS), embedder.dimension), np.float32)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)


def test_nothing_to_embed(embedder):
    found = embedder.embed([])
    assert (found.shape, found.dtype) == ((0, embedder.dimension), np.float32)


def test_a_vector_does_not_depend_on_its_batch(embedder):
    texts = [*TEXTS, "word " * 150]
    alone = np.vstack([embedder.embed([text]) for text in texts])
    assert np.abs(embedder.embed(texts) - alone).max() < 1e-5


def test_query_finds_its_text(embedder):
    documents = embedder.embed(TEXTS)
    for query, expected in (("puppy on a lawn", 0), ("a phone call", 1)):
        vector = embedder.embed_query(query)
        assert (vector.shape, vector.dtype) == ((embedder.dimension,), np.float32)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        assert int(np.argmax(documents @ vector)) == expected


@pytest.mark.parametrize("query", ["", "  \n", "\ud800"])
def test_query_that_is_no_text_is_an_error(embedder, query):
    with pytest.raises(UsageError, match=r"query is (blank|not valid)"):
        embedder.embed_query(query)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_blank_text_has_no_parts(embedder, text):
    assert embedder.parts(text) == []


@pytest.mark.parametrize("text", ["A dog.", "x" * 40, " padded  "])
def test_short_text_is_one_part(embedder, text):
    assert embedder.parts(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 300,
        "unending/without/blanks/" * 300,
        "彼は部屋に入って座った。" * 200,
        "na\u00efve caf\u00e9 \U0001f415 https://example.org/a-b_c?d=1\n\n" * 100,
    ],
)
def test_long_text_is_cut_into_parts_and_nothing_is_lost(embedder, text):
    parts = embedder.parts(text)
    assert len(parts) > 1
    assert "".join(parts) == text
    assert all(embedder.parts(part) == [part] for part in parts)


def test_the_end_of_a_long_text_is_found(embedder):
    text = "They discuss the weather and the news of the day. " * 80 + "The treasure lies under the old oak."
    vectors = embedder.embed(embedder.parts(text))
    scores = vectors @ embedder.embed_query("Where is the treasure buried?")
    assert int(np.argmax(scores)) == len(scores) - 1
    assert len(scores) > 2


def test_every_word_of_a_part_counts(embedder):
    """A part is read whole: its last word changes the vector."""
    part = embedder.parts("The quick brown fox jumps over the lazy dog. " * 300)[0].rstrip()
    other = part.rsplit(" ", 1)[0] + " submarine."
    first, second = embedder.embed([part, other])
    assert np.abs(first - second).max() > 1e-3


def test_the_model_is_known_before_weights_are_loaded(embedder):
    """In a fresh process: neither importing, loading by name nor ``model`` may load torch or a client."""
    code = (
        "import sys\n"
        "from evicat.catalog.embedders.loaders import load_embedder\n"
        "from evicat.schemas.recipe import EmbedderOptions, Profile\n"
        f"profile = Profile(endpoints={{{MODEL!r}: 'http://127.0.0.1:9/v1'}})\n"
        f"found = load_embedder(EmbedderOptions(name={embedder.component!r}, model={MODEL!r}), profile)\n"
        f"assert found.model.name == {MODEL!r}\n"
        f"assert bool(found.model.digest) == {embedder.component != 'openai'}\n"
        "assert not {'torch', 'openai'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_declares_what_identifies_it(embedder):
    assert embedder.component == embedder.embedder.name
    assert embedder.version >= 1
    assert isinstance(embedder.options, embedder.options_class)
