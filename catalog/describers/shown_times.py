"""Times that a model names, brought back to the asset's clock: those of its prompt, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evicat.schemas.span import US, Span, parse_time, to_us

from .words import short_time


class ShownTimes:
    """Reads times against a window and the frames that were shown of it.

    A time that is written as that of a frame is that frame's. Other times are seconds, or ``[h:]mm:ss[.f]``,
    on the asset's clock. What lies outside the window, or is no time, is counted and dropped: it is not
    guessed that a model counted from the window's start.
    """

    def __init__(self, span: Span, frames_us: Iterable[int]) -> None:
        self._span = span
        self._labels: Mapping[str, int] = {short_time(time_us): time_us for time_us in frames_us}
        self.dropped = 0

    def read(self, said: str | float) -> int | None:
        """Microseconds on the asset's timeline; None where it was dropped."""
        time_us = self._labels.get(said.strip()) if isinstance(said, str) else None
        if time_us is None:
            time_us = _parsed(said)
        if time_us is None or not self._holds(time_us):
            self.dropped += 1
            return None
        return min(max(time_us, self._span.start_us), self._span.end_us - 1)

    def frame(self, said: str | float) -> int | None:
        """Microseconds of the shown frame that is meant, to the tenth that times are told; None: of none.

        That is not counted as :attr:`dropped`.
        """
        label = self._labels.get(said.strip()) if isinstance(said, str) else None
        time_us = _parsed(said) if label is None else label
        if time_us is None:
            return None
        nearest = min(self._labels.values(), key=lambda each: abs(each - time_us), default=None)
        return nearest if nearest is not None and abs(nearest - time_us) < US // 10 else None

    def _holds(self, time_us: int) -> bool:
        """Whether it lies in the window, to the tenth of a second to which times are shown."""
        tenth = US // 10
        return self._span.start_us - tenth < time_us <= self._span.end_us


def _parsed(said: str | float) -> int | None:
    try:
        return parse_time(said.strip().removesuffix("s")) if isinstance(said, str) else to_us(said)
    except (ValueError, OverflowError):
        return None
