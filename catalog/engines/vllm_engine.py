"""Chat models in this process's care, by vLLM: the fastest way to use a GPU that is here."""

from __future__ import annotations

import importlib.util
from concurrent.futures import Future
from dataclasses import replace
from typing import ClassVar

from evicat.catalog.registry import check_options
from evicat.schemas.errors import EngineDownError, MissingExtraError, RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

from .base import ChatAnswer, ChatRequest, Engine
from .loop_thread import LoopThread
from .supervisor import Running, Supervisor
from .vllm_options import VllmOptions


class VllmEngine(Engine):
    """One long-lived engine that answers all windows of all videos together.

    It is asked on an event loop in a thread of its own; the model runs in processes that vLLM starts. Where
    they die or hang they are started again, and asked again what they had
    (:class:`~.supervisor.Supervisor`).

    Raises:
        UsageError: an option does not fit.
        MissingExtraError: the package ``vllm`` is not installed.
    """

    name: ClassVar[str] = "vllm"

    def __init__(self, model: ModelRef, where: ModelProfile, profile: Profile) -> None:
        super().__init__(model, where, profile)
        self.options = check_options(f'[engines."{model.name}"] of the profile', VllmOptions, where.options)
        if importlib.util.find_spec("vllm") is None:
            raise MissingExtraError("vllm", "vllm")
        self._thread = LoopThread(self._who)
        self._supervisor: Supervisor | None = None

    @property
    def _who(self) -> str:
        return f"the vLLM engine of {self.model.name!r}"

    def check(self, request: ChatRequest) -> None:
        try:
            self.submit(request).result()
        except RequestError as error:
            raise UsageError(f"{self._who} {self._why_refused(request, error)}") from None

    def _why_refused(self, request: ChatRequest, error: RequestError) -> str:
        if request.schema and self._takes(replace(request, schema=None)):
            return (
                'does not take the JSON schema of the answers; write structured = "none" under '
                f'[engines."{self.model.name}".options] of the profile: then the prompt alone asks for the '
                f"form, and answers are checked here. It said: {error}"
            )
        return f"cannot answer what the recipe asks it: {error}"

    def _takes(self, request: ChatRequest) -> bool:
        try:
            self.submit(request).result()
        except RequestError:
            return False
        return True

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        try:
            return self._thread.run(self._answer(request))
        except RuntimeError:
            closed: Future[ChatAnswer] = Future()
            closed.set_exception(EngineDownError(f"{self._who}: the engine is closed"))
            return closed

    async def _answer(self, request: ChatRequest) -> ChatAnswer:
        if self._supervisor is None:
            self._supervisor = Supervisor(
                self._load,
                who=self._who,
                slots=self.slots,
                silence_seconds=self.where.timeout_seconds,
                restarts=self.options.restarts,
            )
        return await self._supervisor.answer(request)

    async def _load(self) -> Running:
        from .vllm_load import load

        return await load(self.model, self.where, self.profile, self.options)

    def close(self) -> None:
        self._thread.close(self._stop)

    async def _stop(self) -> None:
        if self._supervisor:
            await self._supervisor.close()
