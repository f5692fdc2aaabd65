"""The rule by which an engine sends more or less at once."""

from __future__ import annotations

import asyncio
import time

import pytest

from evicat.catalog.engines.adaptive import AdaptiveLimit


def answer(limit: AdaptiveLimit, times: int) -> None:
    for _ in range(times):
        limit.answered()


def test_overload_halves_and_never_goes_below_one() -> None:
    limit = AdaptiveLimit(10)
    seen = []
    for _ in range(5):
        limit.overloaded(time.monotonic())
        seen.append(limit.limit)
    assert seen == [5, 2, 1, 1, 1]


def test_signs_of_requests_sent_before_the_last_halving_tell_nothing_new() -> None:
    limit = AdaptiveLimit(64)
    sent_s = time.monotonic()
    for _ in range(64):
        limit.overloaded(sent_s)
    assert limit.limit == 32


def test_as_many_answers_as_the_limit_is_high_raise_it_by_one_up_to_the_ceiling() -> None:
    limit = AdaptiveLimit(5)
    limit.overloaded(time.monotonic())
    answer(limit, 1)
    assert limit.limit == 2
    answer(limit, 1)
    assert limit.limit == 3
    answer(limit, 3)
    assert limit.limit == 4
    answer(limit, 100)
    assert limit.limit == 5


def test_answers_before_an_overload_do_not_count_for_the_next_step() -> None:
    limit = AdaptiveLimit(8)
    limit.overloaded(time.monotonic())
    answer(limit, 3)
    limit.overloaded(time.monotonic())
    answer(limit, 1)
    assert limit.limit == 2


@pytest.mark.parametrize("ceiling", [1, 3, 16])
def test_turns_are_never_more_than_the_limit_and_all_come(ceiling: int) -> None:
    async def run() -> tuple[int, int]:
        limit = AdaptiveLimit(ceiling)
        running = most = through = 0

        async def one() -> None:
            nonlocal running, most, through
            async with limit.turn():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1
            through += 1

        await asyncio.gather(*(one() for _ in range(50)))
        return most, through

    assert asyncio.run(run()) == (ceiling, 50)


def test_one_that_is_cancelled_while_it_waits_or_runs_frees_its_turn() -> None:
    async def run() -> str:
        limit = AdaptiveLimit(1)
        begun = asyncio.Event()

        async def hold() -> None:
            async with limit.turn():
                begun.set()
                await asyncio.Event().wait()

        async def last() -> str:
            async with limit.turn():
                return "through"

        holding, waiting = asyncio.create_task(hold()), asyncio.create_task(hold())
        following = asyncio.create_task(last())
        await begun.wait()
        assert limit.longest_s > 0
        waiting.cancel()
        holding.cancel()
        return await asyncio.wait_for(following, 5)

    assert asyncio.run(run()) == "through"
