"""What ``evicat --help`` costs over an interpreter that does nothing: CPU seconds, at most 0.4 more.

CPU seconds (user and system) of the child process, not time on the clock: other processes do not count.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

from sides import end, keep

BOUND_S = 0.4
RUNS = 15
HELP = [sys.executable, "-m", "evicat.flows.cli", "--help"]
BARE = [sys.executable, "-c", "pass"]


def cpu_s(command: list[str]) -> float:
    """CPU seconds of a child process, with those of its own children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> None:
    seconds: dict[str, list[float]] = {"ours": [], "other": []}
    for run in range(RUNS + 1):
        for side, command in (("ours", HELP), ("other", BARE)):
            spent = cpu_s(command)
            if run:  # the first run of each side fills the caches
                seconds[side].append(spent)
    ours_s, other_s = (statistics.median(seconds[side]) for side in ("ours", "other"))
    over_s = ours_s - other_s
    name = "evicat --help over python -c pass, CPU"
    verdict = "within" if over_s <= BOUND_S else "OVER"
    print(f"{name}: {ours_s:.2f} s - {other_s:.2f} s = {over_s:.2f} s ({verdict} {BOUND_S} s)", flush=True)
    keep(name, {"ours_s": ours_s, "other_s": other_s, "over_s": over_s, "bound_s": BOUND_S, "runs": seconds})
    end(over_s <= BOUND_S)


if __name__ == "__main__":
    main()
