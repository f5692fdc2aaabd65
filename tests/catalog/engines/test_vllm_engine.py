"""The engine ``vllm`` over an engine that is made up, and vLLM's part of it over a package that is made up.

``test_vllm_names.py`` holds what is made up here against the real package.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from evicat.catalog.engines import vllm_load
from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Picture
from evicat.catalog.engines.supervisor import EngineLostError, Running
from evicat.catalog.engines.vllm_engine import VllmEngine
from evicat.catalog.engines.vllm_options import VllmOptions
from evicat.schemas.errors import (
    EngineDownError,
    EvicatError,
    MissingExtraError,
    RecipeError,
    RequestError,
    TooLongError,
    UsageError,
)
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

MODEL = ModelRef(name="lab/eye-9b")
SCHEMA = {"type": "object"}


def question(text: str, **fields: Any) -> ChatRequest:
    return ChatRequest("You watch.", (text,), **{"max_tokens": 10} | fields)


@dataclass
class Loaded(Running):
    """Answers in capitals; some words have a meaning."""

    takes_schema: bool = True
    waits: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    is_stopped: bool = False
    dies: bool = False

    async def answer(self, request: ChatRequest, heard: Callable[[], None]) -> ChatAnswer:
        text = request.texts[-1]
        if request.schema and not self.takes_schema:
            raise RequestError("no such grammar")
        if text == "too long":
            raise RequestError("longer than the maximum model length of 32768")
        if self.dies:
            raise EngineLostError("its process ended")
        if text == "wait":
            self.asked.set()
            try:
                await self.waits.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return ChatAnswer(text.upper(), "stop", 1, 1, MODEL.name)

    async def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., VllmEngine]]:
    """Makes an engine whose loads give these; an error is raised."""
    made: list[VllmEngine] = []
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: True if name == "vllm" else real(name, *rest)
    )

    def engine(*loads: Loaded | EvicatError, **where: Any) -> VllmEngine:
        following = iter(loads)

        async def load(*_: Any) -> Running:
            found = next(following)
            if isinstance(found, EvicatError):
                raise found
            return found

        monkeypatch.setattr(vllm_load, "load", load)
        profile = ModelProfile(engine="vllm", **where)
        made.append(VllmEngine(MODEL, profile, Profile(engines={MODEL.name: profile})))
        return made[-1]

    yield engine
    for each in made:
        each.close()


def test_without_the_package_it_says_how_to_install_it() -> None:
    if importlib.util.find_spec("vllm"):
        pytest.skip("the package is here")
    with pytest.raises(MissingExtraError, match=r"pip install 'evicat\[vllm\]'"):
        VllmEngine(MODEL, ModelProfile(engine="vllm"), Profile())


def test_an_unknown_option_names_the_known_ones() -> None:
    where = ModelProfile(engine="vllm", options={"colour": "red"})
    with pytest.raises(RecipeError, match=r"known options: max_model_len, gpu_memory_utilization"):
        VllmEngine(MODEL, where, Profile())


def test_nothing_is_loaded_before_it_is_asked(make) -> None:
    before = threading.active_count()
    engine = make(UsageError("loaded"))
    assert engine.slots == 8
    assert threading.active_count() == before
    engine.close()


def test_it_answers_and_check_passes(make) -> None:
    engine = make(Loaded())
    engine.check(question("a", schema=SCHEMA))
    assert engine.submit(question("b")).result(10).text == "B"


def test_a_dead_engine_is_loaded_again_and_asked_again(make, caplog) -> None:
    first, second = Loaded(dies=True), Loaded()
    engine = make(first, second, concurrency=3)
    asked = [engine.submit(question(str(number))) for number in range(20)]
    assert [each.result(10).text for each in asked] == [str(number) for number in range(20)]
    assert first.is_stopped
    assert "the vLLM engine of 'lab/eye-9b' is lost (its process ended)" in caplog.text


def test_restarts_are_bounded_by_the_option(make) -> None:
    engine = make(*(Loaded(dies=True) for _ in range(3)), options={"restarts": 2})
    with pytest.raises(EngineDownError, match="was lost 3 times without an answer between"):
        engine.submit(question("a")).result(10)


def test_what_stops_the_first_load_is_told_to_all(make) -> None:
    engine = make(UsageError("vLLM sees no GPU"))
    for _ in range(2):
        with pytest.raises(UsageError, match="vLLM sees no GPU"):
            engine.check(question("a"))


def test_check_tells_that_the_schema_is_not_taken(make) -> None:
    with pytest.raises(UsageError, match=r'structured = "none".*It said: no such grammar'):
        make(Loaded(takes_schema=False)).check(question("a", schema=SCHEMA))


def test_check_tells_what_else_is_refused(make) -> None:
    with pytest.raises(UsageError, match="cannot answer what the recipe asks it: longer than the maximum"):
        make(Loaded()).check(question("too long", schema=SCHEMA))


def test_a_refused_request_is_a_request_error(make) -> None:
    with pytest.raises(RequestError, match="longer than"):
        make(Loaded()).submit(question("too long")).result(10)


def test_cancelling_a_future_stops_its_request(make) -> None:
    loaded = Loaded()
    engine = make(loaded)
    future = engine.submit(question("wait"))
    assert loaded.asked.wait(10)
    assert future.cancel()
    assert loaded.cancelled.wait(10)


def test_close_ends_everything_and_leaves_no_thread(make) -> None:
    before = set(threading.enumerate())
    loaded = Loaded()
    engine = make(loaded)
    future = engine.submit(question("wait"))
    assert loaded.asked.wait(10)
    engine.close()
    assert future.cancelled()
    assert loaded.is_stopped
    assert set(threading.enumerate()) <= before
    with pytest.raises(EngineDownError, match="the engine is closed"):
        engine.submit(question("later")).result(10)
    engine.close()


# vLLM's part


class DeadError(Exception):
    pass


class MadeUpEngine:
    """What evicat uses of ``AsyncLLM``."""

    def __init__(self, *, sees: bool = True, error: Exception | None = None, errored: bool = False) -> None:
        self.model_config = SimpleNamespace(is_multimodal_model=sees)
        self.errored = errored
        self.error = error
        self.ids: list[str] = []
        self.messages: list[Any] = []
        self.template: dict[str, Any] = {}
        self.sampling: dict[str, Any] = {}
        tokens = SimpleNamespace(with_kwargs=lambda **kwargs: kwargs)
        tokenizer = SimpleNamespace(
            all_special_tokens=["<|im_end|>"], get_added_vocab=lambda: {"<|image_pad|>": 9}
        )
        self.renderer = SimpleNamespace(
            tokenizer=tokenizer, default_chat_tok_params=tokens, render_chat_async=self._render
        )

    async def _render(self, conversations: list[Any], params: Any, tokens: Any) -> Any:
        assert tokens == {"add_special_tokens": False}
        self.messages, self.template = conversations[0], params.chat_template_kwargs
        return conversations, ["rendered"]

    async def generate(self, prompt: Any, sampling: Any, request_id: str) -> Any:
        assert prompt == "rendered"
        self.ids.append(request_id)
        self.sampling = vars(sampling)
        if self.error:
            raise self.error
        for text in ("{", "{}"):
            said = SimpleNamespace(text=text, token_ids=[1] * len(text), finish_reason="stop")
            yield SimpleNamespace(prompt_token_ids=[1, 2, 3], outputs=[said])


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package ``vllm`` with the classes that a request is made of."""
    for name, classes in {
        "vllm": ["SamplingParams"],
        "vllm.renderers": ["ChatParams"],
        "vllm.sampling_params": ["StructuredOutputsParams"],
    }.items():
        module = ModuleType(name)
        for each in classes:
            setattr(module, each, SimpleNamespace)
        monkeypatch.setitem(sys.modules, name, module)


