"""The Prefect flow that indexes a library.

Each video takes the stages of ``catalog/build.py``; each stage of each video is one Prefect task. Videos run
side by side in ``profile.videos_at_once`` threads, the stages of one video in order, and no video waits for
another. Finished work is committed while the run goes on. A file that fails costs itself alone.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from typing import Protocol

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed, State

from evicat.catalog import build
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.recipes import load_profile, load_recipe
from evicat.catalog.sources import Source, find
from evicat.flows.summary import Summary
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError, IntegrityError, UsageError
from evicat.storage.store import Store

log = logging.getLogger(__name__)
COMMIT_EVERY_SECONDS = 5.0
"""How often a run asks the store whether a commit is due."""


class Observer(Protocol):
    """Whoever wants to watch a run. Called from several threads."""

    def planned(self, stage: str, seconds: float) -> None:
        """``seconds`` of video wait for this stage."""

    def advanced(self, stage: str, seconds: float) -> None:
        """A result for ``seconds`` of video arrived."""


OBSERVER: ContextVar[Observer | None] = ContextVar("evicat_observer", default=None)
"""Set it before calling :func:`ingest` to watch the run from the same process."""


@task(name="probe", task_run_name="probe {name}", cache_policy=NO_CACHE)
def _probe(name: str, source: Source, kit: Kit) -> Asset:
    return build.probe(source.path, kit, source_id=source.source_id, clip=source.clip)


@task(name="stage", task_run_name="{stage} {name}", cache_policy=NO_CACHE)
def _stage(stage: str, name: str, job: Job, kit: Kit, store: Store) -> None:
    getattr(build, stage)(job, kit, store)


@flow(name="evicat-ingest", flow_run_name="ingest into {catalog}", validate_parameters=True)
def ingest(
    paths: list[str], catalog: str, recipe: str = "default", profile: str | None = None
) -> State[Summary]:
    """Index every video that ``paths`` mean (files, folders, globs, manifests) into the catalog at a URI.

    The run's state is ``Completed``, named ``FinishedWithFailures`` where something failed; its result is
    the :class:`Summary`, which is also published as a Markdown artifact.

    Raises:
        UsageError: the recipe, profile, manifest or catalog is wrong, or nothing was found at all.
    """
    started = time.perf_counter()
    sources, problems = find(paths)
    if not sources:
        raise UsageError("; ".join(problems) or "no paths were given")
    with Kit(load_recipe(recipe), load_profile(profile)) as kit, Store.open(catalog, write=True) as store:
        summary = Summary(catalog=catalog, recipe=kit.recipe.name)
        for problem in problems:
            summary.add_failure(problem.split(": ")[-1], problem)
        _Run(kit, store, summary).index(sources)
    summary.wall_seconds = time.perf_counter() - started
    create_markdown_artifact(summary.markdown(), key="evicat-ingest", description=f"Indexed into {catalog}")
    if summary.all_done:
        return Completed(message=f"{len(summary.made)} videos indexed", data=summary)
    return Completed(
        name="FinishedWithFailures", message=f"{len(summary.failures)} videos failed", data=summary
    )


class _Run:
    """One run over a library: what its threads share."""

    def __init__(self, kit: Kit, store: Store, summary: Summary) -> None:
        self.kit = kit
        self.store = store
        self.summary = summary
        self.observer = OBSERVER.get()
        self.stop = threading.Event()
        self._taken: set[str] = set()
        self._lock = threading.Lock()
        store.on_write = self._on_write

    def index(self, sources: list[Source]) -> None:
        for producer in self.kit.sources:
            self.store.add_producer(producer)
        with ThreadPoolExecutor(self.kit.profile.videos_at_once, thread_name_prefix="video") as pool:
            futures = [pool.submit(copy_context().run, self._video, source) for source in sources]
            self._wait(futures)
        self.store.finish()

    def _wait(self, futures: list[Future[None]]) -> None:
        """Commit while the videos run; the first fatal error ends the run."""
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=COMMIT_EVERY_SECONDS, return_when="FIRST_COMPLETED")
                for future in done:
                    future.result()
                self.store.commit()
        except BaseException:
            self.stop.set()
            raise

    def _video(self, source: Source) -> None:
        if self.stop.is_set():
            return
        try:
            self._index_video(source)
        except AssetError as error:
            self.summary.add_failure(source.name, str(error))
        except (UsageError, IntegrityError):
            raise
        except Exception as error:  # one video must not end the others; the traceback is in the log
            log.exception("%s: unexpected error", source.name)
            self.summary.add_failure(source.name, f"unexpected {type(error).__name__}: {error}; see the log")
