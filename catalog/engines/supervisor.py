"""Keeps one engine of this process alive: starts it again where it dies or hangs, and asks again what it had.

Nothing here knows what the engine is: :class:`Running` is all that is needed of one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

from evicat.schemas.errors import EngineDownError, EvicatError, RequestError

from .base import ChatAnswer, ChatRequest

log = logging.getLogger(__name__)

SUSPECT: Final = 2
"""A request that was in flight when so many engines were lost is asked alone from then on."""
BLAMED: Final = 3
"""A request with which so many engines were lost, the last one when it was asked alone, is what is wrong."""


class EngineLostError(Exception):
    """The engine is dead, so that none of its requests will be answered. Never leaves this package."""


class Running(Protocol):
    """An engine that is loaded."""

    async def answer(self, request: ChatRequest, heard: Callable[[], None]) -> ChatAnswer:
        """Answer; call ``heard`` at every sign of life. Cancelling it stops the request.

        Raises:
            EngineLostError: the engine is dead.
            EvicatError: the request is refused, or nothing more can be asked.
        """

    async def stop(self) -> None:
        """End it, also where it hangs, and free its memory."""


class Supervisor:
    """Answers requests by an engine that ``load`` makes when the first of them comes.

    - At most ``slots`` are in flight; others wait here, so that a lost engine takes little with it.
    - An engine is lost when it says so, or when none of its requests gave a sign of life for
      ``silence_seconds``. It is stopped and loaded again, and its requests are asked again.
    - A request that an engine does not survive must not take all others with it: one that was in flight at
      two losses is asked alone, and at the third it gets ``RequestError``. An engine that has never answered
      anything is to blame itself.
    - After more than ``restarts`` losses without an answer between them, everything gets ``EngineDownError``.
      A loss that is blamed on a request does not count, for as many requests.

    What ``load`` raises when the engine has never run goes to all who ask, as it is: there is something to
    change, and loading again would not help. Later it counts as a loss: the memory of the one before it may
    not be free yet. One event loop uses a supervisor.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[Running]],
        *,
        who: str,
        slots: int,
        silence_seconds: float,
        restarts: int,
    ) -> None:
        self.who, self.slots, self.restarts = who, slots, restarts
        self.silence_seconds = silence_seconds
        self._load = load
        self._life: _Life | None = None
        self._loading = asyncio.Lock()
        self._stopping: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._turns = _Turns(slots)
        self._has_run = self._has_answered = False
        self._losses = self._blamed = 0
        """Without an answer between them."""
        self._ended: EvicatError | None = None

    async def answer(self, request: ChatRequest) -> ChatAnswer:
        """Ask until there is an answer.

        Raises:
            RequestError: it is refused, or engines do not survive it.
            EngineDownError, UsageError: nothing can be asked any more.
        """
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        call = _Call(request)
        try:
            await self._turns.begin(call)
            while (answer := await self._try(call)) is None:
                if call.losses >= SUSPECT:
                    self._turns.leave(call)
                    await self._turns.begin(call)
            return answer
        except asyncio.CancelledError:
            if self._ended:
                raise self._ended from None
            raise
        finally:
            self._turns.end(call)
            self._calls.discard(task)

    async def _try(self, call: _Call) -> ChatAnswer | None:
        """Ask once. None: the engine was lost, and not by this request alone."""
        life = await self._alive()
        answer = await life.answer(call)
        if answer is not None:
            self._losses = self._blamed = 0
            self._has_answered = True
            return answer
        if self._ended:
            raise self._ended
        if call.losses >= BLAMED and call.is_alone and self._has_answered:
            self._blamed += 1
            if self._blamed <= self.restarts:  # else it may be the engine all the same
                self._losses -= 1
            raise RequestError(
                f"{self.who} does not survive this request: it was lost {call.losses} times with it, the "
                f"last time when it was asked nothing else ({life.why_lost})",
                attempts=call.losses,
            )
        return None

    async def _alive(self) -> _Life:
        """The engine; loaded where there is none."""
        async with self._loading:
            while self._life is None:
                if self._ended:
                    raise self._ended
                if self._stopping:
                    await asyncio.wait(self._stopping)
                await self._start()
            return self._life

    async def _start(self) -> None:
        try:
            running = await self._load()
        except EvicatError as error:
            if not self._has_run:
                self._end(error)
                raise
            self._count_loss(f"it could not be loaded again: {error}")
            return
        self._has_run = True
        self._life = _Life(running, self.silence_seconds, self._lose)

    def _lose(self, life: _Life) -> None:
        """Let go of an engine that is lost; called once for each."""
        self._life = None
        self._turns.suspect(call for call in life.calls if call.losses >= SUSPECT)
        stopping = asyncio.get_running_loop().create_task(life.running.stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopped)
        self._count_loss(life.why_lost)

    def _stopped(self, stopping: asyncio.Task[None]) -> None:
        self._stopping.discard(stopping)
        if not stopping.cancelled() and (error := stopping.exception()):
            log.warning("%s: the lost engine did not end well: %r", self.who, error)

    def _count_loss(self, why: str) -> None:
        self._losses += 1
        if self._losses <= self.restarts:
            log.warning("%s is lost (%s); it is loaded again, and asked again what it had", self.who, why)
            return
        self._end(
            EngineDownError(
                f"{self.who} was lost {self._losses} times without an answer between ({why}); what it said "
                "itself stands in the log above. Mend it, or run the model on a server (engine = "
                '"openai"), and run the same command once more: nothing that was made is lost, and windows '
                "without an answer are pending"
            )
        )

    def _end(self, error: EvicatError) -> None:
        """Nothing can be asked any more: all that wait get ``error``."""
        self._ended = self._ended or error
        for call in self._calls - {asyncio.current_task()}:
            call.cancel()

    async def close(self) -> None:
        """Cancel what is still asked, and stop the engine."""
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, *self._stopping, return_exceptions=True)
        if self._life:
            life, self._life = self._life, None
            await life.close()


