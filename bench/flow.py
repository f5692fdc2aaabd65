"""The Prefect flow over plain `build`: 50 films of at least 2 s of simulated work, 4 at a time. Bound: 1.05.

The work is a pause before the pass over the pictures; everything else is real. The start of the Prefect
server is not counted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import media  # noqa: F401  # puts demo/ on the path
import samples
from sides import compare, end

from evicat.catalog import seeing
from evicat.catalog.build import build
from evicat.catalog.kit import Kit
from evicat.catalog.media.frames import read_windows
from evicat.flows.engine import flow_server
from evicat.flows.request import Request
from evicat.storage.store import Store

FILMS = 50
WORK_S = 2.0
RECIPE = """
name = "bench"
[[scales]]
kind = "local"
window_seconds = 10
describer = "sight"
frames = { per_window = 2, max_width = 64 }
options = { ocr_frames = 0 }
"""
PROFILE = "videos_at_once = 4\n"


def working(*arguments: Any, **options: Any) -> Iterator[Any]:
    """The pass over the pictures, with the simulated work before it."""
    time.sleep(WORK_S)
    yield from read_windows(*arguments, **options)


def main() -> None:
    os.environ |= {"PREFECT_LOGGING_LEVEL": "CRITICAL", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    with tempfile.TemporaryDirectory() as name, flow_server(), patch.object(seeing, "read_windows", working):
        from evicat.flows.ingest import ingest

        folder = Path(name)
        samples.write_samples(folder / "samples")
        media, recipe, profile = folder / "media", folder / "bench.toml", folder / "profile.toml"
        media.mkdir()
        recipe.write_text(RECIPE)
        profile.write_text(PROFILE)
        phone = (folder / "samples" / "phone.mp4").read_bytes()
        for number in range(FILMS):
            (media / f"{number}.mp4").write_bytes(phone + number.to_bytes(8, "big"))

        def fresh() -> str:
            shutil.rmtree(folder / "catalog", ignore_errors=True)
            return str(folder / "catalog")

        def through_prefect() -> None:
            ingest([str(media)], fresh(), str(recipe), str(profile))

        def plain() -> None:
            request = Request.read([str(media)], fresh(), str(recipe), str(profile))
            with (
                Kit(request.recipe, request.profile) as kit,
                Store.connect(request.catalog, write=True, create=True) as store,
                ThreadPoolExecutor(4) as pool,
            ):
                list(pool.map(lambda source: build(source.path, kit, store), request.sources))

        end(compare("Prefect flow / plain build", ours=through_prefect, other=plain, bound=1.05))


if __name__ == "__main__":
    main()
