"""Planning a library of which nothing changed: 10,000 films, 5 M windows. Bound: 3 x walking it, plus 0.3 s.

Planning is all from the request to the knowledge that nothing is left to make, as a run does it, without
Prefect. It opens no media file, and takes less than 500 MB.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
from pathlib import Path

import library
from sides import compare, end, keep

from evicat.catalog.job import plan
from evicat.catalog.kit import Kit
from evicat.catalog.media import subtitles
from evicat.catalog.recipes import load_recipe
from evicat.catalog.sources import find
from evicat.flows.library import Library, alike
from evicat.flows.request import Request
from evicat.schemas.asset import Asset
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US
from evicat.storage.store import Store

FILMS = 10_000
SECONDS = 4_200
WINDOWS_S = {"speech": SECONDS, "local-10s": 10, "narrative-60s": 60}
GRACE_S = 0.3
PEAK_MB = 500


def make(folder: Path) -> None:
    """The library and its catalog; in a process of its own, since its memory is not what is measured."""
    library.put_files(folder / "media", FILMS)
    sources, _ = find([str(folder / "media")])
    assets = [library.asset_of(source.path, SECONDS * US) for source in sources]
    with Kit(load_recipe("default"), Profile()) as kit:
        layers = [library.Layer(each, WINDOWS_S[each.scale] * US) for each in kit.sources]
        layers += [
            library.Layer(embedding, WINDOWS_S[each.scale] * US, embeds=each)
            for each in kit.sources
            if (embedding := kit.embedding(each))
        ]
    library.write_catalog(folder / "catalog", assets, layers, sources)


def walk(media: Path) -> int:
    """Walk through a library and stat its files, with the least that Python needs for it."""
    seen = 0
    for folder, _, files in os.walk(media):
        for name in files:
            seen += os.stat(f"{folder}/{name}").st_size  # noqa: PTH116
    return seen


def planned(folder: Path) -> int:
    """How many videos of the library have nothing left to make."""
    subtitles._listing.cache_clear()  # else only the first run would list the folders
    request = Request.read([str(folder / "media")], str(folder / "catalog"), "default", None)
    with (
        Kit(request.recipe, request.profile) as kit,
        Store.connect(request.catalog, write=True) as store,
    ):
        for producer in kit.producers:
            store.add_producer(producer)
        known = Library(store)
        unchanged = 0
        for group in alike(request.sources):
            for source, identity in [(source, known.identify(source)) for source in group]:
                asset = known.asset(source, identity, _never)
                job = plan(asset, source.path, kit, subtitle=source.subtitle)
                unchanged += job.is_complete(kit, store)
        store.release()
    return unchanged


def _never(*_: object) -> Asset:
    raise AssertionError("a file was probed, though the catalog knows it")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder,))
        maker.start()
        maker.join()
        assert maker.exitcode == 0, "the catalog could not be made"

        opened: list[str] = []
        media = str(folder / "media")

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event == "open" and str(arguments[0]).startswith(media):
                opened.append(str(arguments[0]))

        sys.addaudithook(hook)
        unchanged = planned(folder)
        assert unchanged == FILMS, f"{unchanged} of {FILMS} are complete"
        within = compare(
            "planning an unchanged library / walking it",
            ours=lambda: planned(folder),
            other=lambda: walk(folder / "media"),
            bound=3.0,
            grace_s=GRACE_S,
        )
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"media files opened: {len(opened)} (0 wanted); peak memory: {peak_mb:.0f} MB (< {PEAK_MB})")
        memory = {"ratio": peak_mb / PEAK_MB, "bound": 1.0, "peak_mb": peak_mb}
        keep("planning an unchanged library, memory", memory)
        end(within, not opened, peak_mb < PEAK_MB)


if __name__ == "__main__":
    main()
