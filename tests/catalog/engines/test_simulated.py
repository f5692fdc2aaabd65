"""The engine without a model: it keeps to schemas, says what it is, takes its time and fails as told."""

from __future__ import annotations

import json
import time
from concurrent.futures import CancelledError

import jsonschema
import numpy as np
import pytest
from pydantic import TypeAdapter

from evicat.catalog.describers.base import Past, WindowInput
from evicat.catalog.engines.base import ChatRequest, Picture
from evicat.catalog.engines.loaders import open_engine
from evicat.catalog.engines.made_up import made_up
from evicat.catalog.engines.simulated import SimulatedEngine
from evicat.catalog.kit import Kit
from evicat.catalog.media.frame import Frame
from evicat.schemas.errors import EngineDownError, RecipeError, RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile, Recipe, parse_toml
from evicat.schemas.records import LocalRecord, NarrativeRecord
from evicat.schemas.span import US, Span

MODEL = ModelRef(name="Qwen/Qwen3-VL-8B-Instruct")
LOCAL = LocalRecord.model_json_schema()


def _engine(concurrency: int = 4, **options: object) -> SimulatedEngine:
    where = ModelProfile(engine="simulated", concurrency=concurrency, options=options)
    return SimulatedEngine(MODEL, where, Profile())


def _request(text: str = "what happens?", **changed: object) -> ChatRequest:
    facts = {"system": "You watch.", "parts": (text, Picture(b"jpeg", 448, 252)), "max_tokens": 4_000}
    return ChatRequest(**(facts | {"schema": LOCAL} | changed))


def _ask(engine: SimulatedEngine, request: ChatRequest):
    return engine.submit(request).result(timeout=20)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(
    "schema",
    [
        LOCAL,
        NarrativeRecord.model_json_schema(),
        TypeAdapter(list[dict[str, int]]).json_schema(),
        {"type": "array", "minItems": 3, "maxItems": 4, "items": {"enum": ["a", "b"]}},
        {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 3, "exclusiveMaximum": 5}]},
        {"type": "array", "prefixItems": [{"type": "boolean"}, {"const": 7}], "maxItems": 2, "minItems": 2},
        {"type": "string", "maxLength": 5},
        {"type": "string", "minLength": 100, "maxLength": 100},
        {"type": ["string", "null"], "pattern": "^simulated"},
        {
            "type": "object",
            "properties": {"x": {"allOf": [{"type": "number"}, {"maximum": -2, "minimum": -3}]}},
        },
        {
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                    "required": ["below"],
                }
            },
            "$ref": "#/$defs/node",
        },
    ],
)
def test_what_it_makes_up_satisfies_the_schema(schema, seed):
    jsonschema.validate(json.loads(made_up(schema, str(seed))), schema)


@pytest.mark.parametrize("seed", range(40))
def test_records_of_describers_can_be_made_of_it(seed):
    LocalRecord.model_validate_json(made_up(LOCAL, str(seed)))
    NarrativeRecord.model_validate_json(made_up(NarrativeRecord.model_json_schema(), str(seed)))


def test_every_text_says_that_it_is_simulated():
    record = LocalRecord.model_validate_json(_ask(_engine(), _request()).text)
    assert record.scene.startswith("simulated scene ")
    phrases = [*record.actions, *record.objects, *(each.descriptor for each in record.people)]
    assert all(phrase.startswith("simulated ") for phrase in phrases)
    assert _ask(_engine(), _request(schema=None)).text.startswith("simulated answer ")


def test_a_narrative_has_many_sentences_that_differ():
    text = json.loads(made_up(NarrativeRecord.model_json_schema(), "a"))["narrative"]
    sentences = text.split(". ")
    assert len(set(sentences)) == len(sentences) == 12


@pytest.mark.parametrize("schema", [{"type": "string", "pattern": "^[0-9]{4}$"}, {"type": "colour"}])
def test_what_it_cannot_make_is_said(schema):
    with pytest.raises(UsageError, match="the simulated engine cannot make"):
        _engine().check(_request(schema=schema))


