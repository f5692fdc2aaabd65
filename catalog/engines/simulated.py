"""An engine without a model: it makes answers up, says so, and takes the time that a model would take.

For trials of a recipe and a library without a GPU, for tests, and for measuring what scheduling and storage
cost. Its texts begin with ``simulated``. As no model runs, it is part of the producer: what it writes is
kept apart from what the model of the recipe writes (``docs/decisions/0005-simulated-is-a-producer.md``).
"""

from __future__ import annotations

import hashlib
import heapq
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from pydantic import Field, model_validator

from evicat.catalog.registry import check_options
from evicat.catalog.tokens import FAMILIES
from evicat.schemas.errors import EngineDownError, RequestError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model, canonical_json, content_hash
from evicat.schemas.recipe import ModelProfile, Profile

from .base import ChatAnswer, ChatRequest, Engine, Picture
from .made_up import made_up

VERSION = 1
"""Bumped by hand when the same request begins to get another answer."""
CHARACTERS_PER_TOKEN = 4
FAMILY = FAMILIES["qwen3-vl"]
OVERLOAD_SECONDS = 1.0
"""What one turned-away try costs, on the clock of the simulation."""
SAMPLES = 64
"""Answers whose mean length a plan goes by."""
Rate = Field(default=0.0, ge=0, le=1)


class Faults(Model):
    """Shares of the requests that go wrong, each in its way; which ones is drawn from the request."""

    refused: float = Rate
    """The model declines."""
    truncated: float = Rate
    """The answer is cut in half, as at the token limit."""
    broken_json: float = Rate
    """The answer ends early, and says that it is whole."""
    rejected: float = Rate
    """The request is refused for what it is."""
    overloaded: float = Rate
    """The request is turned away once (as by HTTP 429) and is asked again inside the engine."""
    down_after: int | None = Field(default=None, ge=0)
    """After so many requests nothing answers any more."""

    @model_validator(mode="after")
    def _fits_in_one(self) -> Faults:
        if sum(self.shares.values()) > 1:
            raise ValueError(f"the shares of all faults together are at most 1, got {self.shares}")
        return self

    @property
    def shares(self) -> dict[str, float]:
        return self.model_dump(exclude={"down_after"})


class SimulatedOptions(Model):
    """Time and faults of the simulation. The time that a request takes, once it has one of the slots, is

    ``(prompt tokens / prefill rate + completion tokens / decode rate) / speed_up`` seconds.
    """

    prefill_tokens_per_second: float = Field(default=4_000, gt=0)
    """Prompt tokens that one request gets read in a second."""
    decode_tokens_per_second: float = Field(default=50, gt=0)
    """Answer tokens that one request gets written in a second."""
    speed_up: float = Field(default=0, ge=0)
    """How much faster than that its clock runs; 0: answers come at once."""
    faults: Faults = Faults()
    """Shares of the requests that go wrong."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What an engine has done so far. Seconds are those of its own clock: divide by ``speed_up``."""

    requests: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class _Asked:
    """One request on its way; ``seconds`` are real ones."""

    future: Future[ChatAnswer]
    outcome: ChatAnswer | Exception
    seconds: float
    at: float = field(default_factory=time.monotonic)


