"""Indexing a tenth of a library anew, against indexing all of it. Bound: 0.15 (k % may cost k + 5 %).

Once one of ten scales changes, once a tenth of the files. Describing a window is a pause of fixed length; all
else is real, Prefect included. The start of its server is not counted.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import media  # noqa: F401  # puts demo/ on the path
import samples
from sides import end, keep

from evicat.catalog.describers.base import Description
from evicat.catalog.describers.sight import Sight
from evicat.flows.engine import flow_server
from evicat.schemas.records import LocalRecord

FILMS = 10
SCALES = 10
WORK_S = 0.5
"""As a small model takes for a window. What a film costs beside its windows (tasks, decoding, journal) is
some 0.3 s on a busy machine, so that with much shorter work the ratio would tell of that alone."""
RUNS = 1
BOUND = 0.15
HEAD = 'name = "bench"\n'
SCALE = """
[[scales]]
kind = "local"
window_seconds = {seconds}
describer = "sight"
frames = {{ per_window = {frames}, max_width = 64 }}
options = {{ ocr_frames = 0 }}
"""
PROFILE = "videos_at_once = 1\n"


def pause(*_: Any) -> Description:
    """What a describer does that takes its time."""
    time.sleep(WORK_S)
    return Description(LocalRecord(scene="A man talks in a car."), "A man talks in a car.")


def recipe(changed: bool) -> str:
    """Ten scales; ``changed``: the last of them shows other frames."""
    frames = [2] * (SCALES - 1) + [3 if changed else 2]
    return HEAD + "".join(SCALE.format(seconds=10 + n, frames=count) for n, count in enumerate(frames))


def main() -> None:
    os.environ |= {"PREFECT_LOGGING_LEVEL": "CRITICAL", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    with tempfile.TemporaryDirectory() as name, flow_server(), patch.object(Sight, "describe", pause):
        from evicat.flows.ingest import ingest

        folder = Path(name)
        samples.write_samples(folder / "samples")
        phone = (folder / "samples" / "phone.mp4").read_bytes()
        films = folder / "films"
        films.mkdir()
        (folder / "profile.toml").write_text(PROFILE)
        for changed in (False, True):
            (folder / f"{changed}.toml").write_text(recipe(changed))

        def put(number: int, version: int) -> None:
            (films / f"{number}.mp4").write_bytes(phone + bytes([number, version]))

        def index(changed: bool) -> tuple[float, int]:
            """Seconds, and windows made."""
            started = time.perf_counter()
            made: Any = ingest(
                [str(films)],
                str(folder / "catalog"),
                str(folder / f"{changed}.toml"),
                str(folder / "profile.toml"),
            )
            return time.perf_counter() - started, sum(made.outcomes.values())

        seconds: dict[str, list[float]] = {"all": [], "scale": [], "files": []}
        for run in range(RUNS + 1):
            shutil.rmtree(folder / "catalog", ignore_errors=True)
            for number in range(FILMS):
                put(number, run)
            steps = [("all", False, FILMS * SCALES), ("scale", True, FILMS)]
            for step, changed, windows in [*steps, ("files", True, FILMS // 10 * SCALES)]:
                if step == "files":
                    for number in range(FILMS // 10):
                        put(number, 100 + run)
                took, made = index(changed)
                assert made == windows, f"{step}: {made} windows were made, {windows} are right"
                if run:
                    seconds[step].append(took)
        end(*(judge(step, seconds) for step in ("scale", "files")))


def judge(step: str, seconds: dict[str, list[float]]) -> bool:
    ours_s, all_s = statistics.median(seconds[step]), statistics.median(seconds["all"])
    name = f"one of ten {'scales' if step == 'scale' else 'files'} anew / all"
    print(f"{name}: {ours_s:.2f} s / {all_s:.2f} s = {ours_s / all_s:.3f} (at most {BOUND})", flush=True)
    runs = {"ours": seconds[step], "other": seconds["all"]}
    keep(
        name,
        {"ours_s": ours_s, "other_s": all_s, "ratio": ours_s / all_s, "bound": BOUND, "runs": runs},
    )
    return ours_s <= BOUND * all_s


if __name__ == "__main__":
    main()
