"""`evicat plan` for 10,000 films of 70 minutes, of which nothing is made: 2.1 M windows, no film opened.

Twice: of films that the catalog knows (another recipe is planned), and of files that no catalog knows and
whose probes are remembered. Printed beside the walk through the files that both begin with, and with the
seconds of one core that it took. No bound holds, since it would be one of seconds; 5 s is what we want.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import library
from plan import FILMS, SECONDS, make, walk
from sides import keep

from evicat.catalog.sources import find
from evicat.flows import probes
from evicat.flows.plan import WorkPlan, plan_request, plan_work
from evicat.schemas.naming import FileStamp
from evicat.schemas.span import US

PROFILE = """
[engines."*"]
engine = "simulated"
prompt_tokens_per_second = 40000
output_tokens_per_second = 3000
"""
RECIPE = "cg-bench"


def remember(folder: Path) -> None:
    """Probes of all files, as an earlier plan has left them."""
    cache = probes.ProbeCache(folder / "probes.sqlite")
    for source in find([str(folder / "media")])[0]:
        asset = library.asset_of(source.path, SECONDS * US)
        stamp = FileStamp.of(source.path.stat())
        cache.put(probes.Probed(source, asset), stamp)
        cache.put_hash(source.path, stamp, asset.asset_id)  # all files are of one size here
    cache.close()


def planned(folder: Path, catalog: str) -> WorkPlan:
    request = plan_request([str(folder / "media")], catalog, RECIPE, str(folder / "profile.toml"))
    return plan_work(request)


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder,))
        maker.start()
        maker.join()
        assert maker.exitcode == 0, "the catalog could not be made"
        remember(folder)
        (folder / "profile.toml").write_text(PROFILE)
        probes.CACHE_FILE = str(folder / "probes.sqlite")

        opened: list[str] = []
        media = str(folder / "media")

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event == "open" and str(arguments[0]).startswith(media):
                opened.append(str(arguments[0]))

        sys.addaudithook(hook)
        for about, catalog in (("known", str(folder / "catalog")), ("probed before", "")):
            times, core = [], []
            for _ in range(3):
                started, cpu = time.perf_counter(), time.process_time()
                plan = planned(folder, catalog)
                times.append(time.perf_counter() - started)
                core.append(time.process_time() - cpu)
                assert plan.assets == FILMS, f"{plan.assets} of {FILMS} are planned"
            started = time.perf_counter()
            walk(folder / "media")
            walked_s = time.perf_counter() - started
            windows = sum(each.windows for each in plan.work if each.kind in ("local", "narrative"))
            median_s, core_s = statistics.median(times), statistics.median(core)
            print(
                f"planning {FILMS} films, {about}: {median_s:.2f} s, {core_s:.2f} s of one core "
                f"(walking them {walked_s:.2f} s); {windows} windows, {plan.tokens / 1e9:.2f} G tokens; "
                f"media files opened: {len(opened)}"
            )
            numbers = {"seconds": median_s, "core_seconds": core_s, "walk_seconds": walked_s}
            keep(f"planning ahead, {about}", numbers)
        assert not opened


if __name__ == "__main__":
    main()
