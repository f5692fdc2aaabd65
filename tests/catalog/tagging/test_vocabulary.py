"""Vocabularies: those that come with evicat, and what is said of files that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from evicat.catalog.tagging.fields import FieldTagger
from evicat.catalog.tagging.vocabulary import load_vocabulary, packaged, parse_vocabulary
from evicat.schemas.errors import UnknownNameError, UsageError

GOOD = """\
vocabulary = "place"
version = 2

[[factors]]
id = "place:kitchen"
descriptor = "a kitchen"

[[factors]]
id = "place:street"
descriptor = "a street"

[[migrations]]
since = 2
change = "rename"
old = ["place:galley"]
new = ["place:kitchen"]
"""


def test_what_is_left_out_is_filled_in() -> None:
    kitchen, street = parse_vocabulary(GOOD + "", "x.toml").filled
    assert (kitchen.kinds, kitchen.fields) == (("local", "narrative"), ("text",))
    assert street.id == "place:street"


@pytest.mark.parametrize("name", packaged())
def test_packaged_vocabularies_fit_and_every_factor_can_be_found_by_words(name: str) -> None:
    found = load_vocabulary(name)
    assert found.vocabulary == name
    assert found.description
    assert 4 <= len(found.factors) <= 12
    assert all(factor.words for factor in found.factors)
    assert len({FieldTagger().producer(factor).producer_id for factor in found.filled}) == len(found.factors)


def test_there_are_the_ten_that_the_guide_names() -> None:
    assert packaged() == [
        *("action", "camera", "emotion", "interaction", "object"),
        *("people", "place", "screen_text", "sound", "speech_act"),
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"place:street"', '"place:kitchen"'), "place:kitchen stands twice among the factors"),
        (('"place:street"', '"plaza:street"'), "plaza:street must begin with .*: place:street"),
        (('"place:street"', '"street"'), r"factors\.1\.id: .*'street' \(line 8\)"),
        (('descriptor = "a street"', ""), r"factors\.1\.descriptor: Field required \(line 8\)"),
        (('descriptor = "a street"', 'descriptor = " "'), r"factors\.1\.descriptor: .*got ' ' \(line 8\)"),
        (
            ('descriptor = "a street"', 'descriptor = "a street"\nexample = ["x"]'),
            r"factors\.1\.example: .*\(line 8\); known keys: id, descriptor, examples",
        ),
        (("version = 2", "version = 2\nkind = 'local'"), r"kind: .*\(line 3\); known keys: vocabulary"),
        (("version = 2", "version = 0"), r"version: .*got 0 \(line 2\)"),
        (("version = 2", "version = 1"), "since version 2, but this is version 1"),
        (("version = 2", "version == 2"), "not valid TOML: .*line 2"),
        (('["place:galley"]', '["place:street"]'), "place:street is still among the factors"),
        (
            ('["place:galley"]', '["place:x", "place:y"]'),
            "a rename has one id in `old`, got place:x",
        ),
        (('"rename"', '"merge"'), "a merge has several ids in `old`"),
        (('"rename"', '"split"'), "a split has several ids in `new`"),
        (('"rename"', '"change"'), r"migrations\.0\.change: .*got 'change' \(line 12\)"),
        (("[[factors]]", "[[factor]]"), "factors: Field required"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(change: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as told:
        parse_vocabulary(GOOD.replace(*change), "mine.toml")
    assert str(told.value).startswith("vocabulary mine.toml ")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"vocabulary 'plase'; known: .*place"):
        load_vocabulary("plase")
    with pytest.raises(UsageError, match=r"mine\.toml cannot be read"):
        load_vocabulary(str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"mine\.toml cannot be read"):
        load_vocabulary(str(tmp_path / "mine.toml"))


def test_factors_are_chosen_by_id_or_by_the_end_of_it() -> None:
    made = parse_vocabulary(GOOD, "x.toml")
    assert [factor.id for factor in made.chosen(["street", "place:street"])] == ["place:street"]
    assert len(made.chosen([])) == 2
    with pytest.raises(UnknownNameError, match="factor 'place:kitchn'; known: place:kitchen"):
        made.chosen(["kitchn"])


def test_descriptions_for_people_are_no_part_of_what_it_says() -> None:
    made = parse_vocabulary(GOOD, "x.toml")
    told = parse_vocabulary(GOOD.replace("version = 2", 'version = 2\ndescription = "Where."'), "x.toml")
    other = parse_vocabulary(GOOD.replace("a street", "a road"), "x.toml")
    assert made.digest == told.digest
    assert made.digest != other.digest
