"""A library of the size that the paper names, with a simulated engine in accelerated time.

    bench/scale.py                                            40 films, 10 h; 1, 8 and 64 engines (some 4 min)
    bench/scale.py --videos 10000 --hours 5000 --engines 64   the whole of it: 2.1 M windows (hours)

Real: the flow with Prefect, finding and hashing files, planning, the queue, checks of answers, journals,
group commits, indexes. Made up: the facts of the files (never opened as media), the frames, the answers; some
of these fail. Lengths are mixed: most films are short, few are long.

Each engine has 8 slots. The clock of the engines runs so fast that together they want ``--rate`` windows a
second, which is more than 64 real ones would. Of each run it tells:

- busy: the share of the slots' time in which they worked; and what the best schedule could reach at all,
  since the longest film's narratives take their time one after another;
- windows a second, wall time, peak memory, commits, size on disk;
- the time of questions to the catalog, and time and memory of a run that finds nothing left to make.

Nothing is bounded here: the numbers are kept in ``bench/results.json``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import asked
from library import put_files
from sides import keep

from evicat.catalog import build
from evicat.catalog.engines.simulated import SimulatedEngine
from evicat.schemas.asset import Asset
from evicat.storage.store import Store

SLOTS = 8
SECONDS_PER_CALL = 4.0
"""What one call takes on average by the clock of the engine, as measured; sets how fast that clock runs."""
FAULTS = "{ refused = 0.01, truncated = 0.01, broken_json = 0.01, rejected = 0.005, overloaded = 0.01 }"
QUESTIONS = 20


def lengths(videos: int, hours: float) -> list[int]:
    """Seconds of each film: log-normal, 2 min at least, none over four times the mean.

    In a small sample of a large library one very long film would be all that the run waits for.
    """
    draw = random.Random(7)
    weights = [min(4.0, draw.lognormvariate(0, 0.9) / 1.5) for _ in range(videos)]
    return [max(120, round(hours * 3600 * weight / sum(weights))) for weight in weights]


def profile(engines: int, rate: float, videos_at_once: int) -> str:
    slots = engines * SLOTS
    speed_up = rate * SECONDS_PER_CALL / slots
    return (
        f"videos_at_once = {videos_at_once}\n[engines.{asked.MODEL.name}]\n"
        f'engine = "simulated"\nconcurrency = {slots}\n'
        f"options = {{ speed_up = {speed_up}, faults = {FAULTS} }}\n"
    )


def index(folder: Path, catalog: Path, films: dict[str, int]) -> float:
    """One run of the flow; its seconds."""
    from evicat.flows.ingest import ingest

    def probe(path: Path, *_: object, **__: object) -> Asset:
        return films_facts(path, films)

    started = time.perf_counter()
    with patch.object(build, "probe", probe):
        ingest(
            [str(folder / "media")],
            str(catalog),
            str(folder / "bench.toml"),
            str(folder / "profile.toml"),
        )
    return time.perf_counter() - started


def films_facts(path: Path, films: dict[str, int]) -> Asset:
    """Facts of a film of its length under the identity of the file."""
    from evicat.catalog.media.identity import hash_file

    asset_id, size_bytes = hash_file(path)
    made = asked.film(path.name, films[path.name])
    return made.model_copy(update={"asset_id": asset_id, "source_id": asset_id, "size_bytes": size_bytes})


def in_child(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What ``work`` returns in a process of its own, with that process' peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        child = multiprocessing.get_context("spawn").Process(target=_child, args=(result, work, arguments))
        child.start()
        child.join()
        if child.exitcode:
            raise SystemExit(f"{work.__name__} ended with {child.exitcode}")
        found: dict[str, Any] = json.loads(result.read_text())
        return found


def _child(result: Path, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> None:
    from evicat.flows.engine import flow_server

    os.environ |= {"PREFECT_LOGGING_LEVEL": "CRITICAL", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    with flow_server(), asked.asking():
        found = work(*arguments)
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result.write_text(json.dumps(found))


def first_run(folder: Path, catalog: Path, films: dict[str, int]) -> dict[str, Any]:
    """Index the library."""
    chains = asked.Chains()
    asked.ON_ANSWER.append(chains)
    wall_s = index(folder, catalog, films)
    (engine,) = asked_engines()
    speed_up = engine.options.speed_up
    mean_s = engine.spent.seconds / engine.spent.requests
    with Store.connect(catalog) as store:
        units = store.reader().dataset("units").to_table().to_pylist()
        commits = store.head.number
    counts = {name: sum(unit[name] for unit in units) for name in ("windows", "done", "failed", "refused")}
    return counts | {
        "wall_s": wall_s,
        "slots": engine.slots,
        "speed_up": speed_up,
        "call_s": mean_s,
        "work_s": engine.spent.seconds / speed_up / engine.slots,
        "chain_s": chains.longest(engine) / speed_up,
        "commits": commits,
        "mb": sum(path.stat().st_size for path in catalog.rglob("*") if path.is_file()) / 2**20,
    }


def second_run(folder: Path, catalog: Path, films: dict[str, int]) -> dict[str, Any]:
    """A run that has nothing to make, and questions to the catalog."""
    from evicat.catalog.query import Catalog

    wall_s = index(folder, catalog, films)
    assert not asked_engines(), "a window was made twice"
    found = Catalog.open(str(catalog))
    video = found.videos()["video"][0]
    return {
        "wall_s": wall_s,
        "search_ms": _median_ms(lambda: found.search("simulated scene", limit=10)),
        "video_ms": _median_ms(lambda: found.entries(video, kind="narrative")),
        "units_ms": _median_ms(found.units),
    }


def asked_engines() -> list[SimulatedEngine]:
    """Engines of this process that were asked anything."""
    engines = {id(each): each for each in asked.ENGINES if isinstance(each, SimulatedEngine)}
    return [each for each in engines.values() if each.spent.requests]


def _median_ms(question: Callable[[], object]) -> float:
    took = []
    for _ in range(QUESTIONS):
        started = time.perf_counter()
        question()
        took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--videos", type=int, default=40)
    parser.add_argument("--hours", type=float, default=10.0)
    parser.add_argument(
        "--engines", type=int, nargs="+", default=[1, 8, 64], help="how many, one run for each"
    )
    parser.add_argument("--rate", type=float, default=150.0, help="windows a second that the engines want")
    parser.add_argument("--videos-at-once", type=int, default=32)
    asks = parser.parse_args()
    for engines in asks.engines:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            paths = put_files(folder / "media", asks.videos)
            long = lengths(asks.videos, asks.hours)
            films = {path.name: seconds for path, seconds in zip(paths, long, strict=True)}
            (folder / "bench.toml").write_text(asked.RECIPE)
            (folder / "profile.toml").write_text(profile(engines, asks.rate, asks.videos_at_once))
            made = in_child(first_run, folder, folder / "catalog", films)
            again = in_child(second_run, folder, folder / "catalog", films)
            report(engines, asks.videos, sum(long) / 3600, made, again)


def report(engines: int, videos: int, hours: float, made: dict[str, Any], again: dict[str, Any]) -> None:
    least_s = max(made["work_s"], made["chain_s"])
    busy, reachable = made["work_s"] / made["wall_s"], made["work_s"] / least_s
    print(
        f"{engines} engines ({made['slots']} slots, clock x {made['speed_up']:.1f}, "
        f"{made['call_s']:.1f} s a call), "
        f"{videos} films, {hours:.0f} h, {made['windows']} windows "
        f"({made['failed']} failed, {made['refused']} refused):\n"
        f"  {made['wall_s']:.1f} s, {made['windows'] / made['wall_s']:.0f} windows/s; "
        f"busy {busy:.0%} of the slots' time, {reachable:.0%} can be reached\n"
        f"  peak {made['peak_mb']:.0f} MB, {made['commits']} heads, {made['mb']:.0f} MB on disk\n"
        f"  search {again['search_ms']:.1f} ms, narratives of a film {again['video_ms']:.1f} ms, "
        f"units {again['units_ms']:.1f} ms\n"
        f"  again, with nothing to make: {again['wall_s']:.1f} s, peak {again['peak_mb']:.0f} MB",
        flush=True,
    )
    times = {"ours_s": made["wall_s"], "other_s": least_s, "ratio": made["wall_s"] / least_s, "bound": "none"}
    size = {"films": videos, "hours": hours, "busy": busy, "reachable": reachable}
    keep(f"library at scale / best possible, {engines} engines", times | size | {"run": made, "again": again})


if __name__ == "__main__":
    main()
