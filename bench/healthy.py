"""Probing and decoding a healthy film: now, against the code of an earlier commit.

    python bench/healthy.py --base PATH

``PATH`` is a checkout of that commit (``git worktree add --detach PATH 0bf04ad``), whose code runs in a
process of its own. What faulty files need must cost a healthy one at most 3 %. Each side times its own work,
in processor seconds of the whole process: they hardly depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from media import real_film
from sides import end, keep

MINUTES = 3
BOUND = 1.03
ROUNDS = 7
WORK = """
import sys, time
from pathlib import Path
from evicat.catalog.media.frames import Wanted, decode_windows, frame_times
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.schemas.grid import windows
import evicat.catalog.media.probe as used

path = Path(sys.argv[1])
assert Path(used.__file__).resolve().is_relative_to(Path(sys.argv[2]).resolve()), used.__file__
asset_id, size_bytes = hash_file(path)

def probed():
    return probe(path, asset_id=asset_id, size_bytes=size_bytes)

def decoded():
    looks = [
        Wanted(span, frame_times(span, count), 448)
        for seconds, count in ((4, 8), (30, 16))
        for span in windows(asset.duration_us, seconds * 1_000_000)
    ]
    return sum(len(frames) for _, frames in decode_windows(path, asset, looks))

asset = probed()
for work in (probed, decoded):
    started = time.process_time()
    work()
    print(time.process_time() - started)
"""
"""Prints the seconds of probing, then of decoding."""


def seconds(code: Path, film: Path) -> list[float]:
    """One round of the code below the checkout ``code``."""
    environment = os.environ | {"PYTHONPATH": str(code / ".typing")}
    command = [sys.executable, "-P", "-c", WORK, str(film), str(code)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="checkout of the earlier commit")
    base: Path = parser.parse_args().base
    ours = Path(__file__).parents[1]
    rounds: dict[str, list[list[float]]] = {"ours": [], "other": []}
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        real_film(film, MINUTES)
        for turn in range(ROUNDS + 1):
            for side, code in (("ours", ours), ("other", base)):
                found = seconds(code, film)
                if turn:
                    rounds[side].append(found)
    for part, name in enumerate(("probe", "decode")):
        ours_s, other_s = (statistics.median(each[part] for each in rounds[side]) for side in rounds)
        print(f"{name}: {ours_s:.3f} s / {other_s:.3f} s = {ours_s / other_s:.3f}", flush=True)
    ours_s, other_s = (statistics.median(map(sum, rounds[side])) for side in rounds)
    ratio = ours_s / other_s
    print(f"probe and decode: {ours_s:.3f} s / {other_s:.3f} s = {ratio:.3f} (bound {BOUND})", flush=True)
    numbers = {"ours_s": ours_s, "other_s": other_s, "ratio": ratio, "bound": BOUND}
    keep("probe and decode a healthy film / base", numbers)
    end(ratio <= BOUND)


if __name__ == "__main__":
    main()
