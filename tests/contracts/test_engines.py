"""What every engine keeps to. ``openai`` asks a real server on this machine.

``scripted`` and ``simulated`` have no model.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path

import jsonschema
import pytest

from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Engine, Picture
from evicat.catalog.engines.loaders import ENGINES, open_engine
from evicat.schemas.errors import EvicatError, RecipeError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile
from evicat.schemas.records import LocalRecord, NarrativeRecord

from ..catalog.engines import chat_server

MODEL = ModelRef(name=chat_server.MODEL)
NEEDS = {
    "openai": "openai",
    "scripted": "pydantic",
    "simulated": "pydantic",
    "transformers": "llguidance",
    "vllm": "vllm",
}
"""The package that an engine needs; without it its tests are skipped."""


@pytest.fixture(params=sorted(ENGINES))
def where(request, tmp_path) -> Iterator[ModelProfile]:
    """How the profile runs the model on this engine."""
    name = request.param
    pytest.importorskip(NEEDS[name], reason=f"engine {name!r} needs the package {NEEDS[name]!r}")
    with chat_server.ChatServer() as server:
        endpoint = server.url if name == "openai" else ""
        options = {"file": str(script(tmp_path))} if name == "scripted" else {}
        yield ModelProfile(engine=name, endpoint=endpoint, concurrency=4, options=options)


def script(folder: Path) -> Path:
    """Rules for all questions of this file."""
    rules = [
        {"field": "scene", "answer": LocalRecord(scene="as scripted").model_dump(mode="json")},
        {"field": "narrative", "answer": NarrativeRecord(narrative="as scripted").model_dump(mode="json")},
        *({"equals": text, "answer": f"scripted: {text}"} for text in ("a", "b", *map(str, range(100)))),
        {"answer": "scripted"},
    ]
    file = folder / "rules.jsonl"
    file.write_text("\n".join(map(json.dumps, rules)))
    return file


@pytest.fixture
def engine(where: ModelProfile, request: pytest.FixtureRequest) -> Iterator[Engine]:
    in_process = where.engine == "transformers"
    models = {MODEL.name: str(request.getfixturevalue("tiny_vlm"))} if in_process else {}
    made = open_engine(MODEL, Profile(engines={MODEL.name: where}, models=models, threads=1))
    yield made
    made.close()


@pytest.fixture(scope="module")
def picture() -> Picture:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (64, 48), "teal").save(file, "JPEG")
    return Picture(file.getvalue(), 64, 48)


@pytest.fixture
def question(picture: Picture):
    def make(text: str = "What happens?", **fields: object) -> ChatRequest:
        parts = ("Frame at 0:01.0:", picture, text)
        return ChatRequest("You watch.", parts, **({"max_tokens": 4_000} | fields))

    return make


def test_every_engine_is_tested() -> None:
    assert set(NEEDS) == set(ENGINES)


def test_is_what_its_name_says(engine, where) -> None:
    assert engine.name == where.engine
    assert engine.slots == where.concurrency
    assert MODEL.name in engine.model.name


def test_answers_in_plain_words(engine, question) -> None:
    answer = engine.submit(question()).result(timeout=20)
    assert isinstance(answer, ChatAnswer)
    assert answer.text
    assert answer.finish_reason == "stop"
    assert min(answer.prompt_tokens, answer.completion_tokens) >= 0
    assert MODEL.name in answer.model


@pytest.mark.parametrize("record", [LocalRecord, NarrativeRecord])
def test_answers_by_the_schema_that_is_asked_for(engine, question, record) -> None:
    schema = record.model_json_schema()
    answer = engine.submit(question(schema=schema)).result(timeout=20)
    jsonschema.validate(json.loads(answer.text), schema)


def test_text_alone_and_pictures_alone_are_answered(engine, picture) -> None:
    for parts in (("Only words.",), (picture, picture)):
        assert engine.submit(ChatRequest("You watch.", parts, max_tokens=4_000)).result(timeout=20).text


def test_equal_requests_at_temperature_zero_get_equal_answers(engine, question) -> None:
    first, second, other = (engine.submit(question(text, seed=1)) for text in ("a", "a", "b"))
    assert first.result(timeout=20).text == second.result(timeout=20).text
    assert first.result().text != other.result(timeout=20).text


def test_many_threads_share_it_and_each_gets_its_own_answer(engine, question) -> None:
    alone = [engine.submit(question(str(number))).result(timeout=20).text for number in range(40)]
    together: dict[int, str] = {}

    def ask(number: int) -> None:
        together[number] = engine.submit(question(str(number))).result(timeout=20).text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [together[number] for number in range(40)] == alone


def test_check_passes_where_the_engine_is_well(engine, question) -> None:
    engine.check(question(schema=LocalRecord.model_json_schema()))


def test_close_ends_everything_that_waits(engine, question) -> None:
    futures = [engine.submit(question(str(number))) for number in range(100)]
    engine.close()
    done, waiting = wait(futures, timeout=20)
    assert not waiting
    for each in done:
        assert each.cancelled() or isinstance(each.exception(), EvicatError) or each.result().text
    engine.close()


def test_no_thread_is_left_after_close(engine, question) -> None:
    before = set(threading.enumerate())
    engine.submit(question()).result(timeout=20)
    engine.close()
    ours = {each for each in set(threading.enumerate()) - before if "process_request" not in each.name}
    assert ours == set()


def test_unknown_options_name_the_known_ones(where) -> None:
    wrong = where.model_copy(update={"options": {"colour": "red"}})
    with pytest.raises(RecipeError, match="known options: "):
        open_engine(MODEL, Profile(engines={"*": wrong}))


def test_a_model_that_the_profile_does_not_run_says_what_to_write() -> None:
    with pytest.raises(UsageError, match=r'write under \[engines."lab/eye-9b"\]'):
        open_engine(MODEL, Profile())


def test_nothing_heavy_is_loaded_before_it_is_asked(where) -> None:
    profile = Profile(engines={"*": where}).model_dump_json()
    code = (
        "import sys\n"
        "from evicat.catalog.engines.loaders import open_engine\n"
        "from evicat.schemas.identity import ModelRef\n"
        "from evicat.schemas.recipe import Profile\n"
        f"open_engine(ModelRef(name='m'), Profile.model_validate_json({profile!r})).close()\n"
        "assert not {'openai', 'httpx2', 'torch', 'cv2', 'av'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