def ask(engine: MadeUpEngine, request: ChatRequest, **options: Any) -> tuple[ChatAnswer, int]:
    """The answer, and how many signs of life there were."""
    loaded = vllm_load.LoadedVllm(engine, MODEL.name, VllmOptions(**options))
    signs = itertools.count()
    answer = asyncio.run(loaded.answer(request, lambda: next(signs)))
    return answer, next(signs)


@pytest.mark.usefixtures("package")
def test_a_request_goes_through_the_chat_template_and_its_last_word_is_the_answer() -> None:
    engine = MadeUpEngine()
    options = {"chat_template_kwargs": {"tone": "calm"}}
    answer, signs = ask(engine, question("a", schema=SCHEMA, seed=3), **options)
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("{}", 3, 2)
    assert signs == 2
    assert engine.template == {"enable_thinking": False, "tone": "calm", "add_generation_prompt": True}
    assert [each["role"] for each in engine.messages] == ["system", "user"]
    form = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    assert engine.sampling["structured_outputs"].json == SCHEMA | {"x-guidance": form}
    assert (engine.sampling["seed"], engine.sampling["max_tokens"]) == (3, 10)


@pytest.mark.usefixtures("package")
def test_the_form_is_left_to_the_prompt_where_the_profile_says_so() -> None:
    engine = MadeUpEngine()
    ask(engine, question("a", schema=SCHEMA), structured="none")
    assert engine.sampling["structured_outputs"] is None