def test_the_same_request_gets_the_same_answer_in_any_process_and_another_one_another():
    first = _ask(_engine(), _request()).text
    assert first == _ask(_engine(), _request()).text
    assert made_up({"type": "string"}, "a") == '"simulated answer 45a3"'
    others = [
        _request("what else?"),
        _request(seed=1),
        _request(system="You listen."),
        _request(parts=("what happens?", Picture(b"other", 448, 252))),
    ]
    assert len({first, *(_ask(_engine(), other).text for other in others)}) == 5


def test_it_names_itself_and_not_the_model():
    engine = open_engine(MODEL, Profile(engines={"*": ModelProfile(engine="simulated")}))
    assert _ask(engine, _request()).model == "simulated:Qwen/Qwen3-VL-8B-Instruct"
    assert engine.runs.name == "simulated:Qwen/Qwen3-VL-8B-Instruct"
    assert engine.runs.identity() != MODEL.identity()


def test_tokens_go_by_the_stated_formula():
    answer = _ask(_engine(), _request())
    assert answer.prompt_tokens == 3 + 4 + 14 * 8
    assert answer.completion_tokens == -(-len(answer.text) // 4)


def test_an_answer_that_is_too_long_is_cut_at_the_limit():
    answer = _ask(_engine(), _request(max_tokens=5))
    assert (len(answer.text), answer.finish_reason, answer.completion_tokens) == (20, "length", 5)


def test_a_request_takes_the_time_that_its_tokens_take():
    engine = _engine(prefill_tokens_per_second=1_000, decode_tokens_per_second=100, speed_up=10)
    started = time.monotonic()
    answer = _ask(engine, _request())
    took_s = time.monotonic() - started
    wanted_s = answer.prompt_tokens / 1_000 + answer.completion_tokens / 100
    assert engine.spent.seconds == pytest.approx(wanted_s)
    assert took_s >= wanted_s / 10
    engine.close()


def test_so_many_as_it_has_slots_run_at_once_and_the_others_wait_for_them():
    """Six requests of the same time in two slots end three times that time after they were asked."""
    engine = _engine(concurrency=2, prefill_tokens_per_second=1e9, decode_tokens_per_second=100, speed_up=5)
    request = _request(schema={"type": "string", "minLength": 100, "maxLength": 100})
    started = time.monotonic()
    futures = [engine.submit(request) for _ in range(6)]
    ends = []
    for future in futures:
        future.result(timeout=20)
        ends.append(time.monotonic() - started)
    one_s = engine.spent.seconds / 6 / 5
    assert [end >= (number // 2 + 1) * one_s * 0.99 for number, end in enumerate(ends)] == [True] * 6
    assert not futures[5].cancel()
    engine.close()


def test_without_speed_up_answers_come_at_once():
    assert _engine(decode_tokens_per_second=0.001).submit(_request()).done()


def _all(engine: SimulatedEngine, count: int = 400) -> list[str]:
    found = []
    for number in range(count):
        try:
            answer = _ask(engine, _request(f"window {number}"))
        except RequestError:
            found.append("rejected")
            continue
        try:
            json.loads(answer.text)
            found.append(answer.finish_reason)
        except ValueError:
            found.append(f"broken {answer.finish_reason}")
    return found


def test_faults_come_in_their_shares_and_for_the_same_requests_each_time():
    faults = {"refused": 0.1, "truncated": 0.1, "broken_json": 0.1, "rejected": 0.1, "overloaded": 0.1}
    found = _all(_engine(faults=faults))
    for name in ("broken refused", "broken length", "broken stop", "rejected"):
        assert 20 <= found.count(name) <= 60, name
    assert found == _all(_engine(faults=faults))
    assert set(_all(_engine())) == {"stop"}


def test_a_changed_request_draws_its_fault_anew():
    engine = _engine(faults={"truncated": 0.5})
    reasons = {_ask(engine, _request(max_tokens=2_000 + number)).finish_reason for number in range(20)}
    assert reasons == {"stop", "length"}


def test_overload_costs_time_inside_and_no_answer():
    calm, busy = _engine(), _engine(faults={"overloaded": 1.0})
    assert _ask(calm, _request()) == _ask(busy, _request())
    assert busy.spent.seconds == pytest.approx(calm.spent.seconds + 1)


def test_it_goes_down_where_the_profile_wants_it():
    engine = _engine(faults={"down_after": 2})
    _ask(engine, _request("a")), _ask(engine, _request("b"))
    with pytest.raises(EngineDownError, match="'Qwen/Qwen3-VL-8B-Instruct' is down"):
        _ask(engine, _request("c"))
    with pytest.raises(EngineDownError):
        _engine(faults={"down_after": 0}).check(_request())


def test_closing_cancels_what_waits_and_ends_what_runs():
    engine = _engine(concurrency=1, decode_tokens_per_second=0.001, speed_up=1)
    running, waiting = engine.submit(_request("a")), engine.submit(_request("b"))
    engine.close()
    with pytest.raises(EngineDownError):
        running.result(timeout=5)
    with pytest.raises(CancelledError):
        waiting.result(timeout=5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"speed": 3}, r"'Qwen/Qwen3-VL-8B-Instruct': options do not fit:.*known options: prefill_tokens"),
        ({"faults": {"refused": 0.6, "truncated": 0.6}}, "together are at most 1"),
    ],
)
def test_options_that_do_not_fit_name_the_model_and_what_is_known(options, said):
    with pytest.raises(RecipeError, match=f"(?s){said}"):
        _engine(**options)