class _Call:
    """One request, through all engines that it is asked of."""

    def __init__(self, request: ChatRequest) -> None:
        self.request = request
        self.losses = 0
        """How many engines were lost while they had it."""
        self.is_alone = False
        """Whether nothing else is in flight with it."""


class _Turns:
    """Who may ask now: so many at once as there are slots, but a suspect alone, and before all others."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._in_flight: set[_Call] = set()
        self._suspects: list[_Call] = []
        self._waiting: dict[_Call, asyncio.Future[None]] = {}
        """In the order in which they came."""

    async def begin(self, call: _Call) -> None:
        """Wait for the turn of ``call``; it lasts until ``leave`` or ``end``."""
        admitted = self._waiting[call] = asyncio.get_running_loop().create_future()
        self._admit()
        await admitted

    def leave(self, call: _Call) -> None:
        """It lets others ask."""
        self._in_flight.discard(call)
        self._admit()

    def suspect(self, calls: Iterable[_Call]) -> None:
        """The engine may have been lost by one of them: each is asked alone from now on."""
        self._suspects += [call for call in calls if call not in self._suspects]

    def end(self, call: _Call) -> None:
        """It has ended, one way or the other."""
        self._waiting.pop(call, None)
        if call in self._suspects:
            self._suspects.remove(call)
        self.leave(call)

    def _admit(self) -> None:
        while (call := self._next()) is not None:
            admitted = self._waiting.pop(call)
            if admitted.done():  # it is being cancelled
                continue
            self._in_flight.add(call)
            call.is_alone = bool(self._suspects)
            admitted.set_result(None)

    def _next(self) -> _Call | None:
        if self._suspects:
            first = self._suspects[0]
            return first if first in self._waiting and not self._in_flight else None
        return next(iter(self._waiting), None) if len(self._in_flight) < self._slots else None


class _Life:
    """One loaded engine, from its first request until it is lost."""

    def __init__(self, running: Running, silence_seconds: float, lost: Callable[[_Life], None]) -> None:
        self.running = running
        self.why_lost = ""
        self._silence_seconds = silence_seconds
        self._tell_lost = lost
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self.calls: dict[_Call, None] = {}
        self._heard_s = 0.0
        self._watch: asyncio.TimerHandle | None = None

    async def answer(self, call: _Call) -> ChatAnswer | None:
        """Its answer; None: the engine was lost."""
        self._begin(call)
        asked = self._loop.create_task(self.running.answer(call.request, self._hear))
        asked.add_done_callback(_take)
        first: set[asyncio.Future[Any]] = {asked, self._lost}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                return None
            self._hear()
            return asked.result()
        except EngineLostError as error:
            self._lose(str(error) or "its process ended")
            return None
        finally:
            self.calls.pop(call)
            asked.cancel()  # nobody waits for its end: a lost engine may never let go of it

    def _begin(self, call: _Call) -> None:
        if not self.calls:
            self._heard_s = self._loop.time()
        self.calls[call] = None
        if self._watch is None:
            self._watch = self._loop.call_later(self._silence_seconds, self._look)

    def _hear(self) -> None:
        self._heard_s = self._loop.time()

    def _look(self) -> None:
        """Whether there was a sign of life in time, when there might have been none."""
        self._watch = None
        if not self.calls:
            return
        left_s = self._heard_s + self._silence_seconds - self._loop.time()
        if left_s > 0:
            self._watch = self._loop.call_later(left_s, self._look)
            return
        self._lose(f"no sign of life of {len(self.calls)} requests for {self._silence_seconds:g} s")

    def _lose(self, why: str) -> None:
        if self._lost.done():
            return
        self.why_lost = why
        self._lost.set_result(None)
        self._stop_watching()
        for call in self.calls:
            call.losses += 1
        self._tell_lost(self)

    def _stop_watching(self) -> None:
        if self._watch:
            self._watch.cancel()
            self._watch = None

    async def close(self) -> None:
        self._stop_watching()
        await self.running.stop()


def _take(asked: asyncio.Task[ChatAnswer]) -> None:
    """Take the outcome of a request, so that it is not reported as never taken where nobody waits for it."""
    if not asked.cancelled():
        asked.exception()
