"""Chat models in this process, by the ``transformers`` library: on a GPU, or on the CPU."""

from __future__ import annotations

import gc
import importlib.util
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evicat.catalog.registry import check_options
from evicat.schemas.errors import EngineDownError, EvicatError, MissingExtraError, RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

from .base import ChatAnswer, ChatRequest, Engine
from .transformers_options import TransformersOptions

if TYPE_CHECKING:
    from .transformers_grammar import Grammars
    from .transformers_load import Chat

LINGER_SECONDS = 0.02
"""A batch that is not full waits for further requests until none has come for so long."""
TOO_LARGE = (
    "no memory for this request alone: show fewer or smaller frames in the recipe, or run the model on a "
    "device with more memory"
)


@dataclass(slots=True, eq=False)
class _Asked:
    request: ChatRequest
    future: Future[ChatAnswer]


class TransformersEngine(Engine):
    """Loads the model at its first request, and answers ``batch_size`` requests at a time.

    One thread of its own loads, answers and lets go. A batch begins with the request that waited longest;
    those with the same schema come before others. Where memory is short for a batch it is halved, and later
    ones are no larger.

    Raises:
        UsageError: an option does not fit.
        MissingExtraError: llguidance is not installed.
    """

    name: ClassVar[str] = "transformers"

    def __init__(self, model: ModelRef, where: ModelProfile, profile: Profile) -> None:
        super().__init__(model, where, profile)
        about = f'[engines."{model.name}"] of the profile'
        self.options = check_options(about, TransformersOptions, where.options)
        if self.options.structured == "grammar" and importlib.util.find_spec("llguidance") is None:
            raise MissingExtraError("llguidance", "transformers")
        self._most = self.options.batch_size
        self._changed = threading.Condition()
        self._waiting: deque[_Asked] = deque()
        self._ended: EvicatError | None = None
        self._thread: threading.Thread | None = None

    @property
    def _who(self) -> str:
        return f"the model {self.model.name!r} on {self.profile.device}"

    def check(self, request: ChatRequest) -> None:
        try:
            self.submit(request).result()
        except RequestError as error:
            raise UsageError(f"{self._who} cannot answer what the recipe asks it: {error}") from None

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        asked = _Asked(request, Future())
        with self._changed:
            if self._ended:
                asked.future.set_exception(self._ended)
                return asked.future
            self._waiting.append(asked)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._who, daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return asked.future

    def close(self) -> None:
        self._end(EngineDownError(f"{self._who}: the engine is closed"), cancel=True)
        if self._thread:
            self._thread.join()

    def _end(self, error: EvicatError, *, cancel: bool = False) -> None:
        """Nothing more is answered: all that waits is cancelled, or hears why."""
        with self._changed:
            self._ended = self._ended or error
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for asked in waiting:
            if cancel and asked.future.cancel():
                asked.future.set_running_or_notify_cancel()
            elif asked.future.set_running_or_notify_cancel():
                asked.future.set_exception(self._ended)

    # All that follows runs in the engine's own thread.

    def _work(self) -> None:
        try:
            self._serve()
        except EvicatError as error:
            self._end(error)
        except BaseException as error:  # noqa: BLE001  those that wait must hear of it, whatever it is
            self._end(self._down(error))
        _free_memory()

    def _serve(self) -> None:
        from .transformers_grammar import Grammars
        from .transformers_load import load

        chat = load(self.model, self.options, self.profile)
        grammars = None
        if self.options.structured == "grammar":
            grammars = Grammars(chat.tokenizer, chat.vocabulary, list(chat.ends))
        while batch := self._next_batch():
            self._answer(chat, grammars, batch)

    def _next_batch(self) -> list[_Asked]:
        """Requests to answer together; none: the engine has ended."""
        with self._changed:
            while True:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                while len(self._waiting) < self._most and self._changed.wait(LINGER_SECONDS):
                    pass
                if self._ended:
                    return []
                chosen = alike([each.request for each in self._waiting], self._most)
                batch = [self._waiting[index] for index in chosen]
                for asked in batch:
                    self._waiting.remove(asked)
                if begun := [each for each in batch if each.future.set_running_or_notify_cancel()]:
                    return begun

    def _answer(self, chat: Chat, grammars: Grammars | None, batch: list[_Asked]) -> None:
        from .transformers_run import check

        fit = []
        for asked in batch:
            try:
                check(chat, grammars, asked.request, self._who)
            except UsageError as error:
                asked.future.set_exception(error)
            else:
                fit.append(asked)
        if not fit:
            return
        try:
            outcomes = self._run(chat, grammars, [each.request for each in fit])
        except BaseException as error:
            for asked in fit:
                asked.future.set_exception(self._down(error))
            raise
        for asked, outcome in zip(fit, outcomes, strict=True):
            if self._ended:
                asked.future.set_exception(self._ended)
            elif isinstance(outcome, RequestError):
                asked.future.set_exception(outcome)
            else:
                asked.future.set_result(outcome)

    def _run(
        self, chat: Chat, grammars: Grammars | None, requests: Sequence[ChatRequest]
    ) -> list[ChatAnswer | RequestError]:
        """Answer a batch; one that fails is halved until what is to blame is alone.

        Raises:
            RuntimeError: torch fails in a way that has nothing to do with a request.
        """
        tried = self._tried(chat, grammars, requests)
        if not isinstance(tried, RequestError):
            return tried
        if len(requests) == 1:
            return [tried]
        half = len(requests) // 2
        return [
            outcome
            for part in (requests[:half], requests[half:])
            for outcome in self._run(chat, grammars, part)
        ]

    def _tried(
        self, chat: Chat, grammars: Grammars | None, requests: Sequence[ChatRequest]
    ) -> list[ChatAnswer | RequestError] | RequestError:
        """What a batch came to, or why not all of it can be answered together."""
        from .transformers_load import is_out_of_memory
        from .transformers_run import run

        try:
            return run(chat, grammars, requests, lambda: self._ended is not None)
        except RequestError as error:
            return error
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Outside of the except clause: the error held on to the tensors of the batch.
        self._most = max(1, min(self._most, len(requests) // 2))
        _free_memory()
        return RequestError(TOO_LARGE)

    def _down(self, error: BaseException) -> EngineDownError:
        return EngineDownError(
            f"{self._who} has failed ({type(error).__name__}: {error}); run the same command once more: "
            "nothing that was made is lost, and windows without an answer are pending"
        )


def alike(requests: Sequence[ChatRequest], most: int) -> list[int]:
    """Places of the requests to answer together: the first, and others with pictures (or without) as it has.

    Those that want the same kind of answer come before others: their answers are about as long.
    """
    first = requests[0]
    fit = [index for index, each in enumerate(requests) if bool(each.pictures) == bool(first.pictures)]
    return sorted(fit, key=lambda index: requests[index].schema != first.schema)[:most]


def _free_memory() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()
