"""Which frame an instant takes, by the written rule and for any decoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.media.frames import Candidate, Selection, Wanted, frame_times
from evicat.schemas.span import US, Span


def test_times_are_middles_of_equal_parts() -> None:
    assert frame_times(Span(4 * US, 8 * US), 4) == (4_500_000, 5_500_000, 6_500_000, 7_500_000)
    assert frame_times(Span(0, 3), 1) == (1,)


@given(st.integers(0, 10**11), st.integers(1, 10**9), st.integers(1, 64))
def test_times_lie_in_their_span_in_order(start: int, length: int, count: int) -> None:
    span = Span(start, start + length)
    times = frame_times(span, count)
    assert all(time in span for time in times)
    assert list(times) == sorted(set(times))
    assert len(times) == count or length < count


def test_an_instant_outside_its_window_is_refused() -> None:
    with pytest.raises(ValueError, match="instants must lie in"):
        Wanted(Span(0, US), (US,), 64)


@st.composite
def wanted_windows(draw) -> list[Wanted]:
    spans = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 40)), min_size=1, max_size=8))
    return [
        Wanted(
            Span(start, start + length),
            tuple(draw(st.lists(st.integers(start, start + length - 1), max_size=6).map(sorted))),
            64,
        )
        for start, length in spans
    ]


def candidate(time: int) -> Candidate:
    return Candidate(time, time, lambda width: np.zeros((1, 1, 3), np.uint8))


@given(st.lists(st.integers(0, 120), unique=True).map(sorted), wanted_windows())
def test_selection_takes_what_is_on_display(kit, times: list[int], wanted: list[Wanted]) -> None:
    selection = Selection(wanted)
    complete = selection.take_complete()
    for time in times:
        selection.show(candidate(time))
        complete += selection.take_complete()
    selection.end()
    complete += selection.take_complete()
    assert sorted(index for index, _ in complete) == list(range(len(wanted)))
    assert selection.is_settled
    for index, frames in complete:
        assert [frame.time_us for frame in frames] == kit.on_display(times, wanted[index])


@given(st.lists(st.integers(0, 120), unique=True, min_size=1).map(sorted), st.data(), wanted_windows())
def test_selection_is_the_same_when_groups_are_passed_by(kit, times, data, wanted: list[Wanted]) -> None:
    keys = data.draw(st.sets(st.sampled_from(times)))
    starts = sorted({times[0], *keys})
    selection = Selection(wanted)
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        selection.pass_by(start)
        if selection.waits or selection.wants(start, end):
            for time in times:
                if start <= time and (end is None or time < end):
                    selection.show(candidate(time))
    selection.end()
    for index, frames in selection.take_complete():
        assert [frame.time_us for frame in frames] == kit.on_display(times, wanted[index])


def test_frames_that_go_back_in_time_are_not_shown() -> None:
    wanted = Wanted(Span(0, 100), (10, 50, 90), 64)
    selection = Selection([wanted])
    for time in (-5, 0, 40, 20, 40, 80, 5):
        selection.show(candidate(time))
    selection.end()
    ((_, frames),) = selection.take_complete()
    assert [frame.time_us for frame in frames] == [0, 40, 80]
