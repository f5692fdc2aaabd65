"""Describers without a model whose calls a test decides, a film of any length without a file, and a sink."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evicat.catalog.describers.base import Describer, Description, Reads, WindowInput
from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Wanted
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.entry import WindowResult
from evicat.schemas.identity import Unit
from evicat.schemas.model import Model
from evicat.schemas.recipe import Recipe, parse_toml
from evicat.schemas.records import LocalRecord, NarrativeRecord
from evicat.schemas.span import US

Call = Callable[[WindowInput], None]


class NoOptions(Model):
    """None."""


class Asking(Describer[NoOptions]):
    """Says when a window begins."""

    component = "asking"
    version = 1
    kind = "local"
    reads: ClassVar[frozenset[Reads]] = frozenset({"frames"})
    options_class = NoOptions
    slots_now: ClassVar[int] = 4
    on_call: ClassVar[Call]
    """Called with each window first; what it raises the describer raises."""

    @property
    def slots(self) -> int:
        return self.slots_now

    @property
    def served_by(self) -> object:
        return Asking

    def describe(self, window: WindowInput) -> Description:
        type(self).on_call(window)
        text = f"scene at {window.span.start_us // US}"
        return Description(LocalRecord(scene=text), text)


class Telling(Asking):
    """Says when a window begins, and what the narrative before it was."""

    component = "telling"
    kind = "narrative"
    reads: ClassVar[frozenset[Reads]] = frozenset({"frames", "past"})

    def describe(self, window: WindowInput) -> Description:
        type(self).on_call(window)
        past = window.past
        before = f"{past.span.start_us // US}-{past.span.end_us // US}" if past else "nothing"
        length = 1 + (len(past.narrative.split(" <- ")) if past else 0)
        text = f"{window.span.start_us // US} after {before}, number {length}"
        if past:
            text += f" <- {past.narrative.split(' <- ')[0]}"
        return Description(NarrativeRecord(narrative=text), text)


def recipe(*scales: tuple[str, float]) -> Recipe:
    """A recipe of describers with their window lengths."""
    kinds = {"asking": "local", "telling": "narrative"}
    parts = [
        f'[[scales]]\nkind = "{kinds[name]}"\nwindow_seconds = {seconds}\ndescriber = "{name}"\n'
        "frames = { per_window = 1, max_width = 16 }\n"
        for name, seconds in scales
    ]
    return parse_toml(Recipe, 'name = "test"\n' + "".join(parts), "test.toml")


def film(seconds: float, name: str = "a") -> Asset:
    """The facts of a film of this length; there is no file."""
    video = VideoFacts(
        stream_index=0,
        codec="h264",
        width=16,
        height=16,
        time_base="1/1000",
        origin_pts=0,
        frame_count=int(seconds * 25),
        average_rate=25.0,
    )
    return Asset(
        asset_id=(name * 32)[:32],
        source_id=name,
        size_bytes=1,
        container="mov,mp4",
        duration_us=round(seconds * US),
        origin_us=0,
        video=video,
        audio=None,
    )


def job_of(kit: Kit, asset: Asset) -> Job:
    return plan(asset, Path("no-such-film.mp4"), kit)


def tiny_frames(
    _pool: object, _path: Path, _asset: Asset, wanted: Sequence[Wanted], **_: Any
) -> Iterator[tuple[int, tuple[Frame, ...]]]:
    """In place of ``read_windows``: black frames, windows in the order in which they end."""
    image = np.zeros((16, 16, 3), np.uint8)
    for index in sorted(range(len(wanted)), key=lambda each: (wanted[each].span.end_us, each)):
        yield index, tuple(Frame(time // 1000, time, image) for time in wanted[index].times_us)


class Sink:
    """Fulfils ``Sink`` in memory; what is due is made again once, as by ``Store``."""

    def __init__(self, retry: frozenset[str] = frozenset()) -> None:
        self.retry = retry
        self.held: dict[str, dict[int, WindowResult]] = {}
        self.complete: set[str] = set()
        self.seals: list[tuple[str, int]] = []
        self.open_now: set[str] = set()
        self._lock = threading.Lock()

    def is_complete(self, unit: Unit) -> bool:
        due = any(each.is_due(self.retry) for each in self.held.get(unit.unit_id, {}).values())
        return unit.unit_id in self.complete and not due

    def open(self, unit: Unit) -> dict[int, WindowResult]:
        self.open_now.add(unit.unit_id)
        held = self.held.setdefault(unit.unit_id, {})
        return {at: each for at, each in held.items() if not each.is_due(self.retry)}

    def results(self, unit: Unit) -> dict[int, WindowResult]:
        return self.held.get(unit.unit_id, {})

    def write(self, unit: Unit, result: WindowResult) -> None:
        with self._lock:
            assert unit.unit_id in self.open_now, "nothing is written to a unit that was let go of"
            self.held[unit.unit_id][result.span.start_us] = result

    def seal(self, unit: Unit) -> None:
        with self._lock:
            self.seals.append((unit.scale, len(self.held[unit.unit_id])))

    def close(self, unit: Unit, *, complete: bool) -> None:
        self.open_now.remove(unit.unit_id)
        if complete:
            self.complete.add(unit.unit_id)

    def texts(self, unit: Unit) -> dict[int, str]:
        """What was written, by the second at which the window starts; ``-`` where it has no entry."""
        return {
            at // US: result.entries[0].text if result.entries else "-"
            for at, result in sorted(self.held[unit.unit_id].items())
        }

    def facts(self, unit: Unit) -> list[dict[str, Any]]:
        """All that must be equal between two builds."""
        return [
            each.model_dump(exclude={"seconds", "attempts"})
            for _, each in sorted(self.held[unit.unit_id].items())
        ]