class SimulatedEngine(Engine):
    """Makes up what a request wants, as a pure function of model name, texts, images and seed.

    - The answer satisfies the schema of the request; each text in it says that it is simulated.
    - Prompt tokens: of a text about one per 4 characters. Of an image one per 32 x 32 pixels, sides rounded
      up, and 64 at least (Qwen3-VL: patches of 16 pixels, 2 x 2 of them merged; ``catalog/tokens.py``).
      Frames are taken to be sent as separate images; sent as a video, two of them would share their tokens,
      which is not simulated.
    - Time: ``slots`` requests are under way at once, each for the time that :class:`SimulatedOptions` says,
      whatever the others do; more wait in the order in which they came. Real servers slow down as their
      batch fills: measure their rates at the concurrency that you want to know of.
    - Faults: drawn from all of the request. The same request fails in the same way each time, and one that
      is changed (another limit, seed or temperature) draws again.
    """

    name: ClassVar[str] = "simulated"

    def __init__(self, model: ModelRef, where: ModelProfile, profile: Profile) -> None:
        super().__init__(model, where, profile)
        about = f"[engines] of the profile, {model.name!r}"
        self.options = check_options(about, SimulatedOptions, where.options)
        self.spent = Spent()
        self._known = model.digest or model.name
        self._changed = threading.Condition()
        self._waiting: deque[_Asked] = deque()
        self._running: list[tuple[float, int, _Asked]] = []
        self._order = count()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def runs(self) -> ModelRef:
        """No model: ``simulated:NAME``, so that nothing of it passes as the work of the model NAME."""
        digest = content_hash(["simulated", VERSION, self.model.digest]) if self.model.digest else ""
        return ModelRef(name=f"simulated:{self.model.name}", revision=str(VERSION), digest=digest)

    def answer_tokens(self, schema: dict[str, Any]) -> float | None:
        made = [simulated_tokens(made_up(schema, str(number))) for number in range(SAMPLES)]
        return sum(made) / len(made)

    def check(self, request: ChatRequest) -> None:
        if self.options.faults.down_after == 0:
            raise self._down()
        made_up(request.schema, self._seed(request))

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        future: Future[ChatAnswer] = Future()
        answer, fault = self._answer(request), self._fault(request)
        seconds = self.seconds(answer) + (OVERLOAD_SECONDS if fault == "overloaded" else 0.0)
        with self._changed:
            down_after = self.options.faults.down_after
            if self._is_closed or (down_after is not None and self.spent.requests >= down_after):
                future.set_exception(self._down())
                return future
            self.spent = Spent(
                self.spent.requests + 1,
                self.spent.seconds + seconds,
                self.spent.prompt_tokens + answer.prompt_tokens,
                self.spent.completion_tokens + answer.completion_tokens,
            )
            outcome = _spoiled(answer, fault)
            if self.options.speed_up:
                self._waiting.append(_Asked(future, outcome, seconds / self.options.speed_up))
                self._begin(time.monotonic())
                self._need_thread()
                self._changed.notify_all()
                return future
        _end(future, outcome)
        return future

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            waiting = [*self._waiting, *(asked for _, _, asked in self._running)]
            self._waiting.clear()
            self._running.clear()
            self._changed.notify_all()
        for asked in waiting:
            if not asked.future.cancel():
                _end(asked.future, self._down())
        if self._thread:
            self._thread.join()

    # What is answered

    def _seed(self, request: ChatRequest) -> str:
        return _hash([self._known, *request.texts], request.pictures, request.seed)

    def _answer(self, request: ChatRequest) -> ChatAnswer:
        text = made_up(request.schema, self._seed(request))
        prompt = sum(simulated_tokens(part) for part in request.texts)
        prompt += sum(FAMILY.picture_tokens(each.width, each.height) for each in request.pictures)
        if simulated_tokens(text) > request.max_tokens:
            text = text[: request.max_tokens * CHARACTERS_PER_TOKEN]
            return ChatAnswer(text, "length", prompt, request.max_tokens, self.runs.name)
        return ChatAnswer(text, "stop", prompt, simulated_tokens(text), self.runs.name)

    def _fault(self, request: ChatRequest) -> str:
        """The fault that this request draws; empty: none."""
        rest = [request.max_tokens, request.temperature, request.schema]
        draw = int(_hash([self._known, *request.texts], request.pictures, request.seed, rest)[:12], 16)
        place = draw / 16**12
        for name, share in self.options.faults.shares.items():
            if place < share:
                return name
            place -= share
        return ""

    def seconds(self, answer: ChatAnswer) -> float:
        """What an answer takes in its slot, on the clock of the simulation."""
        prefill = answer.prompt_tokens / self.options.prefill_tokens_per_second
        return prefill + answer.completion_tokens / self.options.decode_tokens_per_second

    def _down(self) -> EngineDownError:
        return EngineDownError(
            f"the simulated engine of {self.model.name!r} is down, as its profile wants it"
        )

    # When it is answered. Where a request waits, it begins on the instant at which another ends, however
    # late this thread wakes up: a busy machine does not slow the simulated one down.

    def _need_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="simulated engine", daemon=True)
            self._thread.start()

    def _begin(self, at: float) -> None:
        """Give free slots to what waits. Holds ``_changed``."""
        while self._waiting and len(self._running) < self.slots:
            asked = self._waiting.popleft()
            if asked.future.set_running_or_notify_cancel():
                end = max(at, asked.at) + asked.seconds
                heapq.heappush(self._running, (end, next(self._order), asked))

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and not (ended := self._ended()):
                    self._changed.wait(self._running[0][0] - time.monotonic() if self._running else None)
                if self._is_closed:
                    return
            for asked in ended:
                _end(asked.future, asked.outcome)

    def _ended(self) -> list[_Asked]:
        """What has ended by now; what waited for its slot begins. Holds ``_changed``."""
        ended = []
        while self._running and self._running[0][0] <= time.monotonic():
            end, _, asked = heapq.heappop(self._running)
            ended.append(asked)
            self._begin(end)
        return ended


def simulated_tokens(text: str) -> int:
    """Tokens of a text for engines without a model: one for each few characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _hash(texts: list[str], pictures: list[Picture], *rest: Any) -> str:
    images = [hashlib.sha256(each.jpeg).hexdigest() for each in pictures]
    return hashlib.sha256(canonical_json([texts, images, *rest]).encode()).hexdigest()


def _spoiled(answer: ChatAnswer, fault: str) -> ChatAnswer | Exception:
    """What becomes of an answer by a fault."""
    half, tokens = answer.text[: len(answer.text) // 2], (answer.prompt_tokens, answer.completion_tokens)
    match fault:
        case "refused":
            return ChatAnswer("", "refused", answer.prompt_tokens, 0, answer.model)
        case "truncated":
            return ChatAnswer(half, "length", *tokens, answer.model)
        case "broken_json":
            return ChatAnswer(half, "stop", *tokens, answer.model)
        case "rejected":
            return RequestError(
                "the simulated engine rejects this request, as its profile wants it",
                prompt_tokens=answer.prompt_tokens,
            )
    return answer


def _end(future: Future[ChatAnswer], outcome: ChatAnswer | Exception) -> None:
    with suppress(InvalidStateError):  # it was cancelled, or the engine is closed
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
