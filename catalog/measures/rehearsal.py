"""Describing stored windows once more, by the stages that made them; nothing is written to the catalog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evicat.catalog.describers.base import Describer, Description, Expected, WindowInput
from evicat.catalog.engines.base import Engine
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.media.frame import Frame
from evicat.catalog.media_files import MediaFiles
from evicat.catalog.query import Catalog
from evicat.catalog.seeing import see
from evicat.catalog.stages import narrate
from evicat.schemas.asset import Asset
from evicat.schemas.entry import WindowResult
from evicat.schemas.identity import ModelRef, Producer, Unit
from evicat.schemas.model import Model
from evicat.schemas.naming import Root, VideoName
from evicat.schemas.span import to_us

GREY = 128
Key = tuple[str, int]
"""A unit's id, and the start of a window in microseconds."""
Made = dict[Key, WindowResult]


class Blindfolded(Describer[Model]):
    """A describer that is shown grey frames, of the size and at the times of the window's."""

    def __init__(self, real: Describer[Any]) -> None:
        super().__init__(real.options, real.profile)
        self._real = real
        self.frames_per_window = real.frames_per_window
        self.reads = real.reads
        for name in ("component", "version", "kind", "options_class"):
            setattr(self, name, getattr(real, name))

    @property
    def model(self) -> ModelRef | None:
        return self._real.model

    @property
    def served_by(self) -> object:
        return self._real.served_by

    @property
    def slots(self) -> int:
        return self._real.slots

    def check(self) -> None:
        self._real.check()

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        self._real.bind(engines)

    def facts(self) -> dict[str, Any]:
        return self._real.facts()

    def expected(self, window: WindowInput) -> Expected:
        return self._real.expected(window)

    def prepare(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        return tuple(map(_grey, frames))

    def describe(self, window: WindowInput) -> Description:
        grey = (_grey(frame) for frame in window.frames)
        frames = tuple(replace(frame, image=frame.image.copy()) for frame in grey)
        return self._real.describe(replace(window, frames=frames))


def _grey(frame: Frame) -> Frame:
    """A grey frame in place of another; it takes no memory until it is written to."""
    return Frame(frame.pts, frame.time_us, np.broadcast_to(np.uint8(GREY), (frame.height, frame.width, 3)))


class RehearsalSink:
    """Holds what the catalog holds, but for the windows that are wanted anew; keeps those in memory."""

    retry: frozenset[str] = frozenset()

    def __init__(self, catalog: Catalog, wanted: Mapping[str, Collection[int]]) -> None:
        """``wanted``: by unit id, the starts of windows in microseconds."""
        self._catalog = catalog
        self._wanted = wanted
        self._lock = threading.Lock()
        self.made: Made = {}

    def is_complete(self, unit: Unit) -> bool:
        return unit.unit_id not in self._wanted

    def has(self, asset_id: str, inputs: Mapping[str, str]) -> bool:
        return False

    def results(self, unit: Unit) -> dict[int, WindowResult]:
        return self._catalog.stored(unit)

    def open(self, unit: Unit) -> dict[int, WindowResult]:
        wanted = self._wanted[unit.unit_id]
        return {start: result for start, result in self.results(unit).items() if start not in wanted}

    def write(self, unit: Unit, result: WindowResult) -> None:
        with self._lock:
            self.made[unit.unit_id, result.span.start_us] = result

    def add_producer(self, producer: Producer) -> None: ...

    def add_asset(self, asset: Asset) -> None: ...

    def add_root(self, root: Root) -> None: ...

    def add_name(self, name: VideoName) -> None: ...

    def seal(self, unit: Unit) -> None: ...

    def close(self, unit: Unit, *, complete: bool) -> None: ...


def rehearse(
    catalog: Catalog,
    kit: Kit,
    windows: pl.DataFrame,
    *,
    blank: bool = False,
    media_roots: Sequence[str | Path] = (),
) -> tuple[Made, list[str]]:
    """Describe ``windows`` (of :class:`.sample.Sample`) again, and what could not be: why.

    Args:
        blank: From grey frames in place of the windows' own.

    Raises:
        EngineDownError: a model cannot be reached.
        UsageError: a describer cannot work here.
    """
    kit.check()
    real = dict(kit.describers)
    if blank:
        kit.describers |= {name: Blindfolded(each) for name, each in real.items()}
    try:
        return _run(catalog, kit, windows, catalog.media_files(media_roots))
    finally:
        kit.describers |= real


def _run(catalog: Catalog, kit: Kit, windows: pl.DataFrame, files: MediaFiles) -> tuple[Made, list[str]]:
    made: Made = {}
    problems: list[str] = []
    parts = windows.partition_by("asset_id", maintain_order=True) if len(windows) else []
    inputs = _inputs(catalog, kit)
    with ThreadPoolExecutor(kit.videos_at_once, thread_name_prefix="rehearsal") as pool:
        for found, problem in pool.map(partial(_of_asset, catalog, kit, files, inputs), parts):
            made |= found
            problems += [problem] if problem else []
    return made, problems


def _of_asset(
    catalog: Catalog, kit: Kit, files: MediaFiles, inputs: Mapping[str, str], windows: pl.DataFrame
) -> tuple[Made, str]:
    asset_id, video = windows.select("asset_id", "video").row(0)
    asset = catalog.asset(asset_id)
    path = files.find(asset) if asset else None
    if asset is None or path is None:
        return {}, f"{video}: its file was not found; name the folder that holds it with --media-root"
    job = Job(path, asset, None, 0, None, inputs.get(asset_id, ""), kit)
    units = {unit.producer_id: unit for unit in job.units}
    wanted: dict[str, set[int]] = {}
    for producer_id, start_s in windows.select("producer_id", "start_s").iter_rows():
        wanted.setdefault(units[producer_id].unit_id, set()).add(to_us(start_s))
    outdated = [unit.scale for unit in units.values() if unit.unit_id in wanted and not catalog.stored(unit)]
    if outdated:
        return {}, f"{video}: what {', '.join(outdated)} read has changed since; index it again"
    sink = RehearsalSink(catalog, wanted)
    for stage in (see, narrate):
        stage(job, kit, sink)
    return sink.made, ""


def _inputs(catalog: Catalog, kit: Kit) -> dict[str, str]:
    """By asset, the hash of what its stored units read beside its bytes: of its speech, if it has any."""
    ours = [each.producer_id for each in kit.sources]
    units = catalog.units().filter(pl.col("producer_id").is_in(ours), pl.col("inputs_hash") != "")
    last = units.sort(pl.col("kind") == "speech", maintain_order=True)
    return dict(last.select("asset_id", "inputs_hash").iter_rows())
