"""A text model that is asked for answers in a given form: for tags, factors, and readers.

::

    class Verdict(Answer):
        is_visible: bool
        why: str

    with TextModel.of(options, profile) as model:
        asked = model.ask("Does this entry say that a door opens? ...", Verdict)
        asked.answer.is_visible

A question is asked again where its answer is cut, does not fit or repeats itself, each once and each time
changed (``asking.py``); what then does not fit is an error, never half an answer.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, TypeVar

from evicat.catalog.answers import Answer, schema_of
from evicat.catalog.asking import Asked, ask
from evicat.catalog.engines.base import ChatRequest, Engine
from evicat.catalog.engines.loaders import open_engine
from evicat.catalog.weights import named_model
from evicat.schemas.errors import WindowError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import Profile, TextModelOptions

A = TypeVar("A", bound=Answer)

SHORTER: Final = "Your last answer did not come to its end. Answer once more, in fewer words."
"""Put after a question whose answer was cut."""
AHEAD: Final = 2
"""So many times the slots of the engine is how far questions are taken ahead of what was answered."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question. ``system`` is what many questions have in common: it comes first, for prefix caches."""

    text: str
    system: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a model was asked, and what that took; questions without an answer count too."""

    calls: int = 0
    """Questions that came to an end, with an answer or without."""
    attempts: int = 0
    """Requests to the engine: more than calls where a question was asked again."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class TextModel:
    """Asks one model; threads may share it. Nothing is loaded or sent before the first question.

    Args:
        model: What is asked; :func:`~evicat.catalog.weights.named_model` makes it of a recipe's options.
        profile: How it is run, under ``[engines."NAME"]``.
        max_tokens: Tokens of an answer.
        temperature: Randomness of the answers.
        engine: One that is open already, and stays open; left out: one is opened, and closed with this.

    Raises:
        UsageError: the profile does not say how to run the model.
        MissingExtraError: the engine's package is not installed.
    """

    def __init__(
        self,
        model: ModelRef,
        profile: Profile,
        *,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        engine: Engine | None = None,
    ) -> None:
        self._is_owned = engine is None
        self.engine = engine or open_engine(model, profile)
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._spent = Spent()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, options: TextModelOptions, profile: Profile, engine: Engine | None = None) -> TextModel:
        """The model that options of a recipe name."""
        return cls(
            named_model(options, profile),
            profile,
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            engine=engine,
        )

    @property
    def runs(self) -> ModelRef:
        """What really answers, as a producer names it."""
        return self.engine.runs

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        with self._lock:
            return self._spent

    def check(self, schema: type[Answer]) -> None:
        """Make sure that the model is there, is the one that is named, and takes ``schema``.

        Raises:
            EngineDownError, UsageError: it cannot be asked; says what to do.
        """
        self.engine.check(self._request("Answer with anything that fits.", schema))

    def ask(self, prompt: Prompt | str, schema: type[A]) -> Asked[A]:
        """The answer to one question, checked against ``schema``, with what it took.

        Raises:
            TruncatedError, AnswerError, RefusedError, RequestError: there is no answer; with what the model
                said last, and what all tries took.
            EngineDownError, UsageError: nothing can be asked any more.
        """
        try:
            asked = ask(self.engine, self._request(prompt, schema), schema, _shorter)
        except WindowError as error:
            self._add(error)
            raise
        self._add(asked)
        return asked

    def ask_all(self, prompts: Iterable[Prompt | str], schema: type[A]) -> Iterator[Asked[A] | WindowError]:
        """Ask many questions at once: as many as the engine has slots.

        Results come in the order of ``prompts``, each as soon as it and all before it are there. A question
        without an answer gives its error in its place. ``prompts`` are taken as they are needed, so that they
        may be many. Whoever stops early has asked at most what was under way.

        Raises:
            EngineDownError, UsageError: nothing can be asked any more.
        """
        slots = self.engine.slots
        waiting: deque[Future[Asked[A] | WindowError]] = deque()
        with ThreadPoolExecutor(slots, thread_name_prefix="text model") as threads:
            try:
                for prompt in prompts:
                    waiting.append(threads.submit(self._asked, prompt, schema))
                    while len(waiting) >= AHEAD * slots or (waiting and waiting[0].done()):
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Let go of the engine, where it was opened here; what is still asked is cancelled."""
        if self._is_owned:
            self.engine.close()

    def __enter__(self) -> TextModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _asked(self, prompt: Prompt | str, schema: type[A]) -> Asked[A] | WindowError:
        try:
            return self.ask(prompt, schema)
        except WindowError as error:
            return error

    def _request(self, prompt: Prompt | str, schema: type[Answer]) -> ChatRequest:
        asked = Prompt(prompt) if isinstance(prompt, str) else prompt
        return ChatRequest(
            system=asked.system,
            parts=(asked.text,),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            schema=schema_of(schema),
        )

    def _add(self, cost: Asked[A] | WindowError) -> None:
        with self._lock:
            spent = self._spent
            self._spent = Spent(
                spent.calls + 1,
                spent.attempts + cost.attempts,
                spent.prompt_tokens + cost.prompt_tokens,
                spent.completion_tokens + cost.completion_tokens,
            )


def _shorter(request: ChatRequest) -> ChatRequest:
    return replace(request, parts=(*request.parts, SHORTER))
