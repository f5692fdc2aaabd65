"""A library of real clips, indexed once by the command line, for all tests of this folder to read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL

from evicat.catalog.media.worker import WorkerPool
from evicat.storage.reader import Reader

from ..calling import Run


@pytest.fixture(scope="session", autouse=True)
def shared_probes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No probes of shared fixtures in the user's cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        file = tmp_path_factory.mktemp("cache") / "probes.sqlite"
        patch.setattr("evicat.flows.probes.CACHE_FILE", str(file))
        yield


@pytest.fixture(autouse=True)
def own_probes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test remembers its own probes."""
    file = tmp_path_factory.mktemp("cache") / "probes.sqlite"
    monkeypatch.setattr("evicat.flows.probes.CACHE_FILE", str(file))
    return file


class LastingPool(WorkerPool):
    """Leaves its idle children to the pools after it: a start takes longer than a short film."""

    left: ClassVar[list[Any]] = []

    def _take(self) -> Any:
        with self._lock:
            if not self._idle and self.left:
                self._idle.append(self.left.pop())
                self._all.update(self._idle)
        return super()._take()

    def close(self) -> None:
        with self._lock:
            self.left.extend(self._idle)
            self._all.difference_update(self._idle)
            self._idle = []
        super().close()


@pytest.fixture(scope="session", autouse=True)
def lasting_decoders() -> Iterator[None]:
    """Runs of these tests share the children that decode."""
    with pytest.MonkeyPatch.context() as patch:
        for user in ("evicat.catalog.kit", "evicat.flows.frames"):
            patch.setattr(f"{user}.WorkerPool", LastingPool)
        yield
    while LastingPool.left:
        LastingPool.left.pop().release()


EQUAL = "asset_id producer_id condition_id kind scale start_s end_s text record frames objects flags boundary"
"""What two catalogs built alike have in common; not vectors, timings, attempts and run ids."""


@pytest.fixture(scope="session")
def equal_part() -> Callable[[Path], pl.DataFrame]:
    """The compared columns of a catalog's entries, in order."""

    def read(catalog: Path) -> pl.DataFrame:
        entries = pl.from_arrow(Reader.open(catalog).dataset("entries").to_table())
        return entries.sort("entry_id").select("entry_id", *EQUAL.split())

    return read


RERUN_RECIPE = """
name = "rerun"
[[scales]]
kind = "local"
window_seconds = 2
describer = "sight"
frames = { per_window = 2, max_width = 64 }
options = { ocr_frames = 0 }
[[scales]]
kind = "narrative"
window_seconds = 4
describer = "digest"
[speech]
subtitles = "only"
"""
"""Loads no weights. Narratives read local entries and speech."""


@pytest.fixture(scope="session")
def colour_clips(tmp_path_factory: pytest.TempPathFactory, ffmpeg: Path) -> dict[str, Path]:
    """Clips of 8 s: a brown box on a colour that changes every 2 s, so that no two windows read alike."""
    folder = tmp_path_factory.mktemp("colours")
    orders = {
        "red": "red lime blue white",
        "blue": "blue orange lime black",
        "grey": "gray cyan magenta yellow",
    }
    box = "drawbox=x=8:y=8:w=30:h=24:color=brown:t=fill"
    for name, colours in orders.items():
        inputs = [["-f", "lavfi", "-i", f"color={one}:s=64x48:r=5:d=2,{box}"] for one in colours.split()]
        flat = [part for one in inputs for part in one]
        command = [ffmpeg, "-loglevel", "error", *flat, "-filter_complex", "concat=n=4", "-g", "5"]
        subprocess.run([*map(str, command), str(folder / f"{name}.mp4")], check=True)
    return {name: folder / f"{name}.mp4" for name in orders}


