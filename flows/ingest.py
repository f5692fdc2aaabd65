"""The Prefect flow that indexes a library.

Each video takes the stages of ``catalog/build.py``; each stage of each video is one Prefect task. Videos run
side by side in ``Kit.videos_at_once`` threads, the stages of one video in order, and no video waits for
another. Finished work is committed while the run goes on. A file that fails costs itself alone.
"""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar, cast

from prefect import Task, flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed
from prefect.utilities.annotations import quote

from evicat.catalog import build
from evicat.catalog.build import Stage
from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.sources import Source
from evicat.flows.library import Identity, Library, alike, doubts, failed_windows
from evicat.flows.limits import Gate, LimitReachedError, Limits
from evicat.flows.missing import mark_missing
from evicat.flows.request import Request
from evicat.flows.summary import Summary
from evicat.schemas.asset import Asset
from evicat.schemas.entry import WindowResult
from evicat.schemas.errors import (
    AssetError,
    BusyError,
    DiskFullError,
    EngineDownError,
    IntegrityError,
    UsageError,
)
from evicat.schemas.identity import Unit
from evicat.schemas.span import US
from evicat.storage.store import Store
from evicat.storage.tables import EMBEDDING, embedder_id

log = logging.getLogger(__name__)
T = TypeVar("T")
COMMIT_EVERY_SECONDS = 5.0
"""How often a run asks the store whether a commit is due."""
BUSY_SECONDS = 2.0
"""How long a run waits before it looks again at what another run holds."""
OLD_TEXT = "was written to; its old text is shown until this recipe is the active one, and run again"
Identified = tuple[Source, Identity]


class Observer(Protocol):
    """Whoever wants to watch a run. Called from several threads."""

    def planned(self, stage: str, seconds: float) -> None:
        """``seconds`` of video wait for this stage."""

    def advanced(self, stage: str, seconds: float) -> None:
        """A result for ``seconds`` of video arrived."""

    def told(self, text: str) -> None:
        """Something that a user should know while the run goes on."""


OBSERVER: ContextVar[Observer | None] = ContextVar("evicat_observer", default=None)
"""Set it before calling :func:`ingest` to watch the run from the same process."""


def tell(text: str) -> None:
    """Tell the observer, or the log where nobody observes."""
    observer = OBSERVER.get()
    if observer:
        observer.told(text)
    else:
        log.warning(text)


def _whole(value: T) -> T:
    """``value`` as a task parameter that Prefect hands on without looking into it."""
    return cast(T, quote(value))


@task(name="probe", task_run_name="probe {name}", cache_policy=NO_CACHE)
def _probe(name: str, source: Source, asset_id: str, size_bytes: int, kit: Kit) -> Asset:
    return build.probe(source.path, kit, asset_id, size_bytes, source_id=source.source_id, clip=source.clip)


def _as_task(stage: Stage) -> Task[[str, Job, Kit, Store], None]:
    label = stage.__name__

    @task(name=label, task_run_name=f"{label} {{name}}", cache_policy=NO_CACHE)
    def run(name: str, job: Job, kit: Kit, store: Store) -> None:
        stage(job, kit, store)

    return run


STAGES = [_as_task(stage) for stage in build.STAGES]


@flow(name="evicat-ingest", flow_run_name="ingest into {catalog}")
def ingest(
    paths: list[str],
    catalog: str,
    recipe: str = "default",
    profile: str | None = None,
    retry: list[str] | None = None,
    limits: Limits | None = None,
) -> State[Summary]:
    """Index every video that ``paths`` mean (files, folders, globs, manifests) into the catalog at a URI.

    ``retry`` names outcomes that are made again (``evicat.schemas.entry.RETRIES``). The run ends
    ``Completed``; its state is named ``FinishedWithFailures`` where something failed, and ``Stopped`` where
    a limit was reached. Its result is the :class:`Summary`, which is also published as a Markdown artifact.

    Raises:
        UsageError: the recipe, profile, manifest or catalog is wrong, or nothing was found at all.
    """
    request = Request.read(paths, catalog, recipe, profile, retry or ())
    return run_request(request, limits or Limits())


def run_request(request: Request, limits: Limits) -> State[Summary]:
    """Carry out a request inside a Prefect flow."""
    started = time.perf_counter()
    catalog = request.catalog
    summary = Summary(catalog=catalog, recipe=request.recipe.name, problems=request.problems)
    with (
        Kit(request.recipe, request.profile) as kit,
        _WatchedStore.connect(
            catalog,
            write=True,
            create=True,
            work_dir=request.profile.work_dir,
            run_id=flow_run.id or "",
            retry=request.retry,
        ) as store,
    ):
        store.check_files()
        _index(kit, store, summary, request, limits)
        summary.notes += _not_shown(kit, store, catalog)
    summary.wall_seconds = time.perf_counter() - started
    create_markdown_artifact(summary.markdown(), key="evicat-ingest", description=f"Indexed into {catalog}")
    name = "Stopped" if summary.stopped else "Completed" if summary.all_done else "FinishedWithFailures"
    return Completed(name=name, message=summary.headline(), data=summary)


