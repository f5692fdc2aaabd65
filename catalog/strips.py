"""One line of characters per unit: what became of its windows, along the timeline."""

from __future__ import annotations

from collections.abc import Iterable

from evicat.schemas.entry import Outcome

WIDTH = 60
"""Cells of a strip, whatever the length of the video."""
PENDING = "pending"
MARKS: dict[str, tuple[str, str]] = {
    Outcome.DONE.value: ("#", "green"),
    Outcome.EMPTY.value: ("-", "dim"),
    Outcome.PARTIAL.value: ("+", "cyan"),
    Outcome.NO_FRAMES.value: ("o", "dim"),
    Outcome.STALE.value: ("~", "yellow"),
    PENDING: (".", "yellow"),
    Outcome.REFUSED.value: ("r", "magenta"),
    Outcome.FAILED.value: ("X", "bold red"),
}
"""Character and style of each outcome, from best to worst: a cell with several shows the worst."""

_ORDER = list(MARKS)
Rows = Iterable[tuple[float, float, str]]
"""Start and end in seconds, and outcome."""


def strip(windows: Rows, duration_s: float, width: int = WIDTH) -> list[str]:
    """The worst outcome in each of ``width`` equal parts of ``[0, duration_s)``.

    What no window covers is pending.
    """
    if duration_s <= 0:
        return []
    cells = [0] * width
    reached_s = 0.0
    for start_s, end_s, outcome in sorted(windows):
        _raise(cells, reached_s, start_s, _ORDER.index(PENDING), duration_s)
        _raise(cells, start_s, end_s, _ORDER.index(outcome), duration_s)
        reached_s = max(reached_s, end_s)
    _raise(cells, reached_s, duration_s, _ORDER.index(PENDING), duration_s)
    return [_ORDER[cell] for cell in cells]


def _raise(cells: list[int], start_s: float, end_s: float, rank: int, duration_s: float) -> None:
    """Give every cell that ``[start_s, end_s)`` touches at least this rank."""
    if end_s <= start_s:
        return
    first = int(start_s * len(cells) / duration_s)
    last = -int(-end_s * len(cells) // duration_s)
    for cell in range(max(0, first), min(len(cells), last)):
        cells[cell] = max(cells[cell], rank)


def plain(cells: Iterable[str]) -> str:
    """A strip as text without colour."""
    return "".join(MARKS[cell][0] for cell in cells)
