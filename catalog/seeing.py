"""The stage that shows pictures: every scale that reads frames, from one pass over the video.

A describer that takes one window at a time is called on the way. One that serves several is called from
threads of its own, while the pass goes on; a scale that reads its own past (narratives by a model) gets its
windows one after another. What waits is held as small JPEG files, and beyond a bound the pass waits too.
"""

from __future__ import annotations

import threading
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
from evicat.catalog.media.frames import Wanted, frame_times, read_windows
from evicat.catalog.units import entries_of, opened
from evicat.schemas.entry import Entry, WindowResult
from evicat.schemas.errors import AssetError
from evicat.schemas.grid import chunks
from evicat.schemas.identity import Unit
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span

HELD_WINDOWS = 64
"""Windows of one scale of one video that wait with their frames, at most. More would not make a run shorter:
what a pass brings is in step with what its chain takes, or the chain is what the run waits for."""


def see(job: Job, kit: Kit, sink: Sink) -> None:
    """Records of all scales that read frames.

    Raises:
        EngineDownError, UsageError, IntegrityError: nothing more can be made; what was begun is finished.
    """
    units = {**job.local, **job.narrative}
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
    return "stale" in sink.retry and bool({"speech", "past"} & describer.reads)


@dataclass(frozen=True, slots=True)
class _Look:
    """One window whose frames are wanted."""

    lane: _Lane
    span: Span


def _show(job: Job, kit: Kit, lanes: list[_Lane]) -> None:
    """Deal the frames of one pass out to the lanes."""
    looks = [_Look(lane, span) for lane in lanes for span in lane.looks]
    left = dict(enumerate(looks))
    if not looks:
        return
    behind = sum(look.lane.is_chain for look in looks)
    try:
        for index, frames in _frames(job, kit, looks):
            look = left.pop(index)
            behind -= look.lane.is_chain
            look.lane.take(look.span, frames, behind)
    except AssetError as error:
        for look in left.values():
            look.lane.give_up(look.span, error)
    for lane in lanes:
        lane.finish()


def _frames(job: Job, kit: Kit, looks: list[_Look]) -> Iterator[tuple[int, tuple[Frame, ...]]]:
    options = {scale.name: scale.frames for scale in kit.recipe.scales if scale.frames}
    wanted = []
    for look in looks:
        frames = options[look.lane.unit.scale]
        wanted.append(Wanted(look.span, frame_times(look.span, frames.per_window), frames.max_width))
    timeout_s, decoder = kit.profile.decode_timeout_seconds, kit.profile.decoder
    return read_windows(kit.workers, job.path, job.asset, wanted, timeout_s=timeout_s, decoder=decoder)


def _lane(job: Job, kit: Kit, sink: Sink, scale: str, unit: Unit, have: dict[int, WindowResult]) -> _Lane:
    describer = kit.describers[scale]
    if "past" in describer.reads:
        return _Chain(job, kit, sink, scale, unit, have)
    return (_Parallel if describer.slots > 1 else _Lane)(job, kit, sink, scale, unit, have)


class _Lane:
    """One scale of one video: windows are described in the thread that brings their frames."""

    is_chain: ClassVar[bool] = False
    """Whether each window waits for the one before it."""

    def __init__(
        self, job: Job, kit: Kit, sink: Sink, scale: str, unit: Unit, have: dict[int, WindowResult]
    ) -> None:
        self.job, self.kit, self.sink, self.unit, self.have = job, kit, sink, unit, have
        self.describer: Describer[Any] = kit.describers[scale]
        self.grid = job.grid(kit, scale)
        self.again = _may_be_stale(self.describer, sink)
        self.entries: list[Entry] = []
        if job.speech and "speech" in self.describer.reads:
            self.entries = sorted(entries_of(sink, job.speech), key=lambda each: (each.span, each.entry_id))
        self.looks = self._due()
        self._open = {span.start_us: number for number, run in enumerate(chunks(self.grid)) for span in run}
        self._left: dict[int, int] = {}
        for span in self.looks:
            self._left[self._open[span.start_us]] = self._left.get(self._open[span.start_us], 0) + 1
        self._lock = threading.Lock()

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

    def write(self, result: WindowResult) -> None:
        """Hand a result over; the last one of a chunk seals it."""
        self.sink.write(self.unit, result)
        self.settle(result.span)

    def settle(self, span: Span) -> None:
        """Nothing is left to make of this window."""
        with self._lock:
            chunk = self._open[span.start_us]
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
        self._todo = list(reversed(self.grid))
        self._wanted = {span.start_us for span in self.looks}
        self._callers = self.kit.callers(self.describer)
        self._under_way: Future[WindowResult] | None = None
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._is_stopped = False
        self._is_going_on = False

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

    def _put(self, span: Span, frames: tuple[Frame, ...] | AssetError) -> None:
        with self._changed:
            self._frames[span.start_us] = frames
            self._go_on()
        if self._error:
            raise self._error

    def _go_on(self) -> None:
        """Begin the next window if none is under way and its frames are there. Holds ``_changed``."""
        if self._is_going_on:
            return  # a call that ended at once asks from inside the loop below, which goes on by itself
        self._is_going_on = True
        try:
            while self._todo and self._under_way is None and not self._is_stopped:
                if not self._begin(self._todo[-1]):
                    return
                self._todo.pop()
        finally:
            self._is_going_on = False

    def _begin(self, span: Span) -> bool:
        """Begin a window, or pass it by where it has a result; False: its frames have not come."""
        if span.start_us not in self._wanted:
            self._past = past_of(self.have[span.start_us]) or self._past
            return True
        if span.start_us not in self._frames:
            return False
        frames = self._frames.pop(span.start_us)
        future = self._callers.submit(partial(self._make, span, frames), behind=len(self._todo) - 1)
        self._under_way = future
        future.add_done_callback(self._done)
        return True

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
            raise RuntimeError(f"{self.job.path}: no frames came for the window {self._todo[-1]}")

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_stopped = True
            if self._under_way:
                self._under_way.cancel()
            self._changed.wait_for(lambda: self._under_way is None)