def _not_shown(kit: Kit, store: Store, catalog: str) -> list[str]:
    """A note where the recipe's producers are not those that the default view shows."""
    view = store.view()
    hidden = [
        producer
        for producer in kit.producers
        if view.get((producer.kind, producer.scale)) not in (producer.producer_id, embedder_id(producer))
    ]
    if not hidden:
        return []
    ids = " ".join(
        dict.fromkeys(
            embedder_id(each)[:8] if each.kind == EMBEDDING else each.producer_id[:8] for each in hidden
        )
    )
    names = ", ".join(dict.fromkeys(f"{each.scale} by {each.component}" for each in hidden))
    where = shlex.quote(catalog)
    return [f"not shown yet: {names}; show them with: evicat activate {ids} --catalog {where}"]


def _index(kit: Kit, store: _WatchedStore, summary: Summary, request: Request, limits: Limits) -> None:
    """Index all sources; first the canary, if there is one, and the rest if it lives."""
    gate = Gate(limits)
    _Run(kit, store, summary, gate).index(request)
    if not gate.is_canary_through:
        return
    made, failed = summary.canary()
    verdict = f"canary: {made} windows made, {failed} of them failed"
    if failed * 2 > made:
        summary.notes.append(f"{verdict}; nothing else was begun")
        return
    tell(verdict)
    gate.lift_canary()
    summary.restart()
    _Run(kit, store, summary, gate).index(request)


class _StoppedError(Exception):
    """Another video met a fatal error, or the user stops the run; what is journalled waits for the next."""


class _WatchedStore(Store):
    """A store that tells of each result after it is durable."""

    on_result: Callable[[Unit, WindowResult], None]

    def write(self, unit: Unit, result: WindowResult) -> None:
        super().write(unit, result)
        self.on_result(unit, result)


