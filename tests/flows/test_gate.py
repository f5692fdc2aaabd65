"""The gate of a run's limits never lets more through than was allowed, whoever asks and however often."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicat.flows import limits as module
from evicat.flows.limits import Gate, LimitReachedError, Limits

bound = st.none() | st.integers(1, 30)
all_bounds = st.builds(Limits, max_calls=bound, limit_windows=bound, canary=bound)


def ask(gate: Gate, times: int) -> int:
    """How many of so many calls are admitted."""
    admitted = 0
    for _ in range(times):
        try:
            gate.admit()
            admitted += 1
        except LimitReachedError:
            assert gate.reached
    return admitted


def least(*bounds: int | None, asked: int) -> int:
    return min([asked, *(each for each in bounds if each is not None)])


@given(all_bounds, st.integers(0, 40))
def test_as_many_as_the_least_bound_and_then_none(limits: Limits, asked: int) -> None:
    gate = Gate(limits)
    allowed = least(limits.max_calls, limits.limit_windows, limits.canary, asked=asked)
    assert ask(gate, asked) == allowed
    assert bool(gate.reached) == (allowed < asked)
    if gate.reached:
        option, value = gate.reached.split()
        assert int(value) == allowed == getattr(limits, option.removeprefix("--").replace("-", "_"))
        assert ask(gate, 5) == 0


@given(all_bounds, st.integers(0, 40), st.integers(0, 40))
def test_behind_a_canary_the_other_bounds_count_from_the_start(limits: Limits, first: int, then: int) -> None:
    gate = Gate(limits)
    begun = ask(gate, first)
    others = least(limits.max_calls, limits.limit_windows, asked=first + then)
    assert gate.is_canary_through == (
        limits.canary is not None and begun == limits.canary < first and begun < others
    )
    if gate.is_canary_through:
        gate.lift_canary()
        assert begun + ask(gate, then) == min(others, begun + then)


@settings(max_examples=20)
@given(all_bounds, st.lists(st.integers(1, 20), min_size=2, max_size=4))
def test_threads_together_get_no_more(limits: Limits, asked: list[int]) -> None:
    gate = Gate(limits)
    with ThreadPoolExecutor(len(asked)) as pool:
        admitted = sum(pool.map(lambda times: ask(gate, times), asked))
    assert admitted == least(limits.max_calls, limits.limit_windows, limits.canary, asked=sum(asked))


@pytest.mark.parametrize(("passed_s", "admitted"), [(0, 1), (3599.9, 1), (3600, 0), (1e9, 0)])
def test_after_its_hours_it_admits_nothing(monkeypatch, passed_s: float, admitted: int) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0)
    gate = Gate(Limits(max_hours=1))
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0 + passed_s)
    assert ask(gate, 1) == admitted
    assert gate.reached == ("" if admitted else "--max-hours 1")
