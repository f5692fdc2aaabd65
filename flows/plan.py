"""What a request would make: counted from the catalog, before anything runs."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.transcribers.blocks import MAX_BLOCK_S
from evicat.catalog.windows import most_windows
from evicat.flows.request import Request
from evicat.schemas.asset import Asset
from evicat.schemas.grid import CHUNK_US, windows
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.model import Model
from evicat.schemas.naming import FileStamp
from evicat.schemas.span import US
from evicat.storage.store import Store
from evicat.storage.tables import DERIVED

if TYPE_CHECKING:
    from evicat.catalog.sources import Source


class PlannedWork(Model):
    """What one producer has left to do."""

    producer_id: str
    kind: str
    scale: str
    component: str
    units: int = 0
    windows: int = 0
    """Windows without an outcome; of shots and of speech, at most: cuts and silence are not known before."""
    calls: int = 0
    """Calls of the describer or transcriber; vectors and supports cost none of these."""
    tokens: int | None = 0
    """Prompt and completion, by the mean of what this component took per window with this model so far;
    None: it has a model, and has not run in this catalog."""


@dataclass
class WorkPlan:
    """The work of a request, by producer in the order in which it runs."""

    work: list[PlannedWork] = field(default_factory=list)
    assets: int = 0
    """Known assets for which something is left to make."""
    unchanged: int = 0
    """Known assets for which nothing is."""
    unknown: list[str] = field(default_factory=list)
    """Videos that are new, were written to, or could not be read and are retried: only a run can tell."""
    video_seconds: float = 0.0

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.work)


def plan_work(request: Request) -> WorkPlan:
    """Count what ``request`` has left to make of the assets that its catalog knows; nothing is written.

    Raises:
        UsageError: there is no such catalog, or the recipe cannot be loaded.
    """
    store = Store.connect(request.catalog, retry=request.retry)
    with Kit(request.recipe, request.profile) as kit:
        return _Planner(kit, store).plan(request.sources)


class _Planner:
    def __init__(self, kit: Kit, store: Store) -> None:
        self._kit, self._store = kit, store
        self._assets = {video.asset_id: video for video in store.videos()}
        rows = (
            store.reader()
            .dataset("units")
            .to_table(columns=["unit_id", "inputs_hash", "windows", "complete"])
        )
        self._done = {row["unit_id"]: row for row in rows.to_pylist()}
        self._work: dict[str, dict[str, int]] = defaultdict(lambda: {"units": 0, "windows": 0, "calls": 0})

    def plan(self, sources: list[Source]) -> WorkPlan:
        found, seen = WorkPlan(), set()
        for source in sources:
            asset_id = self._asset_id(source)
            if asset_id in seen:
                continue
            video = self._assets.get(asset_id or "")
            if video is None:
                found.unknown.append(source.name)
                continue
            seen.add(asset_id)
            if video.asset is None:
                if "failed" in self._store.retry:
                    found.unknown.append(source.name)
                continue  # it could not be read
            job = self._job(source, video.asset)
            if job.is_complete(self._kit, self._store):
                found.unchanged += 1
                continue
            found.assets += 1
            found.video_seconds += job.timeline.duration_us / US
            self._count(job)
        found.work = [self._planned(each) for each in self._kit.producers if each.producer_id in self._work]
        return found

    def _job(self, source: Source, asset: Asset) -> Job:
        return plan(
            asset,
            source.path,
            self._kit,
            subtitle=source.subtitle,
            subtitle_offset_us=source.subtitle_offset_us,
            language=source.language,
        )

    def _asset_id(self, source: Source) -> str | None:
        try:
            stamp = FileStamp.of(source.path.stat())
        except OSError:
            return None
        return self._store.known_asset_id(source.own_root.root_id, source.place, stamp, source.clip)

    def _count(self, job: Job) -> None:
        for unit in job.units:
            self._add(unit, self._windows(job, unit), is_call=True)
            embedding = job.embedding(self._kit, unit)
            if embedding:
                self._add(embedding, len(windows(job.asset.duration_us, CHUNK_US)), is_call=False)
        if job.support:
            self._add(job.support, 1, is_call=False)

    def _windows(self, job: Job, unit: Unit) -> int:
        if unit.kind != "speech":
            return most_windows(self._kit.scale(unit.scale), job.asset.duration_us)
        hears = job.track is None and job.asset.audio and self._kit.transcriber
        return math.ceil(job.asset.duration_us / US / MAX_BLOCK_S) if hears else 1

    def _add(self, unit: Unit, count: int, *, is_call: bool) -> None:
        if self._store.is_complete(unit):
            return
        row = self._done.get(unit.unit_id)
        if row and row["inputs_hash"] == unit.inputs_hash:
            due = sum(result.is_due(self._store.retry) for result in self._store.results(unit).values())
            count = due + (0 if row["complete"] else max(0, count - row["windows"]))
        counts = self._work[unit.producer_id]
        counts["units"] += 1
        counts["windows"] += count
        counts["calls"] += count if is_call else 0

    def _planned(self, producer: Producer) -> PlannedWork:
        counts = self._work[producer.producer_id]
        per_window = 0.0 if producer.model is None or producer.kind in DERIVED else self._tokens(producer)
        tokens = None if per_window is None else round(per_window * counts["windows"])
        facts = producer.model_dump(include={"kind", "scale", "component"})
        return PlannedWork(producer_id=producer.producer_id, tokens=tokens, **facts, **counts)

    def _tokens(self, producer: Producer) -> float | None:
        """Tokens per window that the component took in this catalog; None: it never ran."""
        reader = self._store.reader()
        columns = ["producer_id", "kind", "component", "model_name"]
        known = reader.dataset("producers").to_table(columns=columns).to_pylist()
        like = {each["producer_id"] for each in known if _same(each, producer)}
        units = reader.dataset("units").to_table(
            columns=["producer_id", "windows", "prompt_tokens", "completion_tokens"]
        )
        rows = [row for row in units.to_pylist() if row["producer_id"] in like]
        made = sum(row["windows"] for row in rows)
        return sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows) / made if made else None


def _same(row: dict[str, Any], producer: Producer) -> bool:
    model = producer.model.name if producer.model else ""
    return (row["kind"], row["component"], row["model_name"]) == (producer.kind, producer.component, model)
