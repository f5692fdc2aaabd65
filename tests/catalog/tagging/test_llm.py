"""Tags by a text model: verdicts, abstentions, answers that are none, and going on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evicat.catalog.audit import audit
from evicat.catalog.llm import TextModel
from evicat.catalog.tagging.fields import FieldTagger
from evicat.catalog.tagging.llm import LlmTagger
from evicat.schemas.errors import EngineDownError
from evicat.schemas.recipe import ModelProfile, Profile, TextModelOptions

from .library import KITCHEN, PLACES, TEXTS, Library, factor, vocabulary

MODEL = TextModelOptions(model="tagging-model", max_tokens=200)
ONE = vocabulary(KITCHEN)


def says(*verdicts: tuple[int, str, str]) -> str:
    rows = [
        {"entry": entry, "verdict": verdict, "phrase": phrase, "confidence": 0.8}
        for entry, verdict, phrase in verdicts
    ]
    return json.dumps({"verdicts": rows})


GOOD = says((1, "yes", "kitchen"), (2, "no", ""))
GOOD_LAST = says((1, "yes", "A Kitchen"), (2, "unsure", ""))


@contextmanager
def tagger(tmp_path: Path, *rules: dict[str, Any], at_once: int = 2) -> Iterator[LlmTagger]:
    """One that asks a script; a rule is for requests that contain its text."""
    script = tmp_path / "rules.jsonl"
    script.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    run = ModelProfile(engine="scripted", options={"file": str(script)})
    with TextModel.of(MODEL, Profile(engines={MODEL.model: run})) as model:
        yield LlmTagger(model, MODEL, entries_at_once=at_once)


RULES = (
    {"contains": ["A kitchen on a street."], "answer": GOOD_LAST},
    {"contains": ["A kitchen."], "answer": GOOD},
)


def test_verdicts_become_tags_and_abstentions(library: Library, tmp_path: Path) -> None:
    with tagger(tmp_path, *RULES) as made:
        done = library.tag(made, ONE)
        assert library.left(made, ONE) == 0
    assert (done.tags, done.abstained, done.failed, done.calls) == (3, 1, 0, 3)
    assert done.prompt_tokens > 0
    tags = library.catalog.tags("a.mp4").sort("start_s").to_dicts()
    assert [(tag["start_s"], tag["verdict"], tag["value"]) for tag in tags] == [
        (0.0, "yes", "kitchen"),
        (20.0, "yes", "A kitchen"),
        (30.0, "abstained", ""),
    ]
    assert [(tag["text_begin"], tag["text_end"], tag["confidence"]) for tag in tags[:2]] == [
        (2, 9, 0.8),
        (0, 9, 0.8),
    ]
    assert library.factors()["Nothing of note."] == []
    windows = [row for row in library.rows("coverage") if row["kind"] == "tags"]
    assert sorted((row["start_s"], row["end_s"]) for row in windows) == [(0, 20), (0, 20), (20, 40)]
    assert audit(library.reader).holds


def test_what_it_quotes_must_stand_in_the_entry(library: Library, tmp_path: Path) -> None:
    answer = says((1, "yes", "a stove"), (2, "yes", ""))
    with tagger(tmp_path, {"answer": answer}) as made:
        done = library.tag(made, ONE)
    assert (done.tags, done.abstained) == (0, 6)
    assert {tag["value"] for tag in library.rows("tags")} == {"a stove", ""}
    assert all(factors == [] for factors in library.factors().values())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("The kitchen is there.", "Answer"),
        (says((1, "yes", "kitchen")), "Answer"),
        (says((1, "no", ""), (2, "no", ""), (3, "no", "")), "Answer"),
        (says((1, "maybe", ""), (2, "no", "")), "Answer"),
    ],
    ids=["no JSON", "one left out", "one too many", "no verdict"],
)
def test_an_answer_that_is_none_fails_its_window_and_writes_nothing_of_it(
    library: Library, tmp_path: Path, answer: str, error: str
) -> None:
    with tagger(tmp_path, RULES[0], {"answer": answer}) as made:
        done = library.tag(made, ONE)
        assert (done.failed, done.tags) == (2, 1)
        assert library.left(made, ONE) == 0
        assert library.left(made, ONE, retry=["failed"]) == 2
    failed = [row for row in library.rows("coverage") if row["outcome"] == "failed"]
    assert [(row["start_s"], row["error_class"]) for row in failed] == [(0.0, error), (0.0, error)]
    assert answer[:20] in failed[0]["raw"] or failed[0]["raw"]
    assert {tag["start_s"] for tag in library.rows("tags")} == {20.0, 30.0}
    assert audit(library.reader).holds
    tags = library.rows("tags")
    with tagger(tmp_path, RULES[0], {"answer": answer}) as made:
        again = library.tag(made, ONE, retry=["failed"])
    assert (again.calls, again.failed) == (2, 2), "only what failed is asked again"
    assert library.rows("tags") == tags
    assert audit(library.reader).holds


def test_it_stops_at_a_limit_of_calls_and_goes_on(library: Library, tmp_path: Path) -> None:
    with tagger(tmp_path, *RULES, {"answer": says((1, "no", ""), (2, "no", ""))}) as made:
        first = library.tag(made, PLACES, max_calls=2)
        assert (first.calls, first.stopped) == (2, "2 calls were made")
        assert library.left(made, PLACES) == 3
        rest = library.tag(made, PLACES)
        assert (rest.calls, rest.stopped) == (4, "")
        assert library.left(made, PLACES) == 0


def test_what_stopped_half_way_does_not_take_the_place_of_what_is_whole(
    library: Library, tmp_path: Path
) -> None:
    library.tag(FieldTagger(), ONE)
    before = library.factors()
    with tagger(tmp_path, *RULES) as made:
        assert library.tag(made, ONE, max_calls=1).stopped
        assert library.factors() == before
        library.tag(made, ONE)
    assert library.catalog.tags(factor="place:kitchen")["tagger"].unique().to_list() == ["llm"]
    assert audit(library.reader).holds


def test_what_was_answered_is_kept_where_the_engine_goes_down(library: Library, tmp_path: Path) -> None:
    with tagger(tmp_path, *RULES) as made:

        class Mortal(LlmTagger):
            slots = 1
            calls = 0

            def tag(self, entries, factors):
                self.calls += 1
                if self.calls == 2:
                    raise EngineDownError("gone")
                return super().tag(entries, factors)

        mortal = Mortal(made._model, MODEL, entries_at_once=2)
        with pytest.raises(EngineDownError):
            library.tag(mortal, ONE)
        assert len([row for row in library.rows("coverage") if row["kind"] == "tags"]) == 1
        done = library.tag(made, ONE)
        assert done.calls == 2
    assert audit(library.reader).holds


def test_an_answer_about_entries_that_changed_meanwhile_is_not_written(
    library: Library, tmp_path: Path
) -> None:
    with tagger(tmp_path, *RULES, {"answer": says((1, "no", ""), (2, "no", ""))}) as made:

        class Slow(LlmTagger):
            slots = 1
            calls = 0

            def tag(self, entries, factors):
                self.calls += 1
                if self.calls == 1:
                    library.write("b.mp4", ["A hall.", "A street in the rain."])
                    library.write("a.mp4", ["A hall.", *TEXTS[1:]])
                return super().tag(entries, factors)

        library.tag(Slow(made._model, MODEL, entries_at_once=2), ONE)
        assert all(row["value"] != "kitchen" for row in library.rows("tags"))
        assert audit(library.reader).holds
        assert library.left(made, ONE) == 2


def test_factors_differ_by_what_is_asked(tmp_path: Path) -> None:
    with tagger(tmp_path, *RULES) as made:
        (plain,) = ONE.filled
        (told,) = vocabulary(factor("kitchen", exclusions=["a bar"])).filled
        (words,) = vocabulary(factor("kitchen", words=["stove"])).filled
        assert made.producer(plain) == made.producer(words)
        assert made.producer(plain) != made.producer(told)
    with tagger(tmp_path, *RULES, at_once=3) as larger:
        assert larger.producer(plain) != made.producer(plain)
