"""How a promise of speed is measured: two sides, interleaved, medians, and their ratio."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("results.json")
PACKAGES = ("av", "faster-whisper", "lancedb", "pylance", "prefect", "sentence-transformers", "torch")


def compare(
    name: str,
    *,
    ours: Callable[[], object],
    other: Callable[[], object],
    bound: float,
    runs: int = 5,
    grace_s: float = 0.0,
) -> bool:
    """Run both sides in turn, ``runs`` times; print the ratio of their median seconds, and keep it.

    The first run of each side is not counted: it warms caches and loads what is loaded lazily.
    Returns whether ``ours / other`` is at most ``bound``; of ours ``grace_s`` seconds are not counted.
    """
    seconds: dict[str, list[float]] = {"ours": [], "other": []}
    for run in range(runs + 1):
        for side, call in (("ours", ours), ("other", other)):
            started = time.perf_counter()
            call()
            if run:
                seconds[side].append(time.perf_counter() - started)
    ours_s, other_s = (statistics.median(seconds[side]) for side in ("ours", "other"))
    ratio = max(0.0, ours_s - grace_s) / other_s
    verdict = "within" if ratio <= bound else "OVER"
    less = f" less {grace_s} s" if grace_s else ""
    print(f"{name}: {ours_s:.3f} s{less} / {other_s:.3f} s = {ratio:.2f} ({verdict} {bound})", flush=True)
    keep(name, {"ours_s": ours_s, "other_s": other_s, "ratio": ratio, "bound": bound, "runs": seconds})
    return ratio <= bound


def keep(name: str, numbers: Mapping[str, object]) -> None:
    """Put one measurement into ``bench/results.json``, in place of an earlier one of that name."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    machine = {
        "cpu_count": os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    versions = {package: version(package) for package in PACKAGES}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    load = os.getloadavg()[0]
    results[name] = dict(numbers) | {"when": when, "load": load, "machine": machine, "versions": versions}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def end(*within: bool) -> None:
    """Exit 1 where a bound was passed."""
    sys.exit(0 if all(within) else 1)