@pytest.mark.usefixtures("package")
def test_dialogue_with_control_tokens_ends_no_turn_and_stands_for_no_picture() -> None:
    engine = MadeUpEngine()
    ask(engine, question("He said <|im_end|> and <|image_pad|>, a<b."))
    (part,) = engine.messages[1]["content"]
    assert part["text"] == "He said < |im_end|> and < |image_pad|>, a<b."


@pytest.mark.usefixtures("package")
def test_every_request_has_an_id_of_its_own() -> None:
    engine = MadeUpEngine()
    loaded = vllm_load.LoadedVllm(engine, MODEL.name, VllmOptions())

    async def both() -> None:
        await asyncio.gather(*(loaded.answer(question(each), lambda: None) for each in "ab"))

    asyncio.run(both())
    assert len(set(engine.ids)) == 2


@pytest.mark.usefixtures("package")
def test_a_model_without_eyes_is_not_shown_pictures(jpeg: bytes) -> None:
    request = ChatRequest("", (Picture(jpeg, 32, 32),), max_tokens=10)
    with pytest.raises(UsageError, match="takes no pictures: name a vision-language model"):
        ask(MadeUpEngine(sees=False), request)
    assert ask(MadeUpEngine(sees=False), question("words"))[0].text == "{}"


@pytest.mark.usefixtures("package")
def test_errors_are_the_engines_where_it_is_dead_and_else_the_requests() -> None:
    error = ValueError("temperature must be non-negative")
    with pytest.raises(RequestError, match="vLLM refuses this request: temperature must be") as refused:
        ask(MadeUpEngine(error=error), question("a"))
    assert type(refused.value) is RequestError
    with pytest.raises(EngineLostError, match="its process ended: gone"):
        ask(MadeUpEngine(error=DeadError("gone"), errored=True), question("a"))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    "said",
    [
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
        "This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens.",
        "At most 4 image(s) may be provided in one prompt.",
    ],
)
def test_a_prompt_that_is_too_long_is_told_from_other_refusals(said: str) -> None:
    with pytest.raises(TooLongError, match="vLLM refuses this request: "):
        ask(MadeUpEngine(error=ValueError(said)), question("a"))


@pytest.mark.usefixtures("package")
def test_the_cause_of_an_error_is_told_with_it() -> None:
    error = RuntimeError()
    error.__cause__ = KeyError("pixel_values")
    with pytest.raises(RequestError, match=r"RuntimeError \(KeyError: 'pixel_values'\)"):
        ask(MadeUpEngine(error=error), question("a"))


@pytest.mark.parametrize(
    "said",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "Free memory on device cuda:0 (3.1/24 GiB) is less than desired GPU memory utilization (0.9, 21 GiB)",
        "To serve at least one request, 36 GiB KV cache is needed, which is larger than the available 8 GiB",
        "No available memory for the cache blocks",
    ],
)
def test_too_little_memory_says_what_to_change(said: str) -> None:
    error = vllm_load.not_loaded("'eye' from /weights", ValueError(said))
    assert str(error).startswith("no memory to load 'eye' from /weights: ")
    for setting in ("max_model_len", "gpu_memory_utilization", "quantized", "gpus"):
        assert setting in str(error)


def test_a_process_that_does_not_come_up_points_to_its_log_and_to_memory() -> None:
    error = vllm_load.not_loaded(
        "'eye'", RuntimeError("Engine core initialization failed. See root cause above.")
    )
    assert "Its process says why in the log above. If memory is short: lower max_model_len" in str(error)
    assert 'engine = "openai"' in str(error)


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A package that sees a GPU, or none."""

    def make(sees_gpu: bool) -> None:
        module: Any = ModuleType("vllm.platforms")
        module.current_platform = SimpleNamespace(is_unspecified=lambda: not sees_gpu)
        monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
        monkeypatch.setitem(sys.modules, "vllm.platforms", module)

    return make


def test_a_machine_without_a_gpu_is_told_of_the_other_engines(platform, monkeypatch) -> None:
    platform(sees_gpu=False)
    for name in vllm_load.ENVIRONMENT:
        monkeypatch.setenv(name, "as the user has it")
    loading = vllm_load.load(MODEL, ModelProfile(), Profile(), VllmOptions())
    with pytest.raises(UsageError, match=r'vLLM sees no GPU on this machine.*engine = "transformers"'):
        asyncio.run(loading)


def test_a_package_that_cannot_be_imported_says_that_it_needs_its_own_environment(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm.platforms", None)
    with pytest.raises(UsageError, match=r"cannot be imported .*an environment of its own"):
        vllm_load._check_device()
