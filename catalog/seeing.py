"""The stage that shows pictures: every scale that reads frames, from one pass over the video.

A describer that takes one window at a time is called on the way. One that serves several is called from
threads of its own, while the pass goes on; a scale that reads its own past (narratives by a model) gets its
windows one after another. What waits is held as small JPEG files, and beyond a bound the pass waits too.

A scale that reads local entries too gets its frames in a second pass, when those entries are there.

The windows of a grid are known before the pass, and only frames of those that are left are wanted. Shots are
found on the way, all of them; a lane takes those that have no result.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from evicat.catalog.describers.base import Describer, Past
from evicat.catalog.describing import describe, failed, hash_of, past_of, window_input
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import (
    Found,
    Shot,
    Wanted,
    frame_times,
    read_windows,
    read_windows_and_shots,
)
from evicat.catalog.units import entries_of, opened
from evicat.catalog.windows import shots_wanted, tiles
from evicat.schemas.entry import Entry, WindowResult
from evicat.schemas.errors import AssetError
from evicat.schemas.grid import CHUNK_US
from evicat.schemas.identity import Unit
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span

HELD_WINDOWS = 64
"""Windows of one scale of one video that wait with their frames, at most. More would not make a run shorter:
what a pass brings is in step with what its chain takes, or the chain is what the run waits for."""


def see(job: Job, kit: Kit, sink: Sink) -> None:
    """Records of all scales that read frames: those that read local entries too in a second pass.

    Raises:
        EngineDownError, UsageError, IntegrityError: nothing more can be made; what was begun is finished.
    """
    units = {**job.local, **job.objects, **job.narrative}
    behind = {scale: unit for scale, unit in units.items() if "local" in kit.describers[scale].reads}
    _pass(job, kit, sink, {scale: unit for scale, unit in units.items() if scale not in behind})
    _pass(job, kit, sink, behind)


def _pass(job: Job, kit: Kit, sink: Sink, units: dict[str, Unit]) -> None:
    """Those of the units that read frames, from one pass over the pictures; none where nothing is left."""
    with ExitStack() as stack:
        lanes = []
        for scale, unit in units.items():
            describer = kit.describers[scale]
            if "frames" not in describer.reads or (
                sink.is_complete(unit) and not _may_be_stale(describer, sink)
            ):
                continue
            have = stack.enter_context(opened(sink, unit))
            lane = _lane(job, kit, sink, scale, unit, have)
            if lane.looks:
                lanes.append(stack.enter_context(lane))
        _show(job, kit, lanes)


def _may_be_stale(describer: Describer[Any], sink: Sink) -> bool:
    return "stale" in sink.retry and bool({"speech", "local", "past"} & describer.reads)


@dataclass(frozen=True, slots=True)
class _Look:
    """One window whose frames are wanted."""

    lane: _Lane
    span: Span


def _show(job: Job, kit: Kit, lanes: list[_Lane]) -> None:
    """Deal the frames of one pass out to the lanes."""
    finding = [lane for lane in lanes if lane.shots]
    looks = [_Look(lane, span) for lane in lanes if not lane.shots for span in lane.looks]
    left = dict(enumerate(looks))
    if not lanes:
        return
    behind = sum(look.lane.is_chain for look in looks)
    try:
        for found in _frames(job, kit, looks, finding):
            if isinstance(found, Shot):
                finding[found.number].find(found, behind)
                continue
            index, frames = found
            look = left.pop(index)
            behind -= look.lane.is_chain
            look.lane.take(look.span, frames, behind)
    except AssetError as error:
        for look in left.values():
            look.lane.give_up(look.span, error)
        for lane in finding:
            lane.give_up_rest(error)
    for lane in lanes:
        lane.finish()


def _frames(job: Job, kit: Kit, looks: list[_Look], finding: list[_Lane]) -> Iterator[Found]:
    options = {scale.name: scale.frames for scale in kit.recipe.scales if scale.frames}
    wanted = []
    for look in looks:
        frames = options[look.lane.unit.scale]
        wanted.append(Wanted(look.span, frame_times(look.span, frames.per_window), frames.max_width))
    timeout_s, decoder = kit.profile.decode_timeout_seconds, kit.profile.decoder
    shots = [lane.shots for lane in finding if lane.shots]
    if not shots:
        return read_windows(kit.workers, job.path, job.asset, wanted, timeout_s=timeout_s, decoder=decoder)
    return read_windows_and_shots(
        kit.workers, job.path, job.asset, wanted, shots, timeout_s=timeout_s, decoder=decoder
    )


def _lane(job: Job, kit: Kit, sink: Sink, scale: str, unit: Unit, have: dict[int, WindowResult]) -> _Lane:
    describer = kit.describers[scale]
    if "past" in describer.reads:
        return _Chain(job, kit, sink, scale, unit, have)
    return (_Parallel if describer.slots > 1 else _Lane)(job, kit, sink, scale, unit, have)


def _start_us(span: Span) -> int:
    return span.start_us


def _end_us(span: Span) -> int:
    return span.end_us


def _chunk(span: Span) -> int:
    """The chunk that a window is of: as by :func:`evicat.schemas.grid.chunks`."""
    return span.start_us // CHUNK_US


class _Lane:
    """One scale of one video: windows are described in the thread that brings their frames."""

    is_chain: ClassVar[bool] = False
    """Whether each window waits for the one before it."""

    def __init__(
        self, job: Job, kit: Kit, sink: Sink, scale: str, unit: Unit, have: dict[int, WindowResult]
    ) -> None:
        self.job, self.kit, self.sink, self.unit = job, kit, sink, unit
        self.describer: Describer[Any] = kit.describers[scale]
        self.shots = shots_wanted(kit.scale(scale))
        if self.shots:
            self.grid = tiles(job.timeline, [result.span for result in have.values()])
            spans = set(self.grid)
            have = {start_us: result for start_us, result in have.items() if result.span in spans}
        else:
            self.grid = job.grid(kit, scale)
        self.have = have
        self.again = _may_be_stale(self.describer, sink)
        read = [job.speech] if job.speech and "speech" in self.describer.reads else []
        read += job.local.values() if "local" in self.describer.reads else []
        entries = (entry for source in read for entry in entries_of(sink, source))
        self.entries: list[Entry] = sorted(entries, key=lambda each: (each.span, each.entry_id))
        self.looks = self._due()
        """What is left to make; of shots, what of the timeline they are to be found in."""
        self._left: Counter[int] = Counter()
        """By chunk: how many windows have no outcome so far, and one more while it may get more windows."""
        self._lock = threading.Lock()
        due = set(self.looks)
        self._kept = [span for span in self.grid if span not in due]
        self._kept_spans = frozenset(self._kept)
        self._found_until_us = 0
        self._in_chunk = 0
        if not self.shots:
            self._left.update(map(_chunk, self.looks))

    def _due(self) -> list[Span]:
        return [span for span in self.grid if not self._holds(span, None)]

    def _holds(self, span: Span, past: Past | None) -> bool:
        """Whether there is a result that need not be made again."""
        before = self.have.get(span.start_us)
        if before is None or not self.again:
            return before is not None
        window = window_input(span, self.describer, self.entries, past=past)
        return before.context_hash == hash_of(window)

    def take(self, span: Span, frames: tuple[Frame, ...], behind: int) -> None:
        """Here are the frames of a window; the pass goes on to those of ``behind`` windows of chains."""
        with self.kit.using(self.describer):
            self.write(self.describe(span, frames, None))

    def describe(self, span: Span, frames: tuple[Frame, ...], past: Past | None) -> WindowResult:
        window = window_input(span, self.describer, self.entries, frames, past)
        return describe(self.job, self.kit, self.describer, self.unit, window)

    def give_up(self, span: Span, error: AssetError) -> None:
        """There will be no frames for this window."""
        self.write(failed(span, error))

    def find(self, shot: Shot, behind: int) -> None:
        """The pass has found the next window: take what of it has no result, as a rule all or nothing.

        Where shots are found otherwise than when the results were made, those keep their windows.
        """
        first = bisect_right(self._kept, shot.span.start_us, key=_end_us)
        last = bisect_left(self._kept, shot.span.end_us, key=_start_us)
        for span in self._next(shot.span, self._kept[first:last]):
            frames = tuple(frame for frame in shot.frames if frame.time_us in span)
            self.take(span, frames, behind)

    def give_up_rest(self, error: AssetError) -> None:
        """No further windows will be found: what is left of the timeline failed, each gap in one piece."""
        if self._found_until_us < self.job.asset.duration_us:
            rest = Span(self._found_until_us, self.job.asset.duration_us)
            for span in self._next(rest, [result.span for result in self.have.values()]):
                self.give_up(span, error)

    def _next(self, whole: Span, known: list[Span]) -> Iterator[Span]:
        """Go on over ``whole``, as ``known`` windows divide it; the windows that are to be made."""
        windows = tiles(whole, known)
        due = {span for span in windows if span not in self._kept_spans}
        with self._lock:
            self._left.update(map(_chunk, [whole, *due]))
        for span in windows:
            self.expect(span, is_due=span in due)
            if span in due:
                yield span
        is_first = not self._found_until_us
        before, self._in_chunk, self._found_until_us = self._in_chunk, _chunk(whole), whole.end_us
        if not is_first:
            self._count_down(before)

    def expect(self, span: Span, *, is_due: bool) -> None:
        """This window comes next; ``is_due``: with its frames."""

    def write(self, result: WindowResult) -> None:
        """Hand a result over; the last one of a chunk seals it."""
        self.sink.write(self.unit, result)
        self.settle(result.span)

    def settle(self, span: Span) -> None:
        """Nothing is left to make of this window."""
        self._count_down(_chunk(span))

    def _count_down(self, chunk: int) -> None:
        with self._lock:
            self._left[chunk] -= 1
            is_last = not self._left[chunk]
        if is_last:
            self.sink.seal(self.unit)

    def finish(self) -> None:
        """Wait for what is under way."""

    def __enter__(self) -> _Lane:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing of this lane runs any more after it."""


