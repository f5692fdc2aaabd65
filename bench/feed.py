"""Preparing pictures for models: seconds of video per second, against what a simulated engine takes.

Real footage, 640x360, the frames of a local and a narrative scale as in ``video-holmes``' caps: decoded,
scaled and packed as JPEG by the describers themselves, one film per core. Promise: at least 1.5 times what 8
slots take at the rates that are the simulated engine's defaults (4,000 tokens of prompt and 50 of answer a
second for each request). It also tells how many slots this machine could feed at that margin.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import media
from sides import end, keep

from evicat.catalog import build
from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.packed import PackedFrame
from evicat.catalog.engines.simulated import SimulatedEngine
from evicat.catalog.kit import Kit
from evicat.catalog.media.frames import Wanted, frame_times, read_windows
from evicat.catalog.media.identity import hash_file
from evicat.schemas.asset import Asset
from evicat.schemas.grid import windows
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile, Recipe, parse_toml
from evicat.schemas.span import US

MINUTES = 5
SLOTS = 8
MARGIN = 1.5
MODEL = "bench-model"
RECIPE = f"""
name = "bench"
[[scales]]
kind = "local"
window_seconds = 10
describer = "vlm-local"
frames = {{ per_window = 8, max_width = 448 }}
options = {{ model = "{MODEL}" }}
[[scales]]
kind = "narrative"
window_seconds = 60
describer = "vlm-narrative"
frames = {{ per_window = 16, max_width = 448 }}
options = {{ model = "{MODEL}" }}
"""


def prepare(kit: Kit, path: Path, asset: Asset) -> list[tuple[str, WindowInput]]:
    """Decode, scale and pack all windows of a film."""
    of_scale = [
        (scale, span)
        for scale in kit.recipe.scales
        for span in windows(asset.duration_us, scale.window_us or asset.duration_us)
    ]
    wanted = [
        Wanted(span, frame_times(span, scale.frames.per_window), scale.frames.max_width)
        for scale, span in of_scale
        if scale.frames
    ]
    made = []
    for index, frames in read_windows(kit.workers, path, asset, wanted, timeout_s=60):
        scale, span = of_scale[index]
        packed = kit.describers[scale.name].prepare(frames)
        made.append((scale.name, WindowInput(span, frames=packed)))
    return made


def films_in(folder: Path, count: int, kit: Kit) -> list[tuple[Path, Asset]]:
    """Copies of one film, with its facts."""
    first = folder / "0.mp4"
    media.real_film(first, MINUTES)
    paths = [first, *(Path(shutil.copy(first, folder / f"{number}.mp4")) for number in range(1, count))]
    return [(path, build.probe(path, kit, *hash_file(path))) for path in paths]


def slot_seconds(kit: Kit, shown: list[tuple[str, WindowInput]]) -> float:
    """How long one slot of the engine works for these windows."""
    for scale, window in shown:
        kit.describers[scale].describe(window)
    engine = kit.engine(ModelRef(name=MODEL))
    assert isinstance(engine, SimulatedEngine)
    return engine.spent.seconds


def main() -> None:
    at_once = os.cpu_count() or 1
    profile = Profile(engines={"*": ModelProfile(engine="simulated")})
    with tempfile.TemporaryDirectory() as name, Kit(parse_toml(Recipe, RECIPE, "bench"), profile) as kit:
        films = films_in(Path(name), at_once, kit)
        with ThreadPoolExecutor(at_once) as pool:
            shown, *_ = pool.map(lambda film: prepare(kit, *film), films)  # starts the processes, too
            started = time.perf_counter()
            list(pool.map(lambda film: prepare(kit, *film), films))
            wall_s = time.perf_counter() - started
        film_s = films[0][1].duration_us / US
        feeds, a_slot = at_once * film_s / wall_s, film_s / slot_seconds(kit, shown)
    takes = SLOTS * a_slot
    packed = [each for _, window in shown for each in window.frames if isinstance(each, PackedFrame)]
    window_kb = sum(len(frame.jpeg) for frame in packed) / len(shown) / 1000
    print(
        f"prepared {feeds:.0f} s of video a second, {at_once} films at once; {SLOTS} slots take {takes:.1f}: "
        f"{feeds / takes:.2f} times as much ({MARGIN} wanted)\n"
        f"  this machine feeds {feeds / MARGIN / a_slot:.0f} slots; a window waits with {window_kb:.0f} KB"
    )
    ratio, bound = takes / feeds, 1 / MARGIN
    keep("engine with 8 slots / preparing pictures", {"ratio": ratio, "bound": bound, "video_s_per_s": feeds})
    end(ratio <= bound)


if __name__ == "__main__":
    main()
