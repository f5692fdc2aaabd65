"""The Prefect flow over plain `build`: 50 films of at least 2 s of simulated work, 4 at a time. Bound: 1.05.

The work is a describer that sleeps; everything around it is real. Starting the Prefect server is not counted.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

from media import samples
from sides import compare, end

from evicat.catalog.build import build
from evicat.catalog.describers.base import Description
from evicat.catalog.describers.sight import Sight
from evicat.catalog.kit import Kit
from evicat.flows.engine import flow_server
from evicat.flows.request import Request
from evicat.schemas.records import LocalRecord
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


def sleeping(self: Sight, window: object) -> Description:
    time.sleep(WORK_S)
    return Description(LocalRecord(scene="A simulated scene."), "A simulated scene.")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, flow_server(), patch.object(Sight, "describe", sleeping):
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
