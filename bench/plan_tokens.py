"""What a plan says beforehand / what a run with the simulated engine then takes. Bound: 0.95 to 1.05.

A film of real footage and the sample clips, by recipes with dialogue, long windows and many frames. Planned
twice: of the whole before anything is made, and of the rest when one clip is made, by what that one took.
`--minutes` sets the length of the film.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import cast

from media import real_film, write_samples
from sides import end, keep

from evicat.catalog.build import build
from evicat.catalog.engines.simulated import SimulatedEngine
from evicat.catalog.kit import Kit
from evicat.flows import probes
from evicat.flows.plan import WorkPlan, plan_request, plan_work
from evicat.storage.store import Store

BOUND = 0.05
FIRST = "street.mp4"
SPEECH = '[speech]\nsubtitles = "first"\ntranscriber = "faster-whisper"\nmodel = "packaged:whisper-tiny.en"\n'
SHORT = (4, 8, 448, 30, 16, 448)
LONG = (30, 16, 448, 60, 16, 448)
LARGE = (10, 64, 1280, 60, 64, 1280)
PROFILE = '[engines."*"]\nengine = "simulated"\n'


def recipe(local_s: int, frames: int, width: int, narrative_s: int, told: int, told_width: int) -> str:
    return f"""
name = "trial"
[[scales]]
kind = "local"
window_seconds = {local_s}
describer = "vlm-local"
frames = {{ per_window = {frames}, max_width = {width} }}
options = {{ model = "m", dialogue = true, domain = "film" }}
[[scales]]
kind = "narrative"
window_seconds = {narrative_s}
describer = "vlm-narrative"
frames = {{ per_window = {told}, max_width = {told_width} }}
options = {{ model = "m" }}
{SPEECH}"""


def planned(folder: Path) -> WorkPlan:
    catalog, options = str(folder / "catalog"), (str(folder / "trial.toml"), str(folder / "profile.toml"))
    return plan_work(plan_request([str(folder / "media")], catalog, *options))


def taken(folder: Path, paths: list[Path]) -> tuple[int, int]:
    """Make what is left of these files; prompt and answer tokens that it took."""
    request = plan_request(
        [str(folder / "media")], "", *map(str, (folder / "trial.toml", folder / "profile.toml"))
    )
    with Kit(request.recipe, request.profile) as kit:
        with Store.connect(folder / "catalog", write=True, create=True) as store:
            for path in paths:
                build(path, kit, store)
        models = {each.model for each in kit.describers.values() if each.model}
        spent = [cast(SimulatedEngine, kit.engine(model)).spent for model in models]
    return sum(each.prompt_tokens for each in spent), sum(each.completion_tokens for each in spent)


def measure(folder: Path, name: str, text: str) -> bool:
    shutil.rmtree(folder / "catalog", ignore_errors=True)
    (folder / "trial.toml").write_text(text)
    paths = sorted(path for path in (folder / "media").iterdir())
    within = []
    whole = planned(folder)
    first = taken(folder, [folder / "media" / FIRST])
    rest = planned(folder)
    more = taken(folder, paths)
    used = first[0] + more[0], first[1] + more[1]
    for about, plan, (prompt, output) in (("all, before", whole, used), ("the rest, measured", rest, more)):
        said = sum(each.prompt_tokens for each in plan.work), sum(each.output_tokens for each in plan.work)
        ratio = sum(said) / (prompt + output)
        print(
            f"{name}, {about}: prompts {said[0]} / {prompt} = {said[0] / prompt:.3f}, "
            f"answers {said[1]} / {output} = {said[1] / output:.3f}, together {ratio:.3f}",
            flush=True,
        )
        numbers = {"ratio": ratio, "prompt_ratio": said[0] / prompt, "answer_ratio": said[1] / output}
        keep(f"planned / used tokens, {name}, {about}", numbers | {"bound": BOUND})
        within.append(abs(ratio - 1) <= BOUND)
    return all(within)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=10)
    minutes = parser.parse_args().minutes
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        probes.CACHE_FILE = str(folder / "probes.sqlite")
        (folder / "profile.toml").write_text(PROFILE)
        write_samples(folder / "media")
        (folder / "film").mkdir()
        real_film(folder / "film" / "film.mp4", minutes)
        shutil.move(folder / "film" / "film.mp4", folder / "media")
        made = {"4 s and 30 s": SHORT, "30 s and 60 s": LONG, "many large frames": LARGE}
        end(*[measure(folder, about, recipe(*numbers)) for about, numbers in made.items()])


if __name__ == "__main__":
    main()
