"""Cutting a text into parts that a model reads whole."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

Tokenize = Callable[[str], list[int]]
"""Text -> where each of its tokens begins (characters, ascending), without special tokens."""

_SENTENCE_END = re.compile("[.!?\u2026][\"')\\]\u201d\u2019]*\\s+|\n+|[\u3002\uff01\uff1f]+")
_WORD_END = re.compile(r"\s+")


def split_text(text: str, tokenize: Tokenize, limit: int) -> list[str]:
    """Parts of at most ``limit`` tokens that, joined, are ``text``; a blank text has none.

    A part ends after a sentence of its second half, else after its last whole word, else (a word longer than
    a part) between two tokens.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1 token, got {limit}")
    if not text.strip():
        return []
    if text.isascii() and len(text) < limit:
        return [
            text
        ]  # at most a token per character, and one for the blank that some tokenizers put in front
    starts = tokenize(text)
    parts: list[str] = []
    begin = 0
    while begin < len(text):
        end = _end(text, begin, starts, limit)
        # A part by itself can have more tokens than it had inside the text.
        while end - begin > 1 and (count := len(tokenize(text[begin:end]))) > limit:
            end = max(begin + 1, _boundary(text, begin, begin + (end - begin) * limit // count))
        if not text[end:].strip():
            end = len(text)
        parts.append(text[begin:end])
        begin = end
    return parts


def _end(text: str, begin: int, starts: list[int], limit: int) -> int:
    first = bisect_left(starts, begin)
    if len(starts) - first <= limit:
        return len(text)
    return max(begin + 1, _boundary(text, begin, starts[first + limit]))


def _boundary(text: str, begin: int, end: int) -> int:
    """Where a part of ``text[begin:end]`` ends best."""
    solid = end - len(text[begin:end].lstrip())
    sentences = [match.end() for match in _SENTENCE_END.finditer(text, solid, end)]
    if sentences and sentences[-1] - begin > (end - begin) // 2:
        return sentences[-1]
    words = [match.end() for match in _WORD_END.finditer(text, solid, end)]
    return words[-1] if words else end