class _Run:
    """One run over a library: what its threads share."""

    def __init__(self, kit: Kit, store: _WatchedStore, summary: Summary, gate: Gate) -> None:
        self.kit = kit
        self.gate = gate
        kit.admit = gate.admit
        self.store = store
        self.summary = summary
        self.observer = OBSERVER.get()
        self.library = Library(store)
        self.stop = threading.Event()
        self._remaining: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._ended: SimpleQueue[Future[None]] = SimpleQueue()
        self._running = 0
        self._complete: set[str] = set()
        self._busy: SimpleQueue[tuple[list[Identified], BusyError]] = SimpleQueue()
        store.on_result = self._on_result

    def index(self, request: Request) -> None:
        """Index all sources side by side; the first fatal error stops the others and is raised."""
        for producer in self.kit.producers:
            self.store.add_producer(producer)
        with ThreadPoolExecutor(self.kit.videos_at_once, thread_name_prefix="video") as pool:
            self._submit = partial(self._submit_to, pool)
            try:
                for group in alike(request.sources):
                    self._submit(self._group, group)
                self._wait()
                while not self._busy.empty() and not self.gate.reached:
                    self._take_turns()
                    self._wait()
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self._mark_missing(request)
        self.store.finish()
        self.summary.stopped = self.gate.reached
        writing = {producer.producer_id for producer in self.kit.sources}
        self.summary.earlier_failures = failed_windows(self.store, self._complete, writing)

    def _submit_to(self, pool: ThreadPoolExecutor, work: Callable[..., None], *arguments: object) -> None:
        with self._lock:
            self._running += 1
        pool.submit(copy_context().run, work, *arguments).add_done_callback(self._ended.put)

    def _wait(self) -> None:
        """Commit what is finished while the videos run."""
        while self._running:
            with suppress(Empty):
                self._ended.get(timeout=COMMIT_EVERY_SECONDS).result()
                with self._lock:
                    self._running -= 1
            self.store.commit()

    def _take_turns(self) -> None:
        """Another process works on what is left: wait a little, see what it has done, and try again."""
        waiting = [self._busy.get() for _ in range(self._busy.qsize())]
        tell(f"waiting for {len(waiting)} videos that another run works on ({waiting[0][1]})")
        if self.stop.wait(BUSY_SECONDS):
            raise _StoppedError
        self.store.refresh()
        for video, _ in waiting:
            self._submit(self._video, video)

    def _mark_missing(self, request: Request) -> None:
        missing = mark_missing(self.store, request.sources, request.roots)
        self.summary.missing += missing.names  # a canary has gone before, and has marked them
        self.summary.notes += missing.doubtful

    def _group(self, sources: list[Source]) -> None:
        """Files that may be copies: all are identified first, so that the same one of them always leads."""
        videos: dict[str, list[Identified]] = {}
        for source in sources:
            with self._one_only(source):
                identity = self.library.identify(source)
                videos.setdefault(identity.asset_id, []).append((source, identity))
        self.summary.add_copies(sum(len(video) - 1 for video in videos.values()))
        if len(videos) == 1:  # at once: nothing waits until all other files are hashed
            self._video(*videos.values())
            return
        for video in videos.values():
            self._submit(self._video, video)

    @contextmanager
    def _one_only(self, source: Source) -> Iterator[None]:
        """A file that fails costs itself alone."""
        if self.stop.is_set():
            raise _StoppedError
        try:
            yield
        except (AssetError, BusyError) as error:
            self.summary.add_failure(source.name, str(error))
        except (UsageError, EngineDownError, IntegrityError, DiskFullError, _StoppedError):
            raise
        except LimitReachedError:
            log.info("%s: left for the next run", source.name)
        except Exception as error:  # one video must not end the others; logged with its traceback
            log.exception("%s: unexpected error", source.name)
            self.summary.add_failure(source.name, f"unexpected {type(error).__name__}: {error}; see the log")

    def _video(self, video: list[Identified]) -> None:
        """Make what is missing of one asset, from the first of its files."""
        source, _ = video[0]
        if self.gate.reached:
            return
        with self._one_only(source):
            try:
                self._make(video)
            except BusyError as error:
                self._busy.put((video, error))
                return
            except AssetError:
                self._rename(video)
                raise
            self._rename(video)

    def _make(self, video: list[Identified]) -> None:
        source, identity = video[0]
        asset = self.library.asset(source, identity, self._probe)
        if doubt := doubts(source, asset):
            self.summary.add_warning(source.name, doubt)
        job = plan(
            asset,
            source.path,
            self.kit,
            subtitle=source.subtitle,
            subtitle_offset_us=source.subtitle_offset_us,
            language=source.language,
            places=self.library.places(asset.asset_id, [each.path for each, _ in video]),
        )
        if job.is_complete(self.kit, self.store):
            self._complete.add(asset.asset_id)
            self.summary.add_unchanged(source.name)
            return
        described = (*job.local.values(), *job.objects.values(), *job.narrative.values())
        if not all(map(self.store.is_complete, described)):
            self.kit.check()  # not earlier: a run that asks no model needs no server
        with self._watching(job):
            for stage in STAGES:
                stage(source.name, _whole(job), _whole(self.kit), _whole(self.store))
        self.summary.add_video(source.name, job.timeline.duration_us / US)

    def _rename(self, video: list[Identified]) -> None:
        """Let names stand for the new bytes, if the default view shows what was made of them."""
        view = self.store.view()
        made = [view.get((each.kind, each.scale)) == each.producer_id for each in self.kit.sources]
        for source, identity in video:
            if identity.naming and all(made):
                self.store.add_name(identity.naming)
            elif identity.naming:
                self.summary.add_warning(
                    source.name,
                    "was written to; its old text is shown until this recipe's is (evicat activate)",
                )

    def _probe(self, source: Source, asset_id: str, size_bytes: int) -> Asset:
        return _probe(source.name, _whole(source), asset_id, size_bytes, _whole(self.kit))

    @contextmanager
    def _watching(self, job: Job) -> Iterator[None]:
        """Tell the observer what this video is going to take, and in the end that it is through."""
        units = [*job.units, job.support, *(job.embedding(self.kit, unit) for unit in job.units)]
        missing = [unit for unit in units if unit and not self.store.is_complete(unit)]
        seconds = job.timeline.duration_us / US
        with self._lock:
            self._remaining.update({unit.unit_id: (unit.scale, seconds) for unit in missing})
        for unit in missing:
            self._tell("planned", unit.scale, seconds)
        try:
            yield
        finally:
            for unit in missing:
                scale, rest = self._remaining.pop(unit.unit_id)
                self._tell("advanced", scale, rest)

    def _on_result(self, unit: Unit, result: WindowResult) -> None:
        self.gate.count_further(result.attempts - 1 + result.further_calls)
        self.summary.add_result(unit, result)
        seconds = result.span.duration_us / US
        with self._lock:
            scale, rest = self._remaining.get(unit.unit_id, (unit.scale, 0.0))
            self._remaining[unit.unit_id] = (scale, rest - seconds)
        self._tell("advanced", scale, seconds)
        if self.stop.is_set():
            raise _StoppedError

    def _tell(self, what: str, scale: str, seconds: float) -> None:
        if self.observer:
            getattr(self.observer, what)(scale, seconds)
