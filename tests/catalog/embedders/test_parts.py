"""Texts are cut at sentences and words, and nothing is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.embedders.parts import split_text


def by_word(text: str) -> list[int]:
    """One token per word or punctuation mark, as a tokenizer would."""
    return [match.start() for match in re.finditer(r"\w+|[^\w\s]", text)]


def by_letter(text: str) -> list[int]:
    """A tokenizer of bytes: one token per character of ASCII, more for others."""
    return [i for i, letter in enumerate(text) for _ in letter.encode() if not letter.isspace()]


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_blank_text_has_no_parts(text):
    assert split_text(text, by_word, 10) == []


@pytest.mark.parametrize("text", ["short", "a b c d e", " é  ü "])
def test_text_that_fits_is_one_part(text):
    assert split_text(text, by_word, 5) == [text]


def test_parts_end_with_a_sentence_of_their_second_half():
    text = "One two three. Four five six seven. Eight nine ten."
    assert split_text(text, by_word, 10) == ["One two three. Four five six seven. ", "Eight nine ten."]


def test_without_a_late_sentence_parts_end_with_a_word():
    text = "Yes. " + " ".join(f"word{i}" for i in range(12))
    parts = split_text(text, by_word, 8)
    assert [len(by_word(part)) for part in parts] == [8, 6]
    assert parts[0].endswith("word5 ")


def test_chinese_is_cut_at_its_full_stop():
    text = "他走进房间。" + "他坐下来然后看书。"
    assert split_text(text, lambda t: list(range(len(t))), 10) == ["他走进房间。", "他坐下来然后看书。"]


def test_a_word_longer_than_a_part_is_cut_between_tokens():
    parts = split_text("ü" * 25, by_letter, 8)
    assert [len(part) for part in parts] == [4, 4, 4, 4, 4, 4, 1]


def test_a_part_that_has_more_tokens_by_itself_is_shortened():
    def one_more_at_the_start(text: str) -> list[int]:
        return [0, *by_word(text)] if not text.startswith("w0") else by_word(text)

    text = " ".join(f"w{i}" for i in range(20))
    parts = split_text(text, one_more_at_the_start, 6)
    assert "".join(parts) == text
    assert all(len(one_more_at_the_start(part)) <= 6 for part in parts)


@given(st.text("ab .!\n。é", max_size=200), st.integers(2, 30), st.sampled_from([by_word, by_letter]))
def test_nothing_is_lost_and_every_part_fits(text, limit, tokenize):
    parts = split_text(text, tokenize, limit)
    if text.strip():
        assert "".join(parts) == text
        assert all(part.strip() for part in parts)
        assert all(len(tokenize(part)) <= limit for part in parts)
    else:
        assert parts == []


def test_a_limit_that_holds_no_token_is_an_error():
    with pytest.raises(ValueError, match="at least 1 token, got 0"):
        split_text("a", by_word, 0)
