"""The engine that answers from a file of rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Picture
from evicat.catalog.engines.scripted import ScriptedEngine
from evicat.schemas.errors import EngineDownError, RecipeError, RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

MODEL = ModelRef(name="lab/words-1b")
RULES = """
[[rules]]
contains = ["kitchen", "Which factors"]
answer = { factors = ["cooking", "été"] }

[[rules]]
field = "verdict"
answer = { verdict = "yes" }

[[rules]]
equals = "Say it."
answer = "it"

[[rules]]
contains = "decline"
answer = "I would rather not."
finish_reason = "refused"
"""
YES = {"type": "object", "properties": {"verdict": {"type": "string"}}}


@pytest.fixture
def engine_of(tmp_path: Path):
    def make(rules: str, name: str = "rules.toml", model: ModelRef = MODEL) -> ScriptedEngine:
        file = tmp_path / name
        file.write_text(rules, encoding="utf-8")
        where = ModelProfile(engine="scripted", options={"file": str(file)})
        return ScriptedEngine(model, where, Profile())

    return make


@pytest.fixture
def engine(engine_of) -> ScriptedEngine:
    return engine_of(RULES)


def request(*texts: str | Picture, system: str = "You read.", **fields: object) -> ChatRequest:
    return ChatRequest(system, texts, **{"max_tokens": 100} | fields)


def ask(engine: ScriptedEngine, *texts: str | Picture, **fields: object) -> ChatAnswer:
    return engine.submit(request(*texts, **fields)).result(timeout=5)


def test_the_first_rule_that_fits_answers(engine):
    answer = ask(engine, "A kitchen. Which factors?")
    assert json.loads(answer.text) == {"factors": ["cooking", "été"]}
    assert "été" in answer.text
    assert answer.finish_reason == "stop"
    assert answer.model == "scripted:lab/words-1b"
    assert (answer.prompt_tokens, answer.completion_tokens) == (3 + 7, -(-len(answer.text) // 4))


def test_all_conditions_of_a_rule_must_hold(engine_of):
    engine = engine_of("[[rules]]\ncontains = 'a'\nequals = 'a b'\nfield = 'verdict'\nanswer = 'all'")
    assert ask(engine, " a b ", "more", schema=YES).text == "all"
    for texts, schema in ((("a b",), None), (("a b c",), YES), (("b",), YES)):
        with pytest.raises(RequestError):
            ask(engine, *texts, schema=schema)


def test_the_system_text_is_part_of_the_prompt(engine):
    assert "cooking" in ask(engine, "A kitchen.", system="Which factors are there?").text


def test_a_field_that_is_asked_for_tells_questions_apart(engine):
    assert json.loads(ask(engine, "Is it so?", schema=YES).text) == {"verdict": "yes"}


def test_pictures_are_passed_over(engine):
    assert ask(engine, Picture(b"...", 2, 2), "Say it.").text == "it"


def test_a_refusal_can_be_scripted(engine):
    answer = ask(engine, "Please decline.")
    assert (answer.finish_reason, answer.text) == ("refused", "I would rather not.")


def test_an_answer_is_cut_at_the_token_limit(engine):
    answer = ask(engine, "A kitchen. Which factors?", max_tokens=2)
    assert (answer.finish_reason, answer.text, answer.completion_tokens) == ("length", '{"factor'[:8], 2)


def test_a_request_that_no_rule_fits_is_shown(engine):
    with pytest.raises(RequestError, match=r"no rule of .*rules\.toml fits") as caught:
        ask(engine, "What of the garden?", schema={"properties": {"plants": {}}})
    for said in ("You read.", "What of the garden?", "fields asked for: plants"):
        assert said in str(caught.value)


def test_of_a_long_request_the_beginning_is_shown(engine):
    with pytest.raises(RequestError, match=r"xx \.\.\. \(9010 characters more\)\nfields asked for: none"):
        ask(engine, "x" * 11_000)


def test_jsonl_holds_one_rule_a_line(engine_of):
    rules = [{"contains": "a\u2028b", "answer": {"n": 1}}, {"answer": "else"}]
    lines = "\n\n".join(json.dumps(rule, ensure_ascii=False) for rule in rules) + "\n"
    engine = engine_of(lines, "rules.jsonl")
    assert json.loads(ask(engine, "a\u2028b").text) == {"n": 1}
    assert ask(engine, "").text == "else"


def test_the_rules_are_part_of_what_answers(engine_of):
    plain, commented = engine_of(RULES), engine_of("# a note\n" + RULES)
    changed = engine_of(RULES.replace("yes", "no"))
    other = engine_of(RULES, model=ModelRef(name="lab/other"))
    assert plain.runs.name == "scripted:lab/words-1b"
    assert plain.runs == commented.runs
    assert len({each.runs.digest for each in (plain, changed, other)}) == 3
    assert plain.runs.identity() != MODEL.identity()


def test_a_model_that_is_known_by_its_digest_is_the_same_under_another_name(engine_of):
    here, there = (ModelRef(name=name, digest="d" * 64) for name in ("./here", "/there"))
    assert engine_of(RULES, model=here).runs.identity() == engine_of(RULES, model=there).runs.identity()


def test_check_needs_no_rule_for_its_request(engine):
    engine.check(request("Frame at 0:00.0:"))


def test_a_closed_engine_says_so(engine):
    engine.close()
    with pytest.raises(EngineDownError, match="is closed"):
        ask(engine, "Say it.")


@pytest.mark.parametrize(
    ("name", "rules", "said"),
    [
        ("rules.toml", "rules = [", "is not valid TOML"),
        ("rules.toml", "", "holds no rules; write for example"),
        ("rules.toml", "rule = 1", "holds rule; known: rules"),
        ("rules.toml", "[[rules]]\nanswer = 1", r"0\.answer"),
        ("rules.toml", "[[rules]]\nanswer = { a = nan }", "Out of range float"),
        ("rules.toml", "[[rules]]\nanswer = { a = 2026-01-01 }", r"0\.answer"),
        ("rules.toml", "[[rules]]\nanswer = 'a'\nwhen = 'b'", r"0\.when: Extra inputs"),
        ("rules.jsonl", '{"answer": "a"}\n{"answer', "line 2 of the script"),
        ("rules.jsonl", "[]", r"0: .*Rule"),
    ],
)
def test_scripts_that_do_not_fit_are_named(engine_of, name, rules, said):
    with pytest.raises(UsageError, match=said) as caught:
        engine_of(rules, name)
    assert name in str(caught.value)


def test_a_missing_script_is_named(tmp_path):
    where = ModelProfile(engine="scripted", options={"file": str(tmp_path / "none.toml")})
    with pytest.raises(UsageError, match=r"cannot read the script .*none\.toml"):
        ScriptedEngine(MODEL, where, Profile())


def test_a_profile_without_a_script_says_which_option_is_missing():
    with pytest.raises(RecipeError, match=r'\[engines."lab/words-1b"\] of the profile.*\n.*file'):
        ScriptedEngine(MODEL, ModelProfile(engine="scripted"), Profile())
