"""What a request would make, and what that is going to take: counted before anything runs.

No model runs, and nothing is written to a catalog. Files that no catalog knows are probed, which reads them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from evicat.catalog.describers.base import Expected
from evicat.catalog.estimate import SILENT, WORDS_PER_MINUTE, Dialogue, Estimate, likely_windows
from evicat.catalog.job import Job, plan
from evicat.catalog.recipes import load_profile, load_recipe
from evicat.catalog.sources import Source, find
from evicat.catalog.transcribers.blocks import MAX_BLOCK_S
from evicat.flows.library import Library
from evicat.flows.measured import Measured
from evicat.flows.plan_hours import Hours
from evicat.flows.plan_kit import PlanningKit
from evicat.flows.probes import look_at
from evicat.flows.request import Request
from evicat.schemas.asset import Asset
from evicat.schemas.entry import RETRIES
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.grid import CHUNK_US, count_windows
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.model import Model
from evicat.schemas.naming import FileStamp
from evicat.schemas.recipe import Recipe
from evicat.schemas.span import US
from evicat.storage.create import check_usable
from evicat.storage.layout import Layout
from evicat.storage.store import Store

BYTES_PER_ENTRY = 4_000
"""On disk, with its vector, its ledger rows and indexes, where a catalog has not told: as of `default`."""
Known = dict[str, tuple[Asset, list[Source]]]
"""Assets by their ids, each with the files that it has."""
Basis = Literal["", "formula", "measured", "assumed", "rate"]


class PlannedWork(Model):
    """What one producer has left to do, and what that is going to take."""

    producer_id: str
    kind: str
    scale: str
    component: str
    model: str
    units: int = 0
    windows: int = 0
    """Windows without an outcome. Of shots about so many: cuts are not known before. Of speech, blocks, and
    of vectors, chunks: at most."""
    calls: int = 0
    """Calls of the describer or transcriber; vectors, supports and subtitles cost none of these."""
    frames: int = 0
    """Frames that are shown."""
    prompt_tokens: int = 0
    prompt_basis: Basis = ""
    """``formula``: of ``catalog/tokens.py``; ``measured``: times what this producer really took by it."""
    output_tokens: int = 0
    output_basis: Basis = ""
    """``measured``: by what an answer of this component and model took in this catalog; else ``assumed``."""
    seconds: float | None = None
    """Of work: of an engine by its rate in the profile, of all else as measured. None: not known."""
    seconds_basis: Basis = ""
    gpu_hours: float | None = None


class WorkPlan(Model):
    """The work of a request, by producer in the order in which it runs."""

    catalog: str
    """Empty: a catalog that is still to be made."""
    recipe: str
    work: tuple[PlannedWork, ...] = ()
    assets: int = 0
    """Assets for which something is left to make."""
    unchanged: int = 0
    """Assets for which nothing is."""
    new: tuple[str, ...] = ()
    """Videos among those that the catalog does not know, or knows with other bytes."""
    unreadable: dict[str, str] = Field(default_factory=dict)
    """Video name -> why nothing can be made of it."""
    retried: tuple[str, ...] = ()
    """Videos that could not be read, and are tried again: only a run can tell what they take."""
    video_seconds: float = 0.0
    disk_bytes: int = 0
    disk_basis: Basis = ""
    wall_seconds: float | None = None
    """With all engines at work beside each other; None: not known of every producer."""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.work)

    @property
    def tokens(self) -> int:
        return sum(each.prompt_tokens + each.output_tokens for each in self.work)

    @property
    def has_work(self) -> bool:
        """Whether a run would make or try anything."""
        return bool(self.work or self.new or self.retried)


def plan_request(
    paths: list[str], catalog: str, recipe: str, profile: str | None, retry: Collection[str] = ()
) -> Request:
    """What ``evicat plan`` is asked for; ``catalog`` may be empty, or a place where none is so far.

    Unlike a request to run, it may name models that the profile does not say how to run.

    Raises:
        UsageError: recipe, profile, manifest or catalog is wrong, or no video was found at all.
    """
    for name in retry:
        if name not in RETRIES:
            raise UnknownNameError("outcome to retry", name, list(RETRIES))
    order = load_recipe(recipe), load_profile(profile)
    if catalog:
        check_usable(catalog)
    sources, problems = find(paths)
    if not sources:
        raise UsageError("; ".join(problems) or "no paths were given")
    return Request(sources, problems, catalog, *order, frozenset(retry))


def plan_work(request: Request, tell: Callable[[str], None] = lambda text: None) -> WorkPlan:
    """Count what ``request`` has left to make; nothing is written.

    ``tell`` hears how far it has come with files that have to be read.

    Raises:
        UsageError: the catalog is not one, or the recipe cannot be loaded.
    """
    has_catalog = bool(request.catalog) and Layout.of(request.catalog).marker.exists()
    store = Store.connect(request.catalog, retry=request.retry) if has_catalog else None
    kit = PlanningKit(request.recipe, request.profile)
    with kit:
        return _Planner(kit, store, request, tell).plan()


class _Nothing:
    """Answers as a catalog does that holds nothing."""

    retry: frozenset[str] = frozenset()

    def has(self, asset_id: str, inputs: Mapping[str, str]) -> bool:
        return False

    def is_complete(self, unit: Unit) -> bool:
        return False


@dataclass
class _Counts:
    """What one producer has left, as it is added up."""

    units: int = 0
    windows: int = 0
    calls: int = 0
    frames: float = 0
    prompt_tokens: float = 0
    output_tokens: float = 0
    video_seconds: float = 0
    longest: Expected = field(default_factory=Expected)
    """The most that one asset takes: windows that read their own past run one after another."""


class _Planner:
    def __init__(
        self, kit: PlanningKit, store: Store | None, request: Request, tell: Callable[[str], None]
    ) -> None:
        self._kit, self._store, self._request, self._tell = kit, store, request, tell
        self._sink: Any = store or _Nothing()
        self._library = Library(store) if store else None
        self._measured = Measured(store.reader()) if store else None
        self._unfinished = self._measured.unfinished() if self._measured else {}
        self._due = self._measured.due(request.retry) if self._measured else {}
        self._estimates = {
            scale.name: Estimate(kit.describers[scale.name], scale) for scale in request.recipe.scales
        }
        self._shot_seconds = self._known_shots(request.recipe)
        self._work: dict[str, _Counts] = defaultdict(_Counts)
        self._entries = 0.0
        self._assumed: set[str] = set()
        """Assets whose dialogue is assumed, where that matters."""
        self._warnings: list[str] = []
        self._found: dict[str, Any] = {"assets": 0, "unchanged": 0, "video_seconds": 0.0}

    def plan(self) -> WorkPlan:
        known, new, retried = self._sorted()
        unreadable: dict[str, str] = {}
        for found in self._look_at(new):
            if found.asset is None:
                unreadable[found.source.name] = found.error
            else:
                known.setdefault(found.asset.asset_id, (found.asset, []))[1].append(found.source)
        for asset, sources in known.values():
            self._count(self._job(asset, sources))
        work, hours = self._planned()
        return WorkPlan(
            catalog=self._request.catalog if self._store else "",
            recipe=self._request.recipe.name,
            work=tuple(work),
            new=tuple(source.name for source in new),
            unreadable=dict(sorted(unreadable.items())),
            retried=tuple(retried),
            problems=tuple(self._request.problems),
            wall_seconds=hours.wall_seconds,
            notes=(*self._warnings, *self._notes(), *hours.notes),
            **self._disk(),
            **self._found,
        )

    # Which files

    def _sorted(self) -> tuple[Known, list[Source], list[str]]:
        """Assets that the catalog knows, files that it does not, and names of those that are tried again."""
        videos = {video.asset_id: video for video in self._store.videos()} if self._store else {}
        known: Known = {}
        new, retried = [], []
        for source in self._request.sources:
            video = videos.get(self._asset_id(source) or "")
            if video is None:
                new.append(source)
            elif video.asset_id in known:
                known[video.asset_id][1].append(source)
            elif (asset := video.asset) is not None:
                known[video.asset_id] = asset, [source]
            elif "failed" in self._request.retry:
                retried.append(source.name)
        self._sizes = [video.size_bytes for video in videos.values()]
        return known, new, retried

    def _asset_id(self, source: Source) -> str | None:
        if self._store is None:
            return None
        try:
            stamp = FileStamp.of(source.path.stat())
        except OSError:
            return None
        return self._store.known_asset_id(source.own_root.root_id, source.place, stamp, source.clip)

    def _look_at(self, new: list[Source]) -> Any:
        return look_at(new, self._kit, self._sizes, self._tell, self._warnings.append) if new else ()

    def _job(self, asset: Asset, sources: list[Source]) -> Job:
        first, places = sources[0], sorted(source.path for source in sources)
        return plan(
            asset,
            first.path,
            self._kit,
            subtitle=first.subtitle,
            subtitle_offset_us=first.subtitle_offset_us,
            language=first.language,
            places=self._library.places(asset.asset_id, places) if self._library else places,
        )

    # What is left to make of one

    def _count(self, job: Job) -> None:
        if job.is_complete(self._kit, self._sink):
            self._found["unchanged"] += 1
            return
        self._found["assets"] += 1
        self._found["video_seconds"] += job.timeline.duration_us / US
        dialogue = self._dialogue(job)
        for unit in job.units:
            if unit.kind == "speech":
                self._count_speech(job, unit, dialogue)
            else:
                self._count_scale(job, unit, dialogue)
            embedding = job.embedding(self._kit, unit)
            if embedding:
                self._add(job, embedding, count_windows(job.asset.duration_us, CHUNK_US))
        if job.support:
            self._add(job, job.support, 1)

    def _count_speech(self, job: Job, unit: Unit, dialogue: Dialogue) -> None:
        hears = job.track is None and job.asset.audio and self._kit.transcriber
        blocks = math.ceil(job.asset.duration_us / US / MAX_BLOCK_S) if hears else 1
        left = self._add(job, unit, blocks)
        if left and hears:
            self._work[unit.producer_id].calls += left
        self._entries += dialogue.lines * left / blocks

    def _count_scale(self, job: Job, unit: Unit, dialogue: Dialogue) -> None:
        duration_us = job.asset.duration_us
        total = likely_windows(self._kit.scale(unit.scale), duration_us, self._shot_seconds.get(unit.scale))
        left = self._add(job, unit, total)
        if not left:
            return
        estimate, counts = self._estimates[unit.scale], self._work[unit.producer_id]
        whole, share = estimate.unit(job.asset, total, dialogue), left / total
        counts.calls += left
        counts.frames += share * whole.frames
        counts.prompt_tokens += share * whole.prompt_tokens
        counts.output_tokens += share * whole.output_tokens
        longest = Expected(share * whole.frames, share * whole.prompt_tokens, share * whole.output_tokens)
        counts.longest = max(counts.longest, longest, key=lambda each: each.output_tokens)
        self._entries += left
        if estimate.hears and whole.prompt_tokens and dialogue.is_assumed:
            self._assumed.add(job.asset.asset_id)

    def _add(self, job: Job, unit: Unit, total: int) -> int:
        """Count what is left of a unit that has ``total`` windows; how many those are."""
        left = 0 if self._sink.is_complete(unit) else self._left(unit, total)
        if not left:
            return 0
        counts = self._work[unit.producer_id]
        counts.units += 1
        counts.windows += left
        counts.video_seconds += job.asset.duration_us / US * (left / total if total else 0)
        return left

    def _left(self, unit: Unit, total: int) -> int:
        key = unit.asset_id, unit.producer_id
        if self._sink.has(unit.asset_id, {unit.producer_id: unit.inputs_hash}):
            return self._due.get(key, 0)  # all is made, and some of it is to be made again
        row = self._unfinished.get(key)
        if row is None or row["inputs_hash"] != unit.inputs_hash:
            return total
        return max(0, total - int(row["windows"])) + self._due.get(key, 0)

    def _dialogue(self, job: Job) -> Dialogue:
        if self._kit.speech is None or not self._hears:
            return SILENT
        known = self._measured.dialogue.get(job.asset.asset_id) if self._measured else None
        if known:
            return known
        can_hear = job.asset.audio and self._kit.transcriber
        return Dialogue.assumed(job.asset.duration_us) if job.track or can_hear else SILENT

    @property
    def _hears(self) -> bool:
        return any(estimate.hears for estimate in self._estimates.values())

    def _known_shots(self, recipe: Recipe) -> dict[str, float]:
        """Mean length of the shots of a scale, where the catalog has some."""
        found: dict[str, float] = {}
        if self._measured is None:
            return found
        for scale in recipe.scales:
            if scale.policy == "shots" and (
                seconds := self._measured.shot_seconds(self._producer(scale.name))
            ):
                found[scale.name] = seconds
        return found

    def _producer(self, scale: str) -> Producer:
        return next(each for each in self._kit.sources if each.scale == scale)

    # What that takes

    def _planned(self) -> tuple[list[PlannedWork], Hours]:
        hours = Hours(self._kit, self._measured)
        work = []
        for producer in self._kit.producers:
            counts = self._work.get(producer.producer_id)
            if counts is None:
                continue
            prompt_ratio, output_ratio, basis = self._ratios(producer, counts)
            prompt, output = counts.prompt_tokens * prompt_ratio, counts.output_tokens * output_ratio
            longest = counts.longest.prompt_tokens * prompt_ratio, counts.longest.output_tokens * output_ratio
            spent = hours.add(producer, counts.windows, counts.video_seconds, (prompt, output), longest)
            facts = producer.model_dump(include={"kind", "scale", "component"})
            work.append(
                PlannedWork(
                    **facts,
                    **basis,
                    producer_id=producer.producer_id,
                    model=producer.model.name if producer.model else "",
                    units=counts.units,
                    windows=counts.windows,
                    calls=counts.calls,
                    frames=round(counts.frames),
                    prompt_tokens=round(prompt),
                    output_tokens=round(output),
                    **spent,
                )
            )
        return work, hours

    def _ratios(self, producer: Producer, counts: _Counts) -> tuple[float, float, dict[str, Basis]]:
        """What to multiply expected tokens with, by what was measured; and what they go by then."""
        if not counts.prompt_tokens:
            return 1.0, 1.0, {}
        prompt, output = 1.0, 1.0
        basis: dict[str, Basis] = {"prompt_basis": "formula", "output_basis": "assumed"}
        taken = self._measured.of(producer) if self._measured else None
        if taken and taken.output_per_window:
            output = taken.output_per_window * counts.windows / counts.output_tokens
            basis["output_basis"] = "measured"
        estimate = self._estimates[producer.scale]
        if self._measured and (ratio := self._measured.prompt_ratio(producer, estimate)):
            prompt = ratio
            basis["prompt_basis"] = "measured"
        return prompt, output, basis

    def _disk(self) -> dict[str, Any]:
        measured = self._measured.bytes_per_entry() if self._measured else None
        return {
            "disk_bytes": round(self._entries * (measured or BYTES_PER_ENTRY)),
            "disk_basis": "measured" if measured else "assumed",
        }

    def _notes(self) -> list[str]:
        notes = [f"a run would not start here: {each}" for each in self._kit.missing]
        if self._assumed:
            notes.append(
                f"what is said in {len(self._assumed)} of the videos is not known: "
                f"{WORDS_PER_MINUTE} words a minute are assumed"
            )
        return notes
