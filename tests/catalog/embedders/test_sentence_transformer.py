"""What the sentence-transformers embedder adds to the library."""

from __future__ import annotations

import numpy as np
import pytest

from evicat.catalog.embedders.loaders import load_embedder
from evicat.schemas.errors import RecipeError, UnknownNameError, UsageError
from evicat.schemas.recipe import EmbedderOptions, Profile


def load(profile: Profile | None = None, **options):
    embedder = EmbedderOptions(
        name="sentence-transformers", model="packaged:all-MiniLM-L6-v2", options=options
    )
    return load_embedder(embedder, profile or Profile())


@pytest.fixture(scope="module")
def embedder():
    return load()


@pytest.fixture
def fresh(embedder):
    """An embedder of its own over the same loaded weights."""

    def make(**options):
        made = load(**options)
        made.__dict__["_engine"] = embedder._engine
        return made

    return make


class Broken:
    """Stands for a model whose vectors are useless from some point on."""

    prompts: dict[str, str] = {}  # noqa: RUF012
    max_seq_length = 16

    def __init__(self, engine, rows):
        self.tokenizer, self.rows = engine.tokenizer, rows

    def encode_document(self, texts, **asked):
        return np.array(self.rows[: len(texts)], np.float32)

    encode_query = encode_document


def test_vectors_are_those_of_the_library(embedder):
    texts = ["a dog runs on grass", "two people talk on the telephone", "x " * 90]
    expected = embedder._engine.encode(texts, normalize_embeddings=True)
    assert np.abs(embedder.embed(texts) - expected).max() < 1e-5


def test_rows_without_direction_are_nan_and_the_others_stand(embedder):
    broken = load()
    nan, inf = float("nan"), float("inf")
    broken.__dict__["_engine"] = Broken(embedder._engine, [[1, 0], [nan, 1], [0, 0], [inf, 0], [0, 1]])
    found = broken.embed(list("abcde"))
    assert np.isnan(found[1:4]).all()
    assert found[[0, 4]].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("row", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_query_without_direction_is_an_error(embedder, row):
    broken = load()
    broken.__dict__["_engine"] = Broken(embedder._engine, [row])
    with pytest.raises(UsageError, match="no usable vector for the query 'dog'"):
        broken.embed_query("dog")


def test_prompts_of_the_recipe_reach_the_model(fresh, embedder):
    made = fresh(document_prompt="passage: ", query_prompt="query: ")
    assert np.allclose(made.embed(["dog"])[0], embedder.embed(["passage: dog"])[0], atol=1e-5)
    assert np.allclose(made.embed_query("dog"), embedder.embed(["query: dog"])[0], atol=1e-5)


def test_prompts_of_the_model_are_used_and_can_be_switched_off(fresh, embedder, monkeypatch):
    monkeypatch.setattr(embedder._engine, "prompts", {"query": "ask: ", "document": "", "passage": "text: "})
    made = fresh()
    assert np.allclose(made.embed(["dog"])[0], fresh(document_prompt="text: ").embed(["dog"])[0], atol=1e-6)
    assert np.allclose(made.embed_query("dog"), fresh(query_prompt="ask: ").embed_query("dog"), atol=1e-6)
    assert not np.allclose(made.embed_query("dog"), fresh(query_prompt="").embed_query("dog"), atol=1e-3)


def test_a_prompt_makes_room_for_itself(fresh):
    text = "word " * 600
    lengths = [len(fresh(document_prompt=prompt).parts(text)[0].split()) for prompt in ("", "a b c d: ")]
    assert lengths == [254, 249]


def test_long_query_is_the_mean_of_its_parts(embedder):
    query = "dog " * 200 + "a telephone call " * 200
    parts = embedder.parts(query)
    assert len(parts) > 1
    mean = embedder.embed(parts).mean(axis=0)
    assert np.allclose(embedder.embed_query(query), mean / np.linalg.norm(mean), atol=1e-5)


def test_broken_weights_are_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    options = EmbedderOptions(name="sentence-transformers", model=str(tmp_path))
    with pytest.raises(UsageError, match=f"cannot load the text model .*{tmp_path.name}.* on cpu"):
        _ = load_embedder(options, Profile()).dimension


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    options = EmbedderOptions(name="sentence-transformers", model="packaged:all-MiniLM-L6-v2")
    with pytest.raises(UsageError, match="sees 0 CUDA devices"):
        _ = load_embedder(options, Profile(device="cuda")).dimension


def test_hub_model_that_is_not_at_hand_is_named():
    options = EmbedderOptions(name="sentence-transformers", model="nobody/nothing")
    with pytest.raises(UsageError, match="model 'nobody/nothing' is not whole in the model hub's cache"):
        load_embedder(options, Profile())


def test_unknown_embedder_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="'bm25'; known: openai, sentence-transformers"):
        load_embedder(EmbedderOptions(name="bm25", model="x"), Profile())


def test_options_that_do_not_fit_are_named():
    known = "known options: document_prompt, query_prompt"
    with pytest.raises(RecipeError, match=rf"prompt: .*got 'q'\n  {known}"):
        load(prompt="q")


def test_threads_of_the_profile_are_used(embedder):
    import torch

    before = torch.get_num_threads()
    try:
        assert load(Profile(threads=1)).dimension == embedder.dimension
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
