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
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import asked
from asked import LOCAL_S, MODEL, NARRATIVE_S, asking, film, recipe
from sides import end, keep

from evicat.catalog.engines.base import ChatAnswer, ChatRequest
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
    Case(4, 24, "long answers", 14.0, WRITING),
    Case(4, 20, "long prompts", 8.0, READING),
    Case(16, 70, "long answers", 10.0, WRITING),
    Case(16, 70, "long prompts", 6.0, READING),
    Case(64, 420, "long answers", 5.0, WRITING),
    Case(64, 200, "long prompts", 4.0, READING),
]


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of one run: on the wall, all its work, its longest chain."""

    wall_s: float
    work_s: float
    chain_s: float


def ours(case: Case) -> Run:
    """The stage over all films, as a run does it."""
    chains = asked.Chains()
    with tempfile.TemporaryDirectory() as folder, asking(), Kit(recipe(), case.profile()) as kit:
        engine = kit.engine(MODEL)
        assert isinstance(engine, SimulatedEngine)

        with Store.connect(Path(folder) / "catalog", write=True, create=True) as store:
            made = [prepared(asset, kit, store) for asset in case.films()]
            asked.ON_ANSWER[:] = [chains]
            started = time.perf_counter()
            with ThreadPoolExecutor(kit.videos_at_once) as pool:
                list(pool.map(lambda job: see(job, kit, store), made))
            wall_s = time.perf_counter() - started
            asked.ON_ANSWER.clear()
        work_s = engine.spent.seconds / case.speed_up / case.slots
    return Run(wall_s, work_s, chains.longest(engine) / case.speed_up)


def prepared(asset: Asset, kit: Kit, store: Store) -> Job:
    """A film whose facts are known."""
    for producer in kit.producers:
        store.add_producer(producer)
    store.add_asset(asset)
    return plan(asset, Path("no-such-film.mp4"), kit)


class Bare:
    """Asks the same questions in the best order, with as little as that takes."""

    def __init__(self, case: Case) -> None:
        self._engine = SimulatedEngine(MODEL, case.profile().engines[MODEL.name], case.profile())
        self._ready: list[tuple[int, int, ChatRequest, list[Span]]] = []
        """Place, order, question, and the windows of its chain that come after it."""
        self._order = count()
        self._free = case.slots
        self._left = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._films = case.films()

    def run(self) -> float:
        """Its seconds."""
        started = time.perf_counter()
        for asset in self._films:
            for span in windows(asset.duration_us, LOCAL_S * US):
                self._add("local", span, "", [])
            chain = windows(asset.duration_us, NARRATIVE_S * US)
            self._left += len(chain) - 1
            self._add("narrative", chain[0], "", chain[1:])
        self._go_on()
        self._over.wait()
        seconds = time.perf_counter() - started
        self._engine.close()
        return seconds

    def _add(self, kind: str, span: Span, past: str, behind: list[Span]) -> None:
        request = asked.request(kind, span, frame_times(span, FRAMES[kind]), past)
        heapq.heappush(self._ready, (-len(behind), next(self._order), request, behind))
        self._left += 1

    def _go_on(self) -> None:
        while True:
            with self._lock:
                if not self._ready or not self._free:
                    return
                self._free -= 1
                _, _, request, behind = heapq.heappop(self._ready)
            self._engine.submit(request).add_done_callback(partial(self._done, behind))

    def _done(self, behind: list[Span], future: Future[ChatAnswer]) -> None:
        text = future.result().text
        with self._lock:
            self._free += 1
            self._left -= 1
            if behind:
                self._left -= 1  # it was counted with its chain
                past = NarrativeRecord.model_validate_json(text).narrative
                self._add("narrative", behind[0], past, behind[1:])
            if not self._left:
                self._over.set()
        self._go_on()


def measure(case: Case) -> bool:
    runs, bares = [], []
    for _ in range(RUNS):
        runs.append(ours(case))
        bares.append(Bare(case).run())
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
