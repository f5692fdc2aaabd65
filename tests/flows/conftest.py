"""A library of real clips, indexed once by the command line, for all tests of this folder to read."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from prefect.testing.utilities import prefect_test_harness

from evicat.flows import cli
from evicat.storage.reader import Reader


@dataclass(frozen=True)
class Run:
    """What one call of the command line did."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """One Prefect server for all flows that these tests run in their own process."""
    with prefect_test_harness(server_startup_timeout=120):
        yield


def _evicat(*args: object, cwd: Path | None = None) -> Run:
    """Call the command line as its script does, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["evicat", *map(str, args)])
        patch.setenv("COLUMNS", "200")
        patch.chdir(cwd or Path.cwd())
        with pytest.raises(SystemExit) as end:
            cli.main()
    return Run(end.value.code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def evicat(prefect_server: None) -> Callable[..., Run]:
    """Calls the command line: ``evicat("status", "--catalog", uri)``."""
    return _evicat


EQUAL = "asset_id producer_id condition_id kind scale start_s end_s text record frames objects flags boundary"
"""What two catalogs built alike have in common; not vectors, timings, attempts and run ids."""


@pytest.fixture(scope="session")
def equal_part() -> Callable[[Path], pl.DataFrame]:
    """The compared columns of a catalog's entries, in order."""

    def read(catalog: Path) -> pl.DataFrame:
        entries = pl.from_arrow(Reader.open(catalog).dataset("entries").to_table())
        return entries.sort("entry_id").select("entry_id", *EQUAL.split())

    return read


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
def indexed(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Path:
    """The catalog of ``library`` by the default recipe."""
    catalog = tmp_path_factory.mktemp("indexed") / "catalog"
    command = [sys.executable, "-m", "evicat.flows.cli", "index", str(library), "--catalog", str(catalog)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # with a server of its own
    assert run.returncode == 0, run.stderr
    return catalog
