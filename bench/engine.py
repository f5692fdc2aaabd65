"""Scheduling of windows on a simulated engine: 20 films of uneven length, local and narrative scale together.

Two promises, for 4, 16 and 64 slots and two kinds of latency:

- wall time / what no schedule can beat: the larger of all work over all slots, and the longest chain. 1.05.
- wall time / a bare loop that asks the same questions, longest remaining chain first. 1.05.

Decoding is replaced by ready frames, the engine's clock runs fast; the stage, the queue of callers, the
describers, the journal and the store are real. The start of the store and its last commit are not counted.
"""

from __future__ import annotations

import heapq
import statistics
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import asked
from asked import LOCAL_S, MODEL, NARRATIVE_S, asking, film, recipe
from sides import end, keep

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.engines.base import ChatAnswer
from evicat.catalog.engines.simulated import SimulatedEngine
from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.frames import frame_times
from evicat.catalog.seeing import see
from evicat.schemas.asset import Asset
from evicat.schemas.grid import windows
from evicat.schemas.recipe import ModelProfile, Profile
from evicat.schemas.records import NarrativeRecord
from evicat.schemas.span import US, Span
from evicat.storage.store import Store

FILMS = 20
RUNS = 2
BOUND = 1.05
FRAMES = {"local": 8, "narrative": 16}


@dataclass(frozen=True, slots=True)
class Case:
    """So many slots; minutes of the films together; where the time goes; mean real seconds of a window."""

    slots: int
    minutes: int
    kind: str
    speed_up: float
    rates: dict[str, float]

    @property
    def name(self) -> str:
        return f"{self.slots} slots, {self.kind}"

    def profile(self) -> Profile:
        options = {"speed_up": self.speed_up, **self.rates}
        engine = ModelProfile(engine="simulated", concurrency=self.slots, options=options)
        return Profile(videos_at_once=FILMS, engines={MODEL.name: engine})

    def films(self) -> list[Asset]:
        """Uneven: the longest is some six times as long as the shortest. Longest first."""
        weights = [0.4 + 2.1 * (number / (FILMS - 1)) ** 2 for number in range(FILMS)]
        lengths = [self.minutes * 60 * weight / sum(weights) for weight in weights]
        return [film(str(number), length) for number, length in reversed(list(enumerate(lengths)))]


WRITING = {"prefill_tokens_per_second": 8_000.0, "decode_tokens_per_second": 50.0}
READING = {"prefill_tokens_per_second": 500.0, "decode_tokens_per_second": 400.0}
CASES = [
    Case(4, 30, "long answers", 20.0, WRITING),
    Case(4, 30, "long prompts", 12.0, READING),
    Case(16, 70, "long answers", 10.0, WRITING),
    Case(16, 70, "long prompts", 6.0, READING),
    Case(64, 240, "long answers", 4.0, WRITING),
    Case(64, 240, "long prompts", 2.5, READING),
]


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of one run: on the wall, all its work, its longest chain."""

    wall_s: float
    work_s: float
    chain_s: float


def ours(case: Case) -> Run:
    """The stage over all films, as a run does it."""
    chains: dict[str, float] = {}
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, asking(), Kit(recipe(), case.profile()) as kit:
        engine = kit.engine(MODEL)
        assert isinstance(engine, SimulatedEngine)

        def note(window: WindowInput, kind: str, answer: ChatAnswer) -> None:
            if kind == "narrative":
                film_of = str(window.frames[0].pts - window.frames[0].time_us)
                with lock:
                    chains[film_of] = chains.get(film_of, 0.0) + engine.seconds(answer) / case.speed_up

        with Store.connect(Path(folder) / "catalog", write=True, create=True) as store:
            made = [prepared(asset, kit, store) for asset in case.films()]
            asked.ON_ANSWER[:] = [note]
            started = time.perf_counter()
            with ThreadPoolExecutor(kit.videos_at_once) as pool:
                list(pool.map(lambda job: see(job, kit, store), made))
            wall_s = time.perf_counter() - started
            asked.ON_ANSWER.clear()
        work_s = engine.spent.seconds / case.speed_up / case.slots
    return Run(wall_s, work_s, max(chains.values()))


def prepared(asset: Asset, kit: Kit, store: Store) -> Job:
    """A film whose facts are known."""
    for producer in kit.producers:
        store.add_producer(producer)
    store.add_asset(asset)
    return plan(asset, Path("no-such-film.mp4"), kit)


def bare(case: Case) -> float:
    """The same questions in the best order, with as little as it takes; its seconds."""
    engine = SimulatedEngine(MODEL, case.profile().engines[MODEL.name])
    ready: list[tuple[int, int, Any]] = []
    order = count()
    done: list[Future[ChatAnswer]] = []
    lock = threading.Lock()
    free, left = [case.slots], [0]
    over = threading.Event()

    def go_on() -> None:
        while True:
            with lock:
                if not ready or not free[0]:
                    return
                free[0] -= 1
                _, _, (request, after) = heapq.heappop(ready)
            future = engine.submit(request)
            future.add_done_callback(lambda ended, after=after: ended_with(ended, after))
            done.append(future)

    def ended_with(future: Future[ChatAnswer], after: Any) -> None:
        text = future.result().text
        with lock:
            free[0] += 1
            left[0] -= 1
            if after:
                add_chain(*after, NarrativeRecord.model_validate_json(text).narrative)
            if not left[0]:
                over.set()
        go_on()

    def add_chain(spans: list[Span], past: str) -> None:
        if spans:
            request = asked.request("narrative", spans[0], frame_times(spans[0], FRAMES["narrative"]), past)
            heapq.heappush(ready, (-len(spans), next(order), (request, (spans[1:],))))

    started = time.perf_counter()
    for asset in case.films():
        for span in windows(asset.duration_us, LOCAL_S * US):
            request = asked.request("local", span, frame_times(span, FRAMES["local"]), "")
            heapq.heappush(ready, (0, next(order), (request, None)))
            left[0] += 1
        chain = windows(asset.duration_us, NARRATIVE_S * US)
        left[0] += len(chain)
        add_chain(chain, "")
    go_on()
    over.wait()
    wait(done)
    wall_s = time.perf_counter() - started
    engine.close()
    return wall_s


def measure(case: Case) -> bool:
    runs, bares = [], []
    for _ in range(RUNS):
        runs.append(ours(case))
        bares.append(bare(case))
    wall_s, bare_s = statistics.median(run.wall_s for run in runs), statistics.median(bares)
    least_s = max(runs[0].work_s, runs[0].chain_s)
    over_least, over_bare = wall_s / least_s, wall_s / bare_s
    print(
        f"{case.name}: {wall_s:.2f} s; work {runs[0].work_s:.2f} s, longest chain {runs[0].chain_s:.2f} s: "
        f"{over_least:.3f} of the larger; bare loop {bare_s:.2f} s: {over_bare:.3f} of it (bounds {BOUND})",
        flush=True,
    )
    seconds = {"ours": [run.wall_s for run in runs], "other": bares}
    numbers = {"ours_s": wall_s, "bound": BOUND, "runs": seconds}
    keep(f"scheduling / best possible, {case.name}", {**numbers, "other_s": least_s, "ratio": over_least})
    keep(f"scheduling / bare loop, {case.name}", {**numbers, "other_s": bare_s, "ratio": over_bare})
    return over_least <= BOUND and over_bare <= BOUND


def main() -> None:
    end(*[measure(case) for case in CASES])


if __name__ == "__main__":
    main()
