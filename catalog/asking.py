"""One question to an engine: asked again where the answer is cut or does not fit, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Engine
from evicat.schemas.errors import AnswerError, RefusedError, TooLongError, TruncatedError, WindowError

from .answers import Answer, CutAnswerError, read_answer

A = TypeVar("A", bound=Answer)

OTHER_TEMPERATURE: Final = 0.3
"""Of the one further try after an answer that does not fit; at temperature 0 it would come again."""
MORE_TOKENS: Final = 2
"""Times as many output tokens has the one further try after an answer that was cut."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[A]):
    """The answer that fits, and what all tries together took."""

    answer: A
    is_cleaned: bool
    notes: tuple[str, ...]
    """Why it was asked again."""
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    pictures: int = 0
    """How many the request held that was answered."""


@dataclass(slots=True)
class _Tries:
    """What was tried so far."""

    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    raw: str = ""
    notes: list[str] = field(default_factory=list)

    def add(self, answer: ChatAnswer) -> None:
        self.attempts += 1
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        self.raw = answer.text

    def add_failed(self, error: WindowError) -> None:
        self.attempts += error.attempts
        self.prompt_tokens += error.prompt_tokens
        self.completion_tokens += error.completion_tokens

    def failed(self, kind: type[WindowError], message: str) -> WindowError:
        return kind(
            message,
            raw=self.raw,
            attempts=self.attempts,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
        )


def ask(
    engine: Engine,
    request: ChatRequest,
    answer: type[A],
    shorter: Callable[[ChatRequest], ChatRequest],
    fewer: Callable[[ChatRequest], ChatRequest | None] = lambda _: None,
) -> Asked[A]:
    """Ask at most four times.

    After an answer that was cut once more with room for twice as much, and with less asked for (``shorter``);
    after one that does not fit or repeats itself once more with another temperature and seed; where the
    prompt is too long or has too many images, once more with fewer of them (``fewer``; None: there are no
    fewer). Every further try keeps what was changed before it.

    Raises:
        TruncatedError, AnswerError, RefusedError, RequestError: there is no answer; with what the model said
            last, and what all tries took.
        EngineDownError, UsageError: nothing can be asked any more.
    """
    tries = _Tries()
    may_lengthen = may_vary = may_thin = True
    while True:
        try:
            said = engine.submit(request).result()
        except WindowError as error:
            tries.add_failed(error)
            thinned = fewer(request) if may_thin and isinstance(error, TooLongError) else None
            if thinned is None:
                raise tries.failed(type(error), str(error)) from error
            may_thin, request = False, thinned
            tries.notes.append(str(error))
            continue
        tries.add(said)
        try:
            made, is_cleaned = _read(said, answer, request)
        except RefusedError as error:
            raise tries.failed(RefusedError, str(error)) from None
        except CutAnswerError as error:
            if not may_lengthen:
                raise tries.failed(TruncatedError, str(error)) from None
            may_lengthen = False
            request = replace(shorter(request), max_tokens=MORE_TOKENS * request.max_tokens)
            tries.notes.append(str(error))
        except AnswerError as error:
            if not may_vary:
                raise tries.failed(AnswerError, str(error)) from None
            may_vary = False
            request = replace(request, temperature=OTHER_TEMPERATURE, seed=(request.seed or 0) + 1)
            tries.notes.append(str(error))
        else:
            cost = tries.attempts, tries.prompt_tokens, tries.completion_tokens
            return Asked(made, is_cleaned, tuple(tries.notes), *cost, len(request.pictures))


def _read(said: ChatAnswer, answer: type[A], request: ChatRequest) -> tuple[A, bool]:
    if said.finish_reason == "refused":
        raise RefusedError("the model declined to answer" + (f": {said.text[:200]}" if said.text else ""))
    if said.finish_reason == "length":
        raise CutAnswerError(f"the answer was cut at {request.max_tokens} tokens")
    return read_answer(said.text, answer)
