"""An engine that dies, hangs or does not load. Its clock jumps ahead to what is waited for next."""

from __future__ import annotations

import asyncio
import itertools
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from evicat.catalog.engines.base import ChatAnswer, ChatRequest
from evicat.catalog.engines.supervisor import EngineLostError, Running, Supervisor
from evicat.schemas.errors import EngineDownError, RequestError, UsageError

T = TypeVar("T")
SILENCE_S = 300.0


class JumpingLoop(asyncio.SelectorEventLoop):
    """Where nothing is to be done until a moment, it is that moment at once."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.now_s = 0.0
        self._real_select = self._selector.select
        self._selector.select = self._jump

    def time(self) -> float:
        return self.now_s

    def _jump(self, timeout: float | None = None) -> Any:
        events = self._real_select(0)
        if not events and timeout is None:
            raise RuntimeError("everything waits for ever")
        if not events and timeout:
            self.now_s += timeout
        return events


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


def question(text: str) -> ChatRequest:
    return ChatRequest("You watch.", (text,), max_tokens=10)


Behaviour = Callable[["Scripted", str, Callable[[], None]], Awaitable[None]]
"""What an engine does with a question before it answers."""


class Scripted(Running):
    """Answers with the question in capitals, after ``behave`` has had its way."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.dead = asyncio.Event()
        self.is_stopped = False
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.at_once: list[int] = []
        self._in_flight = 0

    async def answer(self, request: ChatRequest, heard: Callable[[], None]) -> ChatAnswer:
        text = request.texts[-1]
        self.asked.append(text)
        self._in_flight += 1
        self.at_once.append(self._in_flight)
        try:
            await self._alive(self.behave(self, text, heard))
        except asyncio.CancelledError:
            self.cancelled.append(text)
            raise
        finally:
            self._in_flight -= 1
        return ChatAnswer(text.upper(), "stop", 1, 1, "eye")

    async def _alive(self, work: Awaitable[None]) -> None:
        """Do ``work`` unless the process dies before."""
        tasks = asyncio.ensure_future(work), asyncio.ensure_future(self.dead.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self.dead.is_set():
                raise EngineLostError("its process ended")
            await tasks[0]
        finally:
            for each in tasks:
                each.cancel()

    async def stop(self) -> None:
        await asyncio.sleep(1)
        self.is_stopped = True


class World:
    """Loads engines one after the other, each with the next of ``behaviours``; the last one stays."""

    def __init__(self, *behaviours: Behaviour | Exception, slots: int = 4, restarts: int = 3) -> None:
        self.engines: list[Scripted] = []
        self.loads = 0
        self._behaviours = iter([*behaviours[:-1], *itertools.repeat(behaviours[-1], 100)])
        self.supervisor = Supervisor(
            self._load, who="the engine of 'eye'", slots=slots, silence_seconds=SILENCE_S, restarts=restarts
        )

    async def _load(self) -> Running:
        assert all(each.is_stopped for each in self.engines), "the engine before it still holds its memory"
        self.loads += 1
        await asyncio.sleep(60)
        behaviour = next(self._behaviours)
        if isinstance(behaviour, Exception):
            raise behaviour
        self.engines.append(Scripted(behaviour))
        return self.engines[-1]

    async def ask(self, *texts: str) -> list[Any]:
        """Answers in the order of the questions, or what was raised."""
        asked = [self.supervisor.answer(question(each)) for each in texts]
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [each.text if isinstance(each, ChatAnswer) else each for each in found]


async def works(engine: Scripted, text: str, heard: Callable[[], None]) -> None:
    await asyncio.sleep(2)


async def hangs(engine: Scripted, text: str, heard: Callable[[], None]) -> None:
    await asyncio.sleep(1_000_000)


async def dies(engine: Scripted, text: str, heard: Callable[[], None]) -> None:
    await asyncio.sleep(1)
    engine.dead.set()
    await hangs(engine, text, heard)


def dies_by(*poison: str) -> Behaviour:
    async def behave(engine: Scripted, text: str, heard: Callable[[], None]) -> None:
        await (dies if text in poison else works)(engine, text, heard)

    return behave


LETTERS = list("abcdefghij")
CAPITALS = [each.upper() for each in LETTERS]


def test_an_engine_is_loaded_once_and_asked_as_much_at_once_as_it_has_slots() -> None:
    async def story() -> None:
        world = World(works, slots=3)
        assert await world.ask(*LETTERS) == CAPITALS
        assert await world.ask("k") == ["K"]
        assert world.loads == 1
        assert max(world.engines[0].at_once) == 3
        assert world.engines[0].asked == [*LETTERS, "k"]

    run(story())


@pytest.mark.parametrize("fault", [dies, hangs])
def test_a_lost_engine_is_loaded_again_and_what_it_had_is_asked_again(fault: Behaviour) -> None:
    async def story() -> None:
        world = World(fault, works)
        assert await world.ask(*LETTERS) == CAPITALS
        lost, found = world.engines
        assert lost.asked == LETTERS[:4]
        assert found.asked[:4] != []
        assert sorted(found.asked) == LETTERS

    run(story())


def test_a_hung_engine_is_found_out_when_nothing_was_heard_for_as_long_as_the_profile_says() -> None:
    async def story() -> float:
        world = World(hangs, works)
        await world.ask("a")
        return asyncio.get_running_loop().time()

    assert run(story()) == pytest.approx(60 + SILENCE_S + 1 + 60 + 2)


def test_an_engine_that_shows_signs_of_life_may_take_longer_than_that() -> None:
    async def slow(engine: Scripted, text: str, heard: Callable[[], None]) -> None:
        for _ in range(10):
            await asyncio.sleep(SILENCE_S * 0.9)
            if text == "a":
                heard()

    async def story() -> None:
        world = World(slow)
        assert await world.ask("a", "b") == ["A", "B"]
        assert world.loads == 1

    run(story())


def test_an_engine_that_has_nothing_to_do_is_not_taken_for_a_hung_one() -> None:
    async def story() -> None:
        world = World(works)
        await world.ask("a")
        await asyncio.sleep(10 * SILENCE_S)
        assert await world.ask("b") == ["B"]
        assert world.loads == 1

    run(story())


def test_a_request_that_no_engine_survives_is_told_apart_from_those_beside_it() -> None:
    async def story() -> None:
        world = World(dies_by("poison"))
        *answers, error = await world.ask(*LETTERS, "poison")
        assert answers == CAPITALS
        assert isinstance(error, RequestError)
        assert "does not survive this request: it was lost 3 times with it" in str(error)
        assert error.attempts == 3
        assert world.loads == 3
        assert await world.ask("k") == ["K"]

    run(story())


def test_two_such_requests_are_both_found() -> None:
    async def story() -> None:
        world = World(dies_by("bad", "worse"))
        await world.ask("z")
        found = await world.ask("bad", "a", "worse", "b", "c", "d")
        assert [type(each) for each in found] == [RequestError, str, RequestError, str, str, str]
        assert await world.ask("e") == ["E"]

    run(story())


def test_an_engine_that_is_lost_again_and_again_is_given_up_for_all_that_wait() -> None:
    async def story() -> None:
        world = World(dies, restarts=1)
        found = await world.ask(*LETTERS)
        assert {type(each) for each in found} == {EngineDownError}
        assert "was lost 2 times without an answer between (its process ended)" in str(found[0])
        assert "windows without an answer are pending" in str(found[0])
        assert world.loads == 2
        (later,) = await world.ask("later")
        assert isinstance(later, EngineDownError)
        assert world.loads == 2

    run(story())


def test_an_engine_that_never_answered_is_to_blame_and_not_its_only_request() -> None:
    async def story() -> None:
        world = World(dies)
        (error,) = await world.ask("a")
        assert isinstance(error, EngineDownError)
        assert world.loads == 4

    run(story())


def test_losses_with_answers_between_them_do_not_add_up() -> None:
    async def story() -> None:
        world = World(dies_by("b"), dies_by("d"), dies_by("f"), works, slots=1, restarts=1)
        assert await world.ask(*LETTERS) == CAPITALS
        assert world.loads == 4

    run(story())


def test_an_engine_that_cannot_be_loaded_at_the_start_says_why_to_all_and_is_not_tried_again() -> None:
    async def story() -> None:
        world = World(UsageError("out of memory; lower max_model_len"))
        found = await world.ask(*LETTERS, "later")
        assert {str(each) for each in found} == {"out of memory; lower max_model_len"}
        assert {type(each) for each in found} == {UsageError}
        assert world.loads == 1

    run(story())


def test_one_that_cannot_be_loaded_again_at_once_is_tried_until_the_restarts_are_used_up() -> None:
    async def story() -> None:
        busy = UsageError("the memory is not free yet")
        world = World(dies, busy, works)
        assert await world.ask("a") == ["A"]
        assert world.loads == 3

        world = World(dies, busy)
        (error,) = await world.ask("a")
        assert isinstance(error, EngineDownError)
        assert "could not be loaded again: the memory is not free yet" in str(error)
        assert world.loads == 4

    run(story())


def test_what_an_engine_refuses_is_not_asked_again() -> None:
    async def refuses(engine: Scripted, text: str, heard: Callable[[], None]) -> None:
        raise RequestError("too long")

    async def story() -> None:
        world = World(refuses)
        (error,) = await world.ask("a")
        assert str(error) == "too long"
        assert world.engines[0].asked == ["a"]

    run(story())


def test_a_lost_engine_that_does_not_end_well_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World(dies, works)

        async def breaks() -> None:
            world.engines[0].is_stopped = True
            raise OSError("no such process")

        asked = asyncio.ensure_future(world.ask("a"))
        await asyncio.sleep(60.5)
        world.engines[0].stop = breaks
        assert await asked == ["A"]

    run(story())
    assert "the lost engine did not end well: OSError('no such process')" in caplog.text


def test_cancelling_stops_a_request_and_gives_its_place_to_the_next() -> None:
    async def story() -> None:
        world = World(works, slots=1)
        first, second, third = (
            asyncio.ensure_future(world.supervisor.answer(question(each))) for each in "abc"
        )
        await asyncio.sleep(61)
        second.cancel()
        first.cancel()
        assert (await third).text == "C"
        assert world.engines[0].asked == ["a", "c"]
        assert world.engines[0].cancelled == ["a"]

    run(story())


def test_close_cancels_what_is_asked_and_stops_the_engine() -> None:
    async def story() -> None:
        world = World(works, slots=2)
        asked = [asyncio.ensure_future(world.supervisor.answer(question(each))) for each in LETTERS]
        await asyncio.sleep(61)
        await world.supervisor.close()
        assert all(each.cancelled() for each in asked)
        assert world.engines[0].is_stopped

    run(story())
