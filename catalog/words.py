"""Words of texts: how many, which, and which of them one side uses more than the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import polars as pl

from evicat.schemas.model import Model

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = rf"[{_UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]+(?:'\p{{L}}+|[.:,]\p{{N}}+)*"
"""A word is a run of letters and digits, such as ``don't`` and ``0:03.2``; of scripts that write without
blanks, one character."""
PRIOR_WORDS = 500.0
"""Weight of the prior of :func:`over_represented`, in words (chosen)."""


class OverWord(Model):
    """A word that one side uses more: how often each does, and how sure that is."""

    word: str
    a: int
    b: int
    z: float
    """Log-odds over its standard deviation; beyond 1.96 chance alone would hardly do it."""


class Vocabulary(Model):
    """The different words of both sides."""

    size_a: int
    size_b: int
    common: int
    jaccard: float | None
    """Common words among all; None where there is no word."""
    more_in_a: tuple[OverWord, ...]
    """Words with a letter; numbers and times are in no list."""
    more_in_b: tuple[OverWord, ...]


def words(texts: pl.Series) -> pl.Series:
    """The words of each text, lower-case, as lists."""
    plain = texts.fill_null("").str.to_lowercase().str.replace_all("\u2019", "'")
    return plain.str.extract_all(WORD)


def count_words(texts: pl.Series) -> Counter[str]:
    counts = words(texts).explode(empty_as_null=False).value_counts()
    return Counter(dict(counts.iter_rows()))


def vocabulary(a: pl.Series, b: pl.Series, *, limit: int = 10) -> Vocabulary:
    """Compare the words of two columns of texts; at most ``limit`` over-represented ones of each side."""
    in_a, in_b = count_words(a), count_words(b)
    scores = over_represented(in_a, in_b)
    lettered = (word for word in scores if any(map(str.isalpha, word)))
    ranked = sorted(lettered, key=lambda word: (-abs(scores[word]), word))
    told = [OverWord(word=word, a=in_a[word], b=in_b[word], z=round(scores[word], 4)) for word in ranked]
    common, every = len(in_a.keys() & in_b.keys()), len(in_a.keys() | in_b.keys())
    return Vocabulary(
        size_a=len(in_a),
        size_b=len(in_b),
        common=common,
        jaccard=round(common / every, 4) if every else None,
        more_in_a=tuple(each for each in told if each.z > 0)[:limit],
        more_in_b=tuple(each for each in told if each.z < 0)[:limit],
    )


def over_represented(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, float]:
    """For every word the z-score of its log-odds ratio, above 0 where ``a`` uses it more.

    With an informative Dirichlet prior: both sides together, weighing :data:`PRIOR_WORDS` words, so that rare
    words do not come out on top (Monroe, Colaresi and Quinn, "Fightin' Words", Political Analysis 16, 2008,
    equations 15, 18, 20 and 22).
    """
    total_a, total_b = sum(a.values()), sum(b.values())
    if not total_a or not total_b:
        return {}
    scores = {}
    for word in {*a, *b}:
        prior = PRIOR_WORDS * (a.get(word, 0) + b.get(word, 0)) / (total_a + total_b)
        in_a, in_b = a.get(word, 0) + prior, b.get(word, 0) + prior
        others_a, others_b = total_a + PRIOR_WORDS - in_a, total_b + PRIOR_WORDS - in_b
        if others_a <= 0 or others_b <= 0:
            continue  # one word is all that there is
        log_odds = math.log(in_a / others_a) - math.log(in_b / others_b)
        scores[word] = log_odds / math.sqrt(1 / in_a + 1 / in_b)
    return scores


def shared_words(a: pl.Series, b: pl.Series) -> pl.Series:
    """Per row the Jaccard similarity of the words of two texts; null where neither has any."""
    pairs = pl.DataFrame({"a": words(a), "b": words(b)})
    common, every = (
        pl.col("a").list.set_intersection("b").list.len(),
        pl.col("a").list.set_union("b").list.len(),
    )
    return pairs.select(pl.when(every > 0).then(common / every).alias("shared_words"))["shared_words"]