VLM = """
name = "test"
[[scales]]
kind = "local"
window_seconds = 10
describer = "vlm-local"
frames = { per_window = 3, max_width = 64 }
options = { model = "Qwen/Qwen3-VL-8B-Instruct" }
[[scales]]
kind = "narrative"
window_seconds = 60
describer = "vlm-narrative"
frames = { per_window = 3, max_width = 64 }
options = { model = "Qwen/Qwen3-VL-8B-Instruct" }
"""


def _kit(engine: str) -> Kit:
    where = ModelProfile(engine=engine, endpoint="http://127.0.0.1:9/v1")
    return Kit(parse_toml(Recipe, VLM, "test.toml"), Profile(engines={"*": where}))


def test_describers_of_real_models_take_its_answers_at_the_first_try():
    frames = (Frame(0, 0, np.zeros((36, 64, 3), np.uint8)),)
    with _kit("simulated") as kit:
        kit.check()
        for describer in kit.describers.values():
            for number in range(50):
                span = Span(number * 10 * US, (number + 1) * 10 * US)
                shown = tuple(Frame(each.pts, span.start_us, each.image) for each in frames)
                past = Past(Span(0, US), f"simulated {number}") if describer.kind == "narrative" else None
                made = describer.describe(WindowInput(span, frames=describer.prepare(shown), past=past))
                assert "simulated" in made.text
                assert made.attempts == 1, made.message


def test_what_it_writes_has_a_producer_of_its_own():
    with _kit("simulated") as kit, _kit("openai") as real:
        for made, other in zip(kit.producers, real.producers, strict=True):
            assert made.model.name == "simulated:Qwen/Qwen3-VL-8B-Instruct"
            assert other.model.name == "Qwen/Qwen3-VL-8B-Instruct"
            assert made.producer_id != other.producer_id


@pytest.mark.parametrize(("slots", "cores", "videos"), [(1, 2, 2), (6, 2, 6), (64, 2, 8), (64, 32, 64)])
def test_so_many_videos_are_worked_on_as_keep_its_slots_busy(monkeypatch, slots, cores, videos):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    where = ModelProfile(engine="simulated", concurrency=slots)
    with Kit(parse_toml(Recipe, VLM, "test.toml"), Profile(engines={"*": where})) as kit:
        assert kit.videos_at_once == videos
    with Kit(parse_toml(Recipe, VLM, "t"), Profile(engines={"*": where}, videos_at_once=3)) as kit:
        assert kit.videos_at_once == 3
