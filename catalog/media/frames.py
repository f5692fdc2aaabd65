"""Which frames of which windows are shown, all scales served by one pass over the video."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evicat.schemas.asset import Asset
from evicat.schemas.span import Span

from .frame import Frame
from .picture import Image
from .worker import WorkerPool

Shown = tuple[int, tuple[Frame, ...]]
"""Position of a window in the list of the wanted ones, and its frames in time order."""


@dataclass(frozen=True, slots=True)
class ShotsWanted:
    """A scale whose windows are shots: found on the way, by the rules of ``shot_windows.Tiling``."""

    min_us: int
    max_us: int
    per_window: int
    max_width: int


@dataclass(frozen=True, slots=True)
class Shot:
    """A window that was found on the way, and its frames in time order."""

    number: int
    """Position of its scale in the list of those whose windows are shots."""
    span: Span
    frames: tuple[Frame, ...]


Found = Shown | Shot
"""What a pass brings. The windows of a scale of shots come in time order and tile the timeline."""


def frame_times(span: Span, count: int) -> tuple[int, ...]:
    """Middles of ``count`` equal parts of ``span``, in microseconds.

    Chosen over both ends included: no two windows ask for the instant that they share, and one frame is the
    middle of its window. A span of fewer microseconds than ``count`` gives fewer times.
    """
    step = 2 * count
    times = (span.start_us + (2 * part + 1) * span.duration_us // step for part in range(count))
    return tuple(dict.fromkeys(times))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A window, the instants whose pictures it shows, and the width that these are scaled down to.

    Raises:
        ValueError: an instant lies outside the span.
    """

    span: Span
    times_us: tuple[int, ...]
    max_width: int

    def __post_init__(self) -> None:
        outside = [time for time in self.times_us if time not in self.span]
        if outside:
            raise ValueError(f"wanted instants must lie in {self.span}, got {outside[0]} us")


class Candidate:
    """A decoded frame that is converted only when a window takes it, and then once per width."""

    def __init__(
        self,
        pts: int,
        time_us: int,
        image: Callable[[int], Image],
        look: Callable[[int], Image] | None = None,
    ) -> None:
        """``look`` makes the picture that shots are found by, where a decoder shows others with ``image``:
        it must be the same whichever decoder is used."""
        self.pts = pts
        self.time_us = time_us
        self.look = look or image
        self._image = image
        self._frames: dict[int, Frame] = {}

    def frame(self, max_width: int) -> Frame:
        if max_width not in self._frames:
            self._frames[max_width] = Frame(self.pts, self.time_us, self._image(max_width))
        return self._frames[max_width]


class Selection:
    """Deals the frames that a decoder brings, in time order, out to the wanted windows.

    For an instant the frame on display then is taken: the latest at or before it that is not before its
    window; where there is none, the first one after it inside the window. A frame that serves several
    instants of a window stands in it once. A decoder need not bring frames that no instant takes: it asks
    :meth:`wants` and says with :meth:`pass_by` up to where it has brought all that was wanted.
    """

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted
        self._times = sorted((time, index) for index, one in enumerate(wanted) for time in one.times_us)
        self._next = 0
        self._waiting: list[tuple[int, int]] = []
        """Instants that lie behind and take the first frame that comes, if their window still holds it."""
        self._current: Candidate | None = None
        self._left = [len(one.times_us) for one in wanted]
        self._frames: dict[int, list[Frame]] = {}
        self._complete: list[Found] = [(index, ()) for index, left in enumerate(self._left) if not left]
        self._floor_us = 0

    @property
    def is_settled(self) -> bool:
        """Whether every instant has its frame, or is known to have none."""
        return not self._waiting and self._next == len(self._times)

    @property
    def waits(self) -> bool:
        """Whether an instant that was passed by takes the next frame."""
        return bool(self._waiting)

    def wants(self, start_us: int, end_us: int | None) -> bool:
        """Whether a wanted instant lies in ``[start_us, end_us)``; None: without end."""
        first = bisect_left(self._times, (start_us, 0), self._next)
        return first < len(self._times) and (end_us is None or self._times[first][0] < end_us)

    def show(self, candidate: Candidate) -> None:
        """Take the next frame; one that goes back in time, or lies before second 0, is ignored."""
        if candidate.time_us < self._floor_us:
            return
        for _, index in self._due(candidate.time_us):
            if not self._take_current(index):
                inside = candidate.time_us < self._wanted[index].span.end_us
                self._settle(index, candidate if inside else None)
        self._current = candidate
        self._floor_us = candidate.time_us + 1

    def pass_by(self, time_us: int) -> None:
        """All frames before ``time_us`` that were wanted have been shown, and the next one lies at it."""
        for time, index in self._due(time_us):
            if self._take_current(index):
                continue
            if time_us < self._wanted[index].span.end_us:
                self._waiting.append((time, index))
            else:
                self._settle(index, None)
        self._floor_us = max(self._floor_us, time_us)

    def end(self) -> None:
        """There are no more frames."""
        for _, index in self._due(None):
            if not self._take_current(index):
                self._settle(index, None)

    def start_over(self) -> None:
        """The decoder begins again at the first frame; what is settled stays."""
        self._times = sorted(self._waiting + self._times[self._next :])
        self._waiting, self._next = [], 0
        self._current = None
        self._floor_us = 0

    def take_complete(self) -> list[Found]:
        """Windows that became complete since the last call."""
        complete, self._complete = self._complete, []
        return complete

    def _due(self, before_us: int | None) -> list[tuple[int, int]]:
        end = len(self._times) if before_us is None else bisect_left(self._times, (before_us, 0), self._next)
        due = self._waiting + self._times[self._next : end]
        self._waiting, self._next = [], end
        return due

    def _take_current(self, index: int) -> bool:
        current = self._current
        if current is None or current.time_us < self._wanted[index].span.start_us:
            return False
        self._settle(index, current)
        return True

    def _settle(self, index: int, candidate: Candidate | None) -> None:
        if candidate is not None:
            frames = self._frames.setdefault(index, [])
            if not frames or frames[-1].pts != candidate.pts:
                frames.append(candidate.frame(self._wanted[index].max_width))
        self._left[index] -= 1
        if not self._left[index]:
            self._complete.append((index, tuple(self._frames.pop(index, ()))))


