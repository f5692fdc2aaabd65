"""Windows that are shots: their spans by the rules of their scale, and their frames, as the pass goes on."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence

from evicat.schemas.span import Span

from .frame import Frame
from .frames import Candidate, Found, Selection, Shot, ShotsWanted, Wanted, frame_times
from .shots import LOOK_WIDTH, Cuts

PER_PART = 2
"""Frames that are kept of each part of a window, while it is not known where the window ends."""


class Tiling:
    """Makes windows of ``[0, duration_us)`` out of cuts that come one after another.

    A shot shorter than ``min_us`` joins the one before it, the first one the next. What is longer than
    ``max_us`` is divided: while at least twice as much is left, ``max_us`` are taken, and the rest is one
    window or two equal ones. (Equal parts throughout would be known only at the end of a shot, and of a shot
    of hours the frames of all its parts would have to be kept until then.) With ``max_us >= 2 * min_us``, all
    windows lie within both bounds, unless the whole timeline is shorter than ``min_us``.
    """

    def __init__(self, duration_us: int, min_us: int, max_us: int) -> None:
        self._duration_us, self._min_us, self._max_us = duration_us, min_us, max_us
        self.start_us = 0
        """Where the first window begins that is not made so far."""
        self._cut_us: int | None = None
        """The latest cut behind ``start_us``: what lies before it waits, for the shot behind may be short."""

    @property
    def shot_us(self) -> int:
        """Where the latest shot began, or the part of it that is left."""
        return self.start_us if self._cut_us is None else self._cut_us

    def cut(self, at_us: int) -> Iterator[Span]:
        """A shot begins here; no other cut before it is to come."""
        yield from self.reach(at_us)
        if self._cut_us is not None or at_us - self.start_us >= self._min_us:
            self._cut_us = at_us

    def reach(self, until_us: int) -> Iterator[Span]:
        """No cut before ``until_us`` is to come."""
        if self._cut_us is not None and until_us - self._cut_us >= self._min_us:
            yield from self._divide(self._cut_us)
            self._cut_us = None
        known_us = until_us if self._cut_us is None else self._cut_us
        yield from self._take_longest(known_us)

    def end(self) -> Iterator[Span]:
        """No cut is to come at all."""
        yield from self.reach(self._duration_us)
        yield from self._divide(self._duration_us)

    def _take_longest(self, end_us: int) -> Iterator[Span]:
        while end_us - self.start_us >= 2 * self._max_us:
            yield self._take(self.start_us + self._max_us)

    def _divide(self, end_us: int) -> Iterator[Span]:
        """Windows up to ``end_us``, where one ends."""
        yield from self._take_longest(end_us)
        if end_us - self.start_us > self._max_us:
            yield self._take((self.start_us + end_us) // 2)
        if end_us > self.start_us:
            yield self._take(end_us)

    def _take(self, end_us: int) -> Span:
        span = Span(self.start_us, end_us)
        self.start_us = end_us
        return span


class ShotWindows:
    """The windows of one scale, each with the frames nearest to the middles of its equal parts.

    A window's end is known late, so frames are kept that may turn out to be wanted: the longer a shot lasts,
    the fewer of it, but always about :data:`PER_PART` for each part. So their number is bounded by the bounds
    of the scale, not by the video's length.
    """

    def __init__(self, number: int, wanted: ShotsWanted, duration_us: int) -> None:
        self._number, self._wanted = number, wanted
        self._tiling = Tiling(duration_us, wanted.min_us, wanted.max_us)
        self._parts = PER_PART * wanted.per_window
        self._least_us = max(1, min(wanted.min_us, duration_us) // self._parts)
        self._unsettled: deque[Candidate] = deque()
        """Frames behind which a cut may still be told; they are not converted, since few are kept of them."""
        self._kept: list[Frame] = []

    def show(self, candidate: Candidate, *, may_begin: bool) -> None:
        """Take the next frame; ``may_begin``: a cut may turn out to be at it."""
        latest_us = self._unsettled[-1].time_us if self._unsettled else -self._least_us
        if may_begin or candidate.time_us - latest_us >= self._least_us:
            self._unsettled.append(candidate)

    def settle(self, cut_us: int | None, settled_us: int) -> Iterator[Shot]:
        """Windows that are certain: the next cut is at ``cut_us``, and no other before ``settled_us``."""
        if cut_us is not None:
            self._keep(cut_us)
            yield from self._shown(self._tiling.cut(cut_us))
        self._keep(settled_us)
        yield from self._shown(self._tiling.reach(settled_us))

    def end(self, cut_us: int | None) -> Iterator[Shot]:
        """The last windows; ``cut_us``: one more cut."""
        if cut_us is not None:
            yield from self.settle(cut_us, cut_us)
        while self._unsettled:
            self._keep_one(self._unsettled.popleft())
        yield from self._shown(self._tiling.end())

    def _keep(self, until_us: int) -> None:
        while self._unsettled and self._unsettled[0].time_us < until_us:
            self._keep_one(self._unsettled.popleft())

    def _keep_one(self, candidate: Candidate) -> None:
        """Keep a frame if it is far enough from the last one, seen how long its shot lasts by now."""
        shot_us = self._tiling.shot_us
        lasts_us = min(candidate.time_us - shot_us, self._wanted.max_us // 2)
        step_us = max(self._least_us, lasts_us // self._parts)
        last_us = self._kept[-1].time_us if self._kept else -1
        if last_us < shot_us or candidate.time_us - last_us >= step_us:
            self._kept.append(candidate.frame(self._wanted.max_width))

    def _shown(self, spans: Iterator[Span]) -> Iterator[Shot]:
        for span in spans:
            end = bisect_left(self._kept, span.end_us, key=_time)
            inside, self._kept = self._kept[:end], self._kept[end:]
            yield Shot(self._number, span, _nearest(inside, frame_times(span, self._wanted.per_window)))


def _time(frame: Frame) -> int:
    return frame.time_us


def _nearest(frames: list[Frame], times_us: Sequence[int]) -> tuple[Frame, ...]:
    """The frame nearest to each instant, each once."""
    if not frames:
        return ()
    found = (min(_around(frames, time), key=lambda each: abs(each.time_us - time)) for time in times_us)
    return tuple({frame.pts: frame for frame in found}.values())


def _around(frames: list[Frame], time_us: int) -> list[Frame]:
    """The frames before and behind an instant, or the one that there is."""
    behind = bisect_left(frames, time_us, key=_time)
    return frames[max(0, behind - 1) : behind + 1]


class ShotSelection(Selection):
    """A selection that looks at every frame, so that it finds the shots on the way."""

    def __init__(self, wanted: Sequence[Wanted], shots: Sequence[ShotsWanted], duration_us: int) -> None:
        super().__init__(wanted)
        self._shots, self._duration_us = shots, duration_us
        self._found: list[Found] = []
        self._told: list[int] = [0] * len(shots)
        """Until where the windows of each scale were told: none comes again when the decoder starts over."""
        self._is_over = False
        self._look_anew()

    def _look_anew(self) -> None:
        self._cuts = Cuts()
        self._scales = [
            ShotWindows(number, each, self._duration_us) for number, each in enumerate(self._shots)
        ]

    @property
    def is_settled(self) -> bool:
        return self._is_over

    def wants(self, start_us: int, end_us: int | None) -> bool:
        return True

    def show(self, candidate: Candidate) -> None:
        if self._is_over or candidate.time_us < self._floor_us:
            return
        super().show(candidate)
        cut_us = self._cuts.show(candidate.time_us, candidate.look(LOOK_WIDTH))
        settled_us = self._cuts.settled_us
        for scale in self._scales:
            scale.show(candidate, may_begin=settled_us == candidate.time_us)
            self._tell(scale.settle(cut_us, settled_us))

    def end(self) -> None:
        if self._is_over:
            return
        super().end()
        cut_us = self._cuts.end()
        for scale in self._scales:
            self._tell(scale.end(cut_us))
        self._is_over = True

    def start_over(self) -> None:
        super().start_over()
        self._look_anew()

    def take_complete(self) -> list[Found]:
        found, self._found = self._found, []
        return [*super().take_complete(), *found]

    def _tell(self, shots: Iterator[Shot]) -> None:
        for shot in shots:
            if shot.span.start_us >= self._told[shot.number]:
                self._told[shot.number] = shot.span.end_us
                self._found.append(shot)
