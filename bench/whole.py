"""The default recipe on real footage, end to end: real time over run time, and the memory of all processes.

Bounds: indexing takes at most a quarter of the film's length once models are loaded; all processes together
stay below 2.5 GB; at 60 min the peak is within 10 % of that at 10 min (`--long`, about 12 min of work).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

from media import real_film
from sides import end, keep

from evicat.catalog.build import build
from evicat.catalog.kit import Kit
from evicat.catalog.recipes import load_recipe
from evicat.schemas.recipe import Profile
from evicat.storage.store import Store

QUARTER = 0.25
MEMORY_GB = 2.5
GROWTH = 1.10


class Peak:
    """Largest sum of proportional memory of this process and its children, looked at ten times a second."""

    def __enter__(self) -> Peak:
        self.bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            own = [os.getpid(), *children(os.getpid())]
            self.bytes = max(self.bytes, sum(proportional_memory(pid) for pid in own))


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    direct = [int(child) for task in tasks for child in task.read_text().split()]
    return [*direct, *(each for child in direct for each in children(child))]


def proportional_memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def index(film: Path, catalog: Path, kit: Kit) -> tuple[float, int]:
    """Seconds and peak bytes of indexing ``film``."""
    with Peak() as peak, Store.connect(catalog, write=True, create=True) as store:
        started = time.perf_counter()
        build(film, kit, store)
        store.finish()
        return time.perf_counter() - started, peak.bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also 60 min, for the growth of memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Kit(load_recipe("default"), Profile()) as kit:
        folder = Path(name)
        films = {minutes: folder / f"{minutes}.mp4" for minutes in (1, 10, *([60] if options.long else []))}
        for minutes, film in films.items():
            real_film(film, minutes)
        index(films[1], folder / "warm", kit)  # loads the models
        seconds, peak = index(films[10], folder / "ten", kit)
        share = seconds / 600
        print(
            f"10 min of footage in {seconds:.1f} s: {1 / share:.1f} x real time; peak {peak / 1e9:.2f} GB",
            flush=True,
        )
        numbers = {"ratio": share, "bound": QUARTER, "ours_s": seconds, "peak_bytes": peak}
        keep("default recipe / real time", numbers)
        within = [share <= QUARTER, peak <= MEMORY_GB * 1e9]
        if options.long:
            _, long_peak = index(films[60], folder / "sixty", kit)
            growth = long_peak / peak
            print(f"peak at 60 min: {long_peak / 1e9:.2f} GB, {growth:.2f} of that at 10 min", flush=True)
            keep("peak at 60 min / at 10 min", {"ratio": growth, "bound": GROWTH, "peak_bytes": long_peak})
            within.append(growth <= GROWTH)
    end(*within)


if __name__ == "__main__":
    main()
