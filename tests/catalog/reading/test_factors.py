"""Filters by factors: what an expression means, and what is said of one that means nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.reading.factors import KnownFactors, tagged
from evicat.schemas.errors import UnknownNameError, UsageError

IDS = ("place:a", "place:b", "people:c")
KNOWN = KnownFactors(frozenset(IDS))


def means(sql: str, carried: set[str]) -> bool:
    """What the SQL says of an entry with these factors."""
    python = re.sub(
        r"array_has_any\(factors, \[([^\]]*)\]\)",
        lambda match: str(bool(carried & set(re.findall(r"'([^']*)'", match[1])))),
        sql,
    )
    return bool(eval(python.replace("NOT", "not").replace("AND", "and").replace("OR", "or")))


@pytest.mark.parametrize(
    ("text", "carried", "holds"),
    [
        ("place:a", {"place:a"}, True),
        ("place:a", {"place:b"}, False),
        ("place:a or place:b and people:c", {"place:a"}, True),
        ("(place:a or place:b) and people:c", {"place:a"}, False),
        ("not place:a and place:b", {"place:b"}, True),
        ("NOT (place:a And place:b)", {"place:a"}, True),
        ("not not place:a", {"place:a"}, True),
        ("((place:a))", {"place:a"}, True),
    ],
)
def test_words_bind_as_people_expect(text: str, carried: set[str], holds: bool) -> None:
    assert means(tagged(text, KNOWN), carried) is holds


def test_several_must_all_hold_and_none_says_nothing() -> None:
    assert means(tagged(["place:a", "not people:c"], KNOWN), {"place:a"})
    assert not means(tagged(["place:a", "not people:c"], KNOWN), {"place:a", "people:c"})
    assert tagged([], KNOWN) == tagged(" ", KNOWN) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("place:a and", "expected a factor, such as place:kitchen behind 'place:a and', got the end"),
        ("and place:a", "expected a factor, such as place:kitchen, got 'and'"),
        ("place:a place:b", r"expected 'and' or 'or' behind 'place:a', got 'place:b'"),
        ("(place:a", "expected a closing bracket"),
        ("place:a)", r"expected 'and' or 'or' behind 'place:a', got '\)'"),
        ("()", r"got '\)'"),
        ("not", "got the end"),
        ("not " * 1000 + "place:a", "at most 1000 words"),
    ],
)
def test_what_is_no_expression(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tagged(text, KNOWN)


def test_the_nearest_are_offered() -> None:
    known = KnownFactors(frozenset({"place:kitchen", "place:street", "people:crowd"}))
    with pytest.raises(UnknownNameError, match="unknown factor 'place:kichen'; known: place:kitchen"):
        tagged("people:crowd and place:kichen", known)
    with pytest.raises(UnknownNameError, match=r"known: .*people:crowd"):
        tagged("crowd", known)


def test_renamed_and_merged_ids_are_found_under_the_new_one_over_several_versions() -> None:
    known = KnownFactors(
        frozenset({"p:new", "p:mid", "p:old", "p:other"}),
        {"p:mid": frozenset({"p:old"}), "p:new": frozenset({"p:mid", "p:other", "p:old"})},
    )
    assert means(tagged("p:new", known), {"p:old"})
    assert means(tagged("p:new", known), {"p:other"})
    assert not means(tagged("p:old", known), {"p:new"})
    assert known.present == {"p:old": "p:new", "p:mid": "p:new", "p:other": "p:new"}


trees = st.recursive(
    st.sampled_from(IDS),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
    ),
    max_leaves=8,
)


def written(tree: object) -> str:
    if isinstance(tree, str):
        return tree
    word, *parts = tree  # type: ignore[misc]
    if word == "not":
        return f"not ({written(parts[0])})"
    return f"({written(parts[0])}) {word} ({written(parts[1])})"


def truth(tree: object, carried: set[str]) -> bool:
    if isinstance(tree, str):
        return tree in carried
    word, *parts = tree  # type: ignore[misc]
    if word == "not":
        return not truth(parts[0], carried)
    values = [truth(part, carried) for part in parts]
    return all(values) if word == "and" else any(values)


@given(trees, st.sets(st.sampled_from(IDS)))
def test_any_expression_means_what_it_says(tree: object, carried: set[str]) -> None:
    assert means(tagged(written(tree), KNOWN), carried) is truth(tree, carried)
