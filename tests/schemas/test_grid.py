import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.schemas.grid import CHUNK_US, chunks, count_windows, windows
from evicat.schemas.span import US, Span

LENGTHS = st.integers(min_value=US // 2, max_value=120 * US)
DURATIONS = st.integers(min_value=0, max_value=4 * 3600 * US)


@given(DURATIONS, LENGTHS)
def test_windows_tile_the_timeline(duration: int, length: int) -> None:
    grid = windows(duration, length)
    assert sum(w.duration_us for w in grid) == duration
    assert [w.start_us for w in grid[1:]] == [w.end_us for w in grid[:-1]]
    assert all(w.duration_us == length for w in grid[:-1])
    if grid:
        assert (grid[0].start_us, grid[-1].end_us) == (0, duration)
    assert count_windows(duration, length) == len(grid)


@given(DURATIONS, LENGTHS)
def test_a_remainder_joins_only_below_one_second_and_a_tenth(duration: int, length: int) -> None:
    if duration > length:
        remainder = duration % length
        joins = 0 < remainder < US and remainder * 10 < length
        assert len(windows(duration, length)) == -(-duration // length) - joins


@pytest.mark.parametrize(
    ("duration_s", "length_s", "last"),
    [
        (30.4, 30, (0, 30.4)),
        (31.0, 30, (30, 31.0)),
        (8.5, 4, (8, 8.5)),
        (0.04, 10, (0, 0.04)),
        (60, 30, (30, 60)),
    ],
)
def test_last_window(duration_s: float, length_s: int, last: tuple[float, float]) -> None:
    assert windows(round(duration_s * US), length_s * US)[-1] == Span.from_seconds(*last)


def test_no_timeline_has_no_window() -> None:
    assert windows(0, US) == []


@pytest.mark.parametrize(("duration", "length"), [(10, 0), (10, -1), (-1, 10)])
def test_impossible_grids_are_refused(duration: int, length: int) -> None:
    with pytest.raises(ValueError, match=f"length={length} us, duration={duration} us"):
        windows(duration, length)


@given(DURATIONS, LENGTHS)
def test_chunks_keep_every_window_once_and_in_order(duration: int, length: int) -> None:
    grid = windows(duration, length)
    assert [window for run in chunks(grid) for window in run] == grid
    assert all(run[-1].start_us // CHUNK_US == run[0].start_us // CHUNK_US for run in chunks(grid))


@given(st.integers(0, 10**13), st.integers(1, 10**13), st.integers(1, 10**13))
def test_any_length_tiles_and_any_chunk_keeps_whole_windows(duration: int, length: int, chunk: int) -> None:
    """Far beyond real media: lengths below a frame, timelines of months."""
    length = max(length, duration // 500)  # at most some hundred windows
    grid = windows(duration, length)
    assert [0, *(window.end_us for window in grid)] == [*(window.start_us for window in grid), duration]
    runs = chunks(grid, chunk)
    assert [window for run in runs for window in run] == grid
    assert all(run[-1].start_us - run[0].start_us < chunk for run in runs)
    starts = [run[0].start_us // chunk for run in runs]
    assert starts == sorted(set(starts)), "no two runs of one chunk"