class _Parallel(_Lane):
    """Windows are described by the callers of the describer, each when it is its turn."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._callers = self.kit.callers(self.describer)
        self._room = threading.BoundedSemaphore(min(HELD_WINDOWS, 2 * self.describer.slots))
        self._running: list[Future[WindowResult]] = []

    def take(self, span: Span, frames: tuple[Frame, ...], behind: int) -> None:
        self._raise_first()
        packed = self.describer.prepare(frames)
        self._room.acquire()
        # Where the windows that wait fill the room, the pass stops, and so do the chains that it feeds: this
        # call is in their way as much as one of their own.
        future = self._callers.submit(partial(self._make, span, packed), behind=behind)
        future.add_done_callback(lambda _: self._room.release())
        self._running.append(future)

    def _make(self, span: Span, frames: tuple[Frame, ...]) -> WindowResult:
        result = self.describe(span, frames, None)
        self.write(result)
        return result

    def _raise_first(self) -> None:
        """Raise what ended a call, and forget those that went well."""
        for future in [each for each in self._running if each.done()]:
            self._running.remove(future)
            future.result()

    def finish(self) -> None:
        """Wait for all calls, or for the first that something ends; those behind it are not made any more."""
        wait(self._running, return_when=FIRST_EXCEPTION)
        self._raise_first()

    def __exit__(self, *_: object) -> None:
        for future in self._running:
            future.cancel()
        for future in self._running:
            if not future.cancelled():
                future.exception()


class _Chain(_Lane):
    """Windows in order: each reads the narrative before it, so one is under way at a time."""

    is_chain = True

    def __init__(self, *arguments: Any) -> None:
        self._past: Past | None = None
        super().__init__(*arguments)
        self._frames: dict[int, tuple[Frame, ...] | AssetError] = {}
        self._todo = deque(() if self.shots else self.grid)
        self._wanted = set() if self.shots else {span.start_us for span in self.looks}
        self._callers = self.kit.callers(self.describer)
        self._under_way: Future[WindowResult] | None = None
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._is_stopped = False

    def _due(self) -> list[Span]:
        """Windows that have no result; where stale ones are retried, all from the first that may be stale."""
        if not self.again:
            return super()._due()
        past: Past | None = None
        for number, span in enumerate(self.grid):
            if not self._holds(span, past):
                return self.grid[number:]
            past = past_of(self.have[span.start_us]) or past
        return []

    def take(self, span: Span, frames: tuple[Frame, ...], behind: int) -> None:
        packed = self.describer.prepare(frames)
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or len(self._frames) < HELD_WINDOWS)
        self._put(span, packed)

    def give_up(self, span: Span, error: AssetError) -> None:
        self._put(span, error)

    def expect(self, span: Span, *, is_due: bool) -> None:
        with self._changed:
            if is_due:
                self._wanted.add(span.start_us)
            self._todo.append(span)
            self._go_on()

    def _put(self, span: Span, frames: tuple[Frame, ...] | AssetError) -> None:
        with self._changed:
            self._frames[span.start_us] = frames
            self._go_on()
        if self._error:
            raise self._error

    def _go_on(self) -> None:
        """Begin the next window if none is under way and its frames are there. Holds ``_changed``."""
        while self._todo and self._under_way is None and not self._is_stopped:
            if not self._begin(self._todo[0]):
                return
            # Only now: a call that ended at once asks from inside, and finds that this one has begun. So many
            # of them run in this loop, and do not nest.
            self._todo.popleft()

    def _begin(self, span: Span) -> bool:
        """Begin a window, or pass it by where it has a result; False: its frames have not come."""
        if span.start_us not in self._wanted:
            self._past = past_of(self.have[span.start_us]) or self._past
            return True
        if span.start_us not in self._frames:
            return False
        frames = self._frames.pop(span.start_us)
        future = self._callers.submit(partial(self._make, span, frames), behind=self._behind(span))
        self._under_way = future
        future.add_done_callback(self._done)
        return True

    def _behind(self, span: Span) -> int:
        """How many windows wait for this one; of shots, how many there are at least."""
        if not self.shots:
            return len(self._todo) - 1
        return (self.job.asset.duration_us - span.end_us) // self.shots.max_us

    def _make(self, span: Span, frames: tuple[Frame, ...] | AssetError) -> WindowResult:
        if self._holds(span, self._past):
            self.settle(span)
            return self.have[span.start_us]
        if isinstance(frames, AssetError):
            result = failed(span, frames)
        else:
            result = self.describe(span, frames, self._past)
        self.write(result)
        return result

    def _done(self, future: Future[WindowResult]) -> None:
        """The window that was under way has ended. What is raised here nobody would see: it is kept."""
        with self._changed:
            self._under_way = None
            try:
                self._past = past_of(future.result()) or self._past
                self._go_on()
            except BaseException as error:  # noqa: BLE001  the video's own thread raises it
                self._error, self._is_stopped = error, True
            self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._under_way is None)
        if self._error:
            raise self._error
        if self._todo:
            raise RuntimeError(f"{self.job.path}: no frames came for the window {self._todo[0]}")

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_stopped = True
            if self._under_way:
                self._under_way.cancel()
            self._changed.wait_for(lambda: self._under_way is None)
