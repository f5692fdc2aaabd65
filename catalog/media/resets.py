"""Where the clock of a stream wraps around or is set anew, and what puts all of it on one timeline.

The counters of MPEG-TS, MPEG-PS and FLV wrap around; recordings that were joined, or taken up again after a
break, start their clock anew. A wrap moves nothing. After a new setting the file goes on where it was,
picture and sound by the same amount, so that they stay together. A step back of less than a second is
neither: there a file repeats itself. Nor is a step ahead, for that is a hole in the timeline, unless it is
longer than a hole can be.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from statistics import median

from evicat.schemas.asset import ClockShift
from evicat.schemas.span import US

from .clock import to_us

_WRAPS_AT = {"mpegts": 1 << 33, "mpeg": 1 << 33, "flv": 1 << 32}
"""Ticks after which the counter of a format begins again."""
_LONGEST_HOLE_US = {"mpegts": 3600 * US, "mpeg": 3600 * US, "flv": 3600 * US}
"""Formats whose clocks may be set to any value, so that a longer step ahead is no hole."""
_LONGEST_HOLE_ELSEWHERE_US = 24 * 3600 * US
_REPEAT_US = 1_000_000
_START_OVER_US = 100_000
"""A step back of more than this, to within this of where the clock had been set, starts it over."""
_SAME_CLOCK_US = 10_000_000
"""Packets of two streams with one clock lie this near to each other; so does what follows a wild time."""
_TAIL_US = 100_000
"""Sound may reach this far beyond the picture before the next part of the file has to wait for it."""
_MOST_ERAS = 1000
_RECENT = 64


@dataclass
class Era:
    """Packets of one stream under one setting of its clock. Ticks of the source, wraps undone."""

    turn: int
    """What undid the wraps when it began."""
    first_dts: int
    last_dts: int
    before: int = 0
    """Position of the era that it follows."""
    end_before: int = 0
    """Where that one ended when this one began."""
    first_pts: int | None = None
    last_pts: int | None = None
    last_duration: int = 0
    shift: int = 0
    """Ticks that put it on the timeline."""
    _recent: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, pts: int, duration: int) -> None:
        self._recent.append(pts)
        if self.last_pts is None or pts >= self.last_pts:
            self.last_pts, self.last_duration = pts, duration
            if self.first_pts is None:
                self.first_pts = pts
        elif self.first_pts is not None and pts < self.first_pts:
            self.first_pts = pts

    def lasts(self, duration: int) -> int:
        """``duration``, else the median step of the last packets."""
        times = sorted(set(self._recent))
        steps = [later - earlier for earlier, later in pairwise(times)]
        return duration or (round(median(steps)) if steps else 0)

    @property
    def start(self) -> int:
        return self.first_dts if self.first_pts is None else self.first_pts

    @property
    def end(self) -> int:
        return self.last_dts if self.last_pts is None else self.last_pts + self.lasts(self.last_duration)


class ClockTrack:
    """Follows the clock of one stream through its packets."""

    def __init__(self, time_base: Fraction, container: str) -> None:
        self.time_base = time_base
        self.eras: list[Era] = []
        self._changes: list[tuple[int, int, int]] = []
        """From which packet on which ticks undo the wraps, and in which era it lies."""
        self._now = 0
        self._turn = 0
        self._period = _WRAPS_AT.get(container)
        self._hole = self.ticks(_LONGEST_HOLE_US.get(container, _LONGEST_HOLE_ELSEWHERE_US))
        self._repeat = self.ticks(_REPEAT_US)
        self._start_over = self.ticks(_START_OVER_US)

    def ticks(self, us: int) -> int:
        return round(us / self.time_base / US)

    def add(self, number: int, dts: int | None, pts: int, duration: int) -> None:
        """The packet ``number`` of the stream is shown. This runs for every packet of every file."""
        if not self.eras:
            at = pts if dts is None else dts
            self.eras.append(Era(0, at, at))
            self._changes.append((number, 0, 0))
        era = self.eras[self._now]
        if dts is not None:
            if not -self._start_over <= dts + self._turn - era.last_dts <= self._hole:
                self._jump(number, dts)
                era = self.eras[self._now]
            era.last_dts = dts + self._turn
            if not -self._hole <= pts - dts <= self._hole:
                pts = dts
        # What lasts longer than a hole can be is a wrong rate in the header.
        era.add(pts + self._turn, duration if duration <= self._hole else 0)

    def add_damaged(self, pts: int, duration: int) -> None:
        """A packet that is not shown, but may be what an era ends with."""
        if self.eras:
            era = self.eras[self._now]
            if era.last_pts is not None and 0 <= pts + self._turn - era.last_pts <= self._repeat:
                era.add(pts + self._turn, duration)

    def _jump(self, number: int, dts: int) -> None:
        turn = self._turn + self._wraps(dts)
        if self._goes_on(dts + turn):
            if turn != self._turn:
                self._turn = turn
                self._changes.append((number, turn, self._now))
            return
        if len(self.eras) == _MOST_ERAS:
            return
        now = self.eras[self._now]
        earlier = self.eras[now.before]
        if self._now and 0 <= dts + earlier.turn - earlier.last_dts <= self.ticks(_SAME_CLOCK_US):
            self._now, self._turn = now.before, earlier.turn  # what lay between was a wild time
        else:
            self.eras.append(Era(turn, dts + turn, dts + turn, self._now, now.end))
            self._now, self._turn = len(self.eras) - 1, turn
        self._changes.append((number, self._turn, self._now))

    def _wraps(self, dts: int) -> int:
        """Ticks of the whole turns that bring a time nearest to the one before it."""
        if self._period is None:
            return 0
        return round((self.eras[self._now].last_dts - dts - self._turn) / self._period) * self._period

    def _goes_on(self, time: int) -> bool:
        era = self.eras[self._now]
        step = time - era.last_dts
        starts_over = step < -self._start_over and time <= era.first_dts + self._start_over
        return -self._repeat <= step <= self._hole and not starts_over

    def us(self, position: int, ticks: int) -> int:
        """Microseconds of a time of one era, on the clock of the first one."""
        return to_us(ticks + self.eras[position].shift, self.time_base)

    @property
    def clock_shifts(self) -> tuple[ClockShift, ...]:
        """What its packets need; nothing where its clock is never touched."""
        shifts = [ClockShift(packet=n, ticks=turn + self.eras[era].shift) for n, turn, era in self._changes]
        return tuple(shifts) if len(shifts) > 1 else ()

    @property
    def last(self) -> Era | None:
        """The era that ends last."""
        shown = [era for era in self.eras if era.last_pts is not None]
        return max(shown, key=lambda era: (era.last_pts or 0) + era.shift, default=None)


def align(leading: ClockTrack, other: ClockTrack | None) -> bool:
    """Set the shifts of all eras: those of ``leading`` follow each other, ``other`` goes with it.

    Returns whether any clock wraps or is set anew.
    """
    partners = _partners(leading, other) if other else {}
    follows = {theirs: ours for ours, theirs in partners.items()}
    settled = 0
    for position, era in enumerate(leading.eras):
        if not position:
            continue
        end_us = leading.us(era.before, era.end_before)
        if other and position in follows:
            for each in range(settled, follows[position]):
                _settle(other, each, leading, partners)
            settled = follows[position]
            tail = other.eras[follows[position]]
            end_us = max(end_us, other.us(tail.before, tail.end_before) - _TAIL_US)
        era.shift = leading.ticks(end_us - to_us(era.start, leading.time_base))
    for each in range(settled, len(other.eras) if other else 0):
        assert other is not None
        _settle(other, each, leading, partners)
    return any(track.clock_shifts for track in (leading, other) if track)


def follow(track: ClockTrack, leading: ClockTrack) -> None:
    """Set the shifts of all eras of ``track`` by those of ``leading``, which are settled."""
    partners = _partners(leading, track)
    for position in range(len(track.eras)):
        _settle(track, position, leading, partners)


def _partners(leading: ClockTrack, other: ClockTrack) -> dict[int, int]:
    """Which era of ``leading`` has the same setting of the clock as an era of ``other``."""
    partners: dict[int, int] = {}
    found = 0
    for position, era in enumerate(other.eras[1:], start=1):
        start_us = to_us(era.start, other.time_base)
        for candidate in range(found + 1, len(leading.eras)):
            theirs = leading.eras[candidate]
            first_us, end_us = (to_us(time, leading.time_base) for time in (theirs.start, theirs.end))
            if first_us - _SAME_CLOCK_US <= start_us <= end_us + _SAME_CLOCK_US:
                partners[position] = found = candidate
                break
    return partners


def _settle(track: ClockTrack, position: int, leading: ClockTrack, partners: dict[int, int]) -> None:
    """Shift an era as the one of ``leading`` that it belongs to, else to the end of the one before it."""
    era = track.eras[position]
    if position in partners:
        era.shift = track.ticks(to_us(leading.eras[partners[position]].shift, leading.time_base))
    elif position:
        era.shift = track.eras[era.before].shift + era.end_before - era.start
