"""Tags from records: words, where they stand, and what is no word."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.tagging.base import FOUND_SCHEMA
from evicat.catalog.tagging.fields import FieldTagger

from .library import factor, vocabulary


def entries(*rows: tuple[str, dict[str, object]], kind: str = "local") -> pl.DataFrame:
    return pl.DataFrame(
        {
            "kind": [kind for _ in rows],
            "text": [text for text, _ in rows],
            "record": [json.dumps(record) for _, record in rows],
        },
        schema={"kind": pl.String, "text": pl.String, "record": pl.String},
    )


def found(rows: pl.DataFrame, *factors: dict[str, object]) -> list[tuple[object, ...]]:
    made = FieldTagger().tag(rows, vocabulary(*factors).filled).rows
    assert made.schema == FOUND_SCHEMA
    return made.select("row", "factor", "value", "field", "text_begin", "text_end").rows()


def test_the_first_field_that_has_a_word_counts_and_the_place_is_that_in_the_text() -> None:
    rows = entries(
        ("She cooks. A Kitchen.", {"place": "the kitchen", "people": [{"descriptor": "a cook"}]}),
        ("Nobody.", {"place": "a hall", "people": [{"descriptor": "a cook", "details": ["tired"]}]}),
    )
    wanted = factor("kitchen", words=["kitchen", "cook*"], fields=["place", "people"])
    assert found(rows, wanted) == [
        (0, 0, "kitchen", "place", 13, 20),
        (1, 0, "cook", "people", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "words", "value"),
    [
        ("A Kitchen!", ["kitchen"], "Kitchen"),
        ("kitchenette", ["kitchen"], None),
        ("kitchenette", ["kitchen*"], "kitchenette"),
        ("no kitchen", ["kitchen"], None),
        ("without a kitchen, then a kitchen", ["kitchen"], "kitchen"),
        ("It is not any kitchen.", ["kitchen"], None),
        ("a living  room", ["living room"], None),
        ("a living room", ["living room"], "living room"),
        ("C++ (x)", ["c"], "C"),
        ("Caf\u00e9 Z\u00fcrich", ["caf\u00e9"], "Caf\u00e9"),
        ("any word", ["*"], "any"),
        ("...", ["*"], None),
        ("a 7", ["7*"], "7"),
        ("a.b", ["a.b"], "a.b"),
        ("axb", ["a.b"], None),
    ],
)
def test_words(text: str, words: list[str], value: str | None) -> None:
    made = found(entries((text, {})), factor("kitchen", words=words))
    assert [row[2] for row in made] == ([value] if value else [])


def test_only_entries_of_its_kinds_and_no_factor_without_words() -> None:
    rows = entries(("A kitchen.", {}), kind="narrative")
    assert found(rows, factor("kitchen"), factor("street", words=[])) == []
    assert found(entries(("A kitchen.", {})), factor("street", words=[])) == []


def test_no_word_is_found_across_two_phrases() -> None:
    rows = entries(("x", {"objects": ["living", "room"]}))
    assert found(rows, factor("kitchen", words=["living room"], fields=["objects"])) == []


def test_what_it_does_not_read_is_no_part_of_what_identifies_it() -> None:
    plain, more = factor("kitchen"), factor("kitchen", examples=["A stove."], exclusions=["a bar"])
    (one,), (other,) = vocabulary(plain).filled, vocabulary(more).filled
    (words,) = vocabulary(factor("kitchen", words=["stove"])).filled
    tagger = FieldTagger()
    assert tagger.producer(one) == tagger.producer(other)
    assert tagger.producer(one) != tagger.producer(words)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.text(min_size=1, max_size=6))
def test_any_text_and_any_word(texts: list[str], word: str) -> None:
    rows = entries(*((text, {"scene": text}) for text in texts))
    if not word.strip():
        return
    wanted = factor("kitchen", words=[word], fields=["scene", "text"])
    for row, _, value, field, begin, end in found(rows, wanted):
        assert field == "scene"
        assert isinstance(row, int)
        if begin is not None:
            assert texts[row][begin:end].lower() == str(value).lower()