def decode_windows(
    path: Path, asset: Asset, wanted: Sequence[Wanted], *, decoder: str = "pyav"
) -> Iterator[Shown]:
    """Decode once and yield every wanted window exactly once, as soon as it is complete.

    A window that no frame lies in has none. Memory does not grow with the length of the video. Windows that
    show the same frame at the same width share its array.

    Raises:
        UnreadableMediaError: the file cannot be opened (any more).
        UnknownNameError: no decoder has this name.
    """
    return (shown for shown in decode_steps(path, asset, wanted, decoder) if shown is not None)


def decode_steps(
    path: Path, asset: Asset, wanted: Sequence[Wanted], decoder: str = "pyav"
) -> Iterator[Shown | None]:
    """:func:`decode_windows` with None as a sign of life while it works; what runs in a worker."""
    found = find_steps(path, asset, wanted, (), decoder)
    return (shown for shown in found if not isinstance(shown, Shot))


def find_steps(
    path: Path,
    asset: Asset,
    wanted: Sequence[Wanted],
    shots: Sequence[ShotsWanted],
    decoder: str = "pyav",
) -> Iterator[Found | None]:
    """:func:`decode_steps` that also finds the windows of scales of shots.

    For these every frame is decoded and looked at.
    """
    from .loaders import load_decoder

    selection = _selection(wanted, shots, asset.duration_us)
    yield from selection.take_complete()
    if asset.video is None:
        selection.end()
    else:
        yield from load_decoder(decoder)(path, asset, selection)
    yield from selection.take_complete()


def _selection(wanted: Sequence[Wanted], shots: Sequence[ShotsWanted], duration_us: int) -> Selection:
    if not shots:
        return Selection(wanted)
    from .shot_windows import ShotSelection

    return ShotSelection(wanted, shots, duration_us)


def read_windows(
    pool: WorkerPool,
    path: Path,
    asset: Asset,
    wanted: Sequence[Wanted],
    *,
    timeout_s: float,
    decoder: str = "pyav",
) -> Iterator[Shown]:
    """:func:`decode_windows` in a worker process.

    Raises:
        DecodeStalledError: no progress for ``timeout_s`` seconds.
        DecoderCrashedError: the process died.
    """
    return pool.run(decode_steps, path, asset, wanted, decoder, timeout_s=timeout_s, about=path)


def read_windows_and_shots(
    pool: WorkerPool,
    path: Path,
    asset: Asset,
    wanted: Sequence[Wanted],
    shots: Sequence[ShotsWanted],
    *,
    timeout_s: float,
    decoder: str = "pyav",
) -> Iterator[Found]:
    """:func:`read_windows` that also finds the windows of scales of shots, in the same pass."""
    return pool.run(find_steps, path, asset, wanted, shots, decoder, timeout_s=timeout_s, about=path)