class Rerun:
    """A media folder, its catalog, and a count of what describers were called for."""

    def __init__(self, folder: Path, clips: dict[str, Path]) -> None:
        self.folder = folder
        self.media = folder / "media"
        self.media.mkdir(parents=True)
        self.clips = clips
        self.catalog = folder / "catalog"
        self.recipe = folder / "rerun.toml"
        self.recipe.write_text(RERUN_RECIPE)
        self.profile = ""
        self.calls: list[tuple[str, int]] = []
        self.failing: dict[tuple[str, int], Exception] = {}

    def put(self, name: str, clip: str = "red") -> Path:
        path = self.media / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(self.clips[clip], path))

    def index(self, *paths: Path, retry: tuple[str, ...] = (), catalog: Path | None = None, **limits: object):
        """Run the flow over the media folder, or over ``paths``; its summary."""
        from evicat.flows.ingest import ingest
        from evicat.flows.limits import Limits

        wanted = [str(path) for path in paths or [self.media]]
        where, profile = str(catalog or self.catalog), self.profile or None
        return ingest(wanted, where, str(self.recipe), profile, list(retry), Limits(**limits))

    def start_other(self, *paths: Path, stop_at: int) -> subprocess.Popen[str]:
        """Index ``paths`` in another process, which waits before its call number ``stop_at``."""
        child = Path(__file__).with_name("rerun_child.py")
        arguments = [self.recipe, self.profile, self.catalog, stop_at, *paths]
        return subprocess.Popen(
            [sys.executable, str(child), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PREFECT_API_URL": PREFECT_API_URL.value()},
            start_new_session=True,
        )

    def made_by(self, work: Callable[[], object]) -> list[tuple[str, int]]:
        """The calls that ``work`` makes: ``(component, start of the window in seconds)``."""
        before = len(self.calls)
        work()
        return sorted(self.calls[before:])

    def describe(self, component: str, real: Callable[..., object], window: object) -> object:
        key = component, window.span.start_us // 1_000_000
        self.calls.append(key)
        if key in self.failing:
            raise self.failing[key]
        return real(window)

    def texts(self, video: str) -> list[str]:
        """Local texts of a video in the default view."""
        from evicat.catalog.query import Catalog

        return Catalog.open(str(self.catalog)).entries(video, kind="local")["text"].to_list()

    def shown(self) -> set[str]:
        """Videos whose entries are in the default view."""
        from evicat.catalog.query import Catalog

        return set(Catalog.open(str(self.catalog)).entries()["video"])

    def coverage(self, catalog: Path | None = None) -> pl.DataFrame:
        rows = pl.from_arrow(Reader.open(catalog or self.catalog).dataset("coverage").to_table())
        return rows.sort("unit_id", "start_s")


@pytest.fixture(scope="session")
def new_rerun(prefect_server: str, colour_clips: dict[str, Path]) -> Callable[[Path], Rerun]:
    """Makes a library in a folder, for fixtures that many tests share; nothing is counted."""
    return lambda folder: Rerun(folder, colour_clips)


@pytest.fixture
def rerun(
    prefect_server: str,
    tmp_path: Path,
    colour_clips: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Rerun:
    """A library to index again and again, with describers that count their calls and fail where told to."""
    made = Rerun(tmp_path, colour_clips)
    _count_calls(made, monkeypatch)
    return made


@pytest.fixture(scope="session")
def count_calls() -> Callable[[Rerun, pytest.MonkeyPatch], None]:
    """Has describers count their calls for a library, and fail where it tells them, while the patch lasts."""
    return _count_calls


def _count_calls(made: Rerun, patch: pytest.MonkeyPatch) -> None:
    from evicat.catalog.describers.digest import Digest
    from evicat.catalog.describers.sight import Sight

    for kind in (Sight, Digest):
        real = kind.describe
        patch.setattr(
            kind,
            "describe",
            lambda self, window, real=real: made.describe(self.component, partial(real, self), window),
        )


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, evicat_samples: Path, ffmpeg: Path) -> Path:
    """Real pictures and real speech, in several containers and codecs, with and without sound."""
    folder = tmp_path_factory.mktemp("library")
    for name in ("card.mp4", "street.mp4", "interview.mp4", "conversation.wav"):
        shutil.copy(evicat_samples / name, folder / name)
    make = [str(ffmpeg), "-hide_banner", "-loglevel", "error", "-nostdin", "-y", "-i"]
    webm = [
        "-c:v",
        "libvpx-vp9",
        "-b:v",
        "200k",
        "-deadline",
        "realtime",
        "-cpu-used",
        "8",
        "-c:a",
        "libopus",
    ]
    subprocess.run([*make, str(evicat_samples / "bunny.mp4"), *webm, str(folder / "bunny.webm")], check=True)
    late = ["-c:v", "mpeg4", "-an", "-output_ts_offset", "7", str(folder / "phone.mkv")]
    subprocess.run([*make, str(evicat_samples / "phone.mp4"), *late], check=True)
    return folder


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory, library: Path, evicat: Callable[..., Run]) -> Path:
    """The catalog of ``library`` by the default recipe."""
    catalog = tmp_path_factory.mktemp("indexed") / "catalog"
    run = evicat("index", library, "--catalog", catalog)
    assert run.code == 0, run.err
    return catalog
