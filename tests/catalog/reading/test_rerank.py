"""Hits in the order of a model that reads query and text together: a real cross-encoder, tiny, untrained."""

import math

import pytest

from evicat.catalog.reading.rerank import CrossEncoderReranker
from evicat.schemas.errors import CatalogError, UsageError
from evicat.schemas.identity import Producer

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
WORDS = ["red", "blue", "car", "dog", "man", "door", "street", "rain"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """Makes the folder of a cross-encoder with so many outputs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    def made(outputs):
        folder = tmp_path_factory.mktemp("encoder")
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
        torch.manual_seed(3)
        config = BertConfig(
            vocab_size=5 + len(WORDS),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            num_labels=outputs,
            initializer_range=0.5,
        )
        BertForSequenceClassification(config).save_pretrained(folder)
        BertTokenizerFast(str(vocabulary)).save_pretrained(folder)
        return str(folder)

    return made


@pytest.fixture(scope="module")
def reranker(encoder):
    return CrossEncoderReranker(encoder(1))


@pytest.fixture(scope="module")
def catalog(tmp_path_factory, making_shelf, direction):
    shelf = making_shelf(tmp_path_factory.mktemp("rerank") / "catalog")
    for video in ("a.mp4", "b.mp4"):
        texts = [f"{one} car {two}" for one in WORDS for two in WORDS[:4]]
        rows = [(at * 10, at * 10 + 10, text, {"vector": direction(1, at)}) for at, text in enumerate(texts)]
        shelf.write(video, LOCAL, rows)
    return shelf.catalog


@pytest.mark.parametrize("more", [{"mode": "text"}, {"vector": True}])
def test_the_best_are_put_in_the_order_of_the_model(catalog, reranker, direction, more):
    from sentence_transformers import CrossEncoder

    if "vector" in more:
        more = {"vector": direction(1, 3)}
    found = catalog.search("red car", limit=7, rerank=reranker, **more)
    candidates = catalog.search("red car", limit=50, **more)
    texts = candidates["text"].to_list()
    model = CrossEncoder(reranker._weights.location)
    scores = model.predict([("red car", text) for text in texts]).tolist()
    expected = sorted(zip(scores, candidates["entry_id"], strict=True), key=lambda each: (-each[0], each[1]))
    assert found["score"].to_list() == pytest.approx([score for score, _ in expected[:7]], abs=1e-6)
    assert len(set(scores)) > 7, "the model tells texts apart"
    assert set(found["entry_id"]) <= set(candidates["entry_id"])
    assert found["entry_id"].to_list() != candidates["entry_id"].to_list()[:7]


def test_of_each_video_at_most_so_many_and_nothing_of_nothing(catalog, reranker):
    found = catalog.search("red car", mode="text", limit=9, per_video=2, rerank=reranker)
    assert sorted(found["video"]) == ["a.mp4", "a.mp4", "b.mp4", "b.mp4"]
    assert found["score"].is_sorted(descending=True)
    assert catalog.search("zebra", mode="text", rerank=reranker).is_empty()


def test_a_model_that_tells_classes_apart_ranks_nothing(catalog, encoder):
    with pytest.raises(UsageError, match="gives 3 numbers for a text"):
        catalog.search("red car", mode="text", rerank=CrossEncoderReranker(encoder(3)))


def test_weights_that_are_not_there_are_told_at_once(tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        CrossEncoderReranker(str(tmp_path / "nowhere"))


def test_a_vector_alone_cannot_be_read(catalog, reranker, direction):
    with pytest.raises(UsageError, match="give some beside the vector"):
        catalog.search(vector=direction(1), rerank=reranker)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1.0], "gave 1 scores for 50 texts"),
        ([math.nan] * 50, "must be finite"),
        (["well"] * 50, "gave no numbers"),
        (None, "gave no numbers"),
    ],
)
def test_what_is_no_score_is_told(catalog, scores, said):
    class Odd:
        def score(self, query, texts):
            return scores

    with pytest.raises(CatalogError, match=said):
        catalog.search("red car", mode="text", rerank=Odd())
