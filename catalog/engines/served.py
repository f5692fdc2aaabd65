"""Chat models behind a server that speaks OpenAI's protocol: vLLM, llama.cpp, Ollama, a hosted endpoint."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from evicat.catalog.registry import check_options
from evicat.catalog.served import api_key, hide_key
from evicat.schemas.errors import (
    EngineDownError,
    EvicatError,
    MissingExtraError,
    RequestError,
    UsageError,
)
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

from .adaptive import AdaptiveLimit
from .address import check_endpoint, proxy_note
from .base import ChatAnswer, ChatRequest, Engine
from .health import Call, Health
from .identity import Identity
from .loop_thread import LoopThread
from .protocol import TOO_LARGE, ServedOptions, answer_of, body_of, refusal_of
from .trial import PASSED_OVER, passes_over_images, why_refused, without_images

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, OpenAIError
    from openai.types import Model as OpenAIModel

RETRIES = 1000
"""More than patience allows: how long a request is tried again is a matter of time, not of number."""
LOOK_UP_SECONDS = 60.0
"""The server is asked for its models again when this old; a server that was replaced unseen is found so."""
KEPT_SECONDS = 0.5
"""A request that waits for so long has not been turned away: the server works on it, or hangs."""
REFUSED = frozenset({400, TOO_LARGE, 422})


class ServedEngine(Engine):
    """Asks the server at ``where.endpoint``; the key is that of ``OPENAI_API_KEY`` and goes only there.

    Requests run on one event loop, in a thread of the engine's own. At most :attr:`limit` are sent at once,
    which follows the server (:class:`~.adaptive.AdaptiveLimit`). What fails in passing is tried again by
    ``openai`` with growing pauses; a server that has answered nothing for ``where.patience_seconds`` is gone
    (:class:`~.health.Health`). Then, and where another model answers, all that wait get the error at once.

    Raises:
        UsageError: the profile names no usable endpoint, an option does not fit, or the key cannot be sent.
        MissingExtraError: the package ``openai`` is not installed.
    """

    name = "openai"

    def __init__(self, model: ModelRef, where: ModelProfile, profile: Profile) -> None:
        super().__init__(model, where, profile)
        if importlib.util.find_spec("openai") is None:
            raise MissingExtraError("openai", "openai")
        section = f'[engines."{model.name}"]'
        check_endpoint(f"{section} of the profile", where.endpoint)
        api_key()  # one that cannot be sent is told now
        self.options = check_options(f"{section} of the profile", ServedOptions, where.options)
        self.named = where.alias or model.name
        """What the server calls the model."""
        self._adaptive = AdaptiveLimit(where.concurrency)
        self._health = Health(
            self._who, self._adaptive, where.patience_seconds, where.timeout_seconds, self._is_still_there
        )
        self._ended: EvicatError | None = None
        self._calls: set[asyncio.Task[ChatAnswer]] = set()
        self._identity = Identity(model, self.named, where.endpoint)
        self._thread = LoopThread(self._who)
        self._starting = threading.Lock()

    @property
    def limit(self) -> int:
        """How many requests are sent at once now."""
        return self._adaptive.limit

    @property
    def _who(self) -> str:
        return f"the server of {self.model.name!r} at {self.where.endpoint}"

    @property
    def _ends_in_v1(self) -> bool:
        return self.where.endpoint.rstrip("/").endswith("/v1")

    def check(self, request: ChatRequest) -> None:
        try:
            answer = self._try(request)
        except RequestError as error:
            sent = request if self.options.structured != "none" else replace(request, schema=None)
            raise UsageError(f"{self._who} {why_refused(sent, self._takes, str(error))}") from None
        if request.pictures and self.options.counts_images:
            with suppress(RequestError):  # it may want an image: then it sees them
                if passes_over_images(answer, self._try(without_images(request))):
                    raise UsageError(f"{self._who} {PASSED_OVER}")

    def _try(self, request: ChatRequest) -> ChatAnswer:
        return self._begin(request, Call(is_trial=True)).result()

    def _takes(self, request: ChatRequest) -> bool:
        try:
            self._try(request)
        except RequestError:
            return False
        return True

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        return self._begin(request, Call())

    def _begin(self, request: ChatRequest, call: Call) -> Future[ChatAnswer]:
        with self._starting:
            if self._thread.is_closed:
                raise EngineDownError(f"{self._who}: the engine is closed")
            if not self._thread.has_begun:
                self._client = self._new_client()
            return self._thread.run(self._run(request, call))

    def _new_client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        from .wire import WatchedClient, timeouts

        try:
            self._http = WatchedClient(self._health, self.where.timeout_seconds, self._give_up)
        except (ImportError, OSError, ValueError) as error:
            raise UsageError(
                f"{self._who} cannot be asked as the environment says (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, "
                f"SSL_CERT_FILE): {error}"
            ) from None
        return AsyncOpenAI(
            base_url=self.where.endpoint,
            api_key=api_key(),
            http_client=self._http,
            max_retries=RETRIES,
            timeout=timeouts(self.where.timeout_seconds),
        )

    async def _run(self, request: ChatRequest, call: Call) -> ChatAnswer:
        """Ask, as a task that ends with the engine."""
        if self._ended:
            raise self._ended
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            await self._identify()
            answer = await self._ask(request, call)
            self._check_named(answer.model)
            await self._identify()
        except asyncio.CancelledError:
            if self._ended:
                raise self._ended from None
            raise
        finally:
            self._calls.discard(task)
        return answer

    async def _ask(self, request: ChatRequest, call: Call) -> ChatAnswer:
        from openai import OpenAIError
        from openai.types.chat import ChatCompletion

        from .wire import CALL

        body = body_of(request, self.named, self.options)
        CALL.set(call)
        try:
            completion = await self._client.chat.completions.create(**body)
        except OpenAIError as error:
            await self._refuse(error)
        except ValueError as error:  # the body claims to be JSON, and is not
            raise RequestError(f"the answer of {self._who} cannot be read: {hide_key(str(error))}") from None
        if not isinstance(completion, ChatCompletion):
            why = "" if self._ends_in_v1 else "; is /v1 missing at the end of the endpoint?"
            self._end(UsageError(f"{self._who} answers with something else than chat{why}"))
        return answer_of(completion, self.named)

    async def _refuse(self, error: OpenAIError) -> NoReturn:
        """Raise what an error of the client means."""
        from openai import APIStatusError

        if not isinstance(error, APIStatusError):
            self._end(self._down(hide_key(str(error))))
        status, said = error.status_code, _said(error)
        if status in REFUSED or status == 500:
            raise refusal_of(self._who, status, said) from None
        if status in (401, 403):
            self._end(UsageError(f"{self._who} refuses the key ({status}): {said}; set OPENAI_API_KEY"))
        if status == 404:
            served = await self._served()
            if served:
                more = f"; it serves {', '.join(served)}"
            else:
                more = "" if self._ends_in_v1 else "; is /v1 missing at the end of the endpoint?"
            self._end(UsageError(f"{self._who} does not know {self.named!r} (404): {said}{more}"))
        if 400 <= status < 500 and status not in (408, 409, 429):
            self._end(UsageError(f"{self._who} refuses ({status}): {said}"))
        self._end(self._down(f"{status}: {said}"))

    def _check_named(self, named: str) -> None:
        try:
            self._identity.check_answer(named)
        except UsageError as error:
            self._end(error)

    async def _identify(self) -> None:
        """Have the server say what it serves, where that may have changed since it was last asked."""
        async with self._identity.asking:
            age = time.monotonic() - self._identity.looked_up_s
            if not self._health.is_doubtful and age < LOOK_UP_SECONDS:
                return
            self._health.is_doubtful = False
            served = await self._served()
            try:
                self._identity.check_served(served)
            except UsageError as error:
                self._end(error)

    async def _served(self) -> dict[str, str]:
        """Models by the name that the server gives them, and where it says each is from; empty: not told."""
        from openai import APIStatusError, OpenAIError

        from .wire import CALL

        CALL.set(None)
        try:
            listed = await self._client.models.list()
            return roots(listed.data or [])
        except APIStatusError as error:
            if error.status_code in (401, 403):
                await self._refuse(error)
            return {}
        except (AttributeError, TypeError, ValueError):  # no list of models: the page of a proxy, say
            return {}
        except OpenAIError as error:
            await self._refuse(error)

    async def _is_still_there(self, is_final: bool) -> bool:
        """Patience is over. A server that keeps a request and tells its models may just be slow."""
        url = f"{self.where.endpoint.rstrip('/')}/models"
        headers = {"Authorization": f"Bearer {api_key()}"}
        keeps_one = self._adaptive.longest_s >= KEPT_SECONDS
        if keeps_one and not is_final and await self._http.is_there(url, headers):
            return True
        if self._health.silent_s:
            self._give_up()
        return False

    def _give_up(self) -> None:
        """End everything that waits: the server is gone."""
        self._set_ended(self._down(self._health.last_failure))

    def _down(self, why: str) -> EngineDownError:
        seconds = self._health.silent_s
        return EngineDownError(
            f"{self._who} has not answered for {seconds:.0f} s ({why}){proxy_note(self.where.endpoint)}; "
            "start it again, or name another "
            f'endpoint under [engines."{self.model.name}"] of the profile, and run the same command once '
            "more: nothing that was made is lost, and windows without an answer are pending"
        )

    def _end(self, error: EvicatError) -> NoReturn:
        """Nothing more can be asked: raise ``error``, here and for all that wait."""
        self._set_ended(error)
        raise error from None

    def _set_ended(self, error: EvicatError) -> None:
        if self._ended is None:
            self._ended = error
        current = asyncio.current_task()
        for task in self._calls - {current}:
            task.cancel()

    def close(self) -> None:
        self._thread.close(self._shut_down)

    async def _shut_down(self) -> None:
        self._health.close()
        calls = list(self._calls)
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._client.close()


def roots(listed: Iterable[OpenAIModel]) -> dict[str, str]:
    """Where the models of a list say that they are from, by name; what is no text is not told."""
    told = {model.id: (model.model_extra or {}).get("root") for model in listed}
    return {
        name: root if isinstance(root, str) else "" for name, root in told.items() if isinstance(name, str)
    }


def _said(error: APIStatusError) -> str:
    """The server's own words, shortened, and without the key."""
    body = error.body
    words = body.get("message") if isinstance(body, dict) else None
    return hide_key(str(words or error.response.text or error.message))[:500]
