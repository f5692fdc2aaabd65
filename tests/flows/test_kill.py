"""A run that is killed, and one that ends it, leave what an unbroken run leaves, and make no call twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from evicat.storage.reader import Reader

FULL = (Path(__file__).parents[2] / "catalog" / "recipes" / "default.toml").read_text()
"""With speech and vectors."""
RECIPE = """
name = "killed"
[[scales]]
kind = "local"
window_seconds = 1
describer = "sight"
frames = { per_window = 3, max_width = 320 }
[[scales]]
kind = "narrative"
window_seconds = 5
describer = "digest"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe_text", "clips", "stop_after"),
    [(RECIPE, ("street.mp4", "card.mp4"), 5), (FULL, ("interview.mp4", "street.mp4"), 2)],
)
def test_killed_and_run_again_equals_an_unbroken_run(
    evicat,
    equal_part,
    evicat_samples,
    prefect_server,
    tmp_path: Path,
    recipe_text: str,
    clips: tuple[str, ...],
    stop_after: int,
) -> None:
    recipe = tmp_path / "killed.toml"
    recipe.write_text(recipe_text)
    media = tmp_path / "media"
    media.mkdir()
    for name in clips:
        shutil.copy(evicat_samples / name, media / name)
    index = ("index", media, "--recipe", recipe, "--catalog")

    described = _kill_when_journalled([*index, tmp_path / "killed"], stop_after, prefect_server)
    assert described >= stop_after
    assert evicat(*index, tmp_path / "killed").code == 0
    assert evicat(*index, tmp_path / "unbroken").code == 0

    assert equal_part(tmp_path / "killed").equals(equal_part(tmp_path / "unbroken"))
    killed, unbroken = (_coverage(tmp_path / name) for name in ("killed", "unbroken"))
    assert killed.drop("run_id", "seconds").equals(unbroken.drop("run_id", "seconds"))
    first_run = killed["run_id"].value_counts().sort("count")
    assert killed["run_id"].n_unique() == 2, first_run
    again = killed.filter(pl.col("run_id") == killed["run_id"].max())
    assert len(again) <= len(killed) - described


def _processes_of(catalog: Path) -> list[str]:
    """Command lines of processes whose environment or arguments name this catalog's run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if str(catalog).encode() in environment:
            found.append((folder / "cmdline").read_bytes().decode().replace("\0", " "))
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_interrupted_or_killed_a_run_leaves_no_process_and_can_go_on(
    evicat, evicat_samples, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    """As from a terminal: Ctrl-C goes to the whole process group, kill -9 to one process."""
    recipe, catalog = tmp_path / "killed.toml", tmp_path / "catalog"
    recipe.write_text(RECIPE)
    film = evicat_samples / "street.mp4"
    command = [
        sys.executable,
        "-m",
        "evicat.flows.cli",
        "index",
        film,
        "--recipe",
        recipe,
        "--catalog",
        catalog,
    ]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=clean | {"EVICAT_TEST_RUN": str(catalog), "PREFECT_HOME": str(tmp_path / "prefect")},
        start_new_session=True,
    ) as process:
        while _journalled(catalog) < 3:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.005)
        (os.killpg if sent == signal.SIGINT else os.kill)(process.pid, sent)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == code, said
    assert "Traceback" not in said
    if sent == signal.SIGINT:
        assert "nothing is lost. Run the same command again to go on." in said
    deadline = time.monotonic() + 30
    while _processes_of(catalog) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _processes_of(catalog) == []
    assert evicat("index", film, "--recipe", recipe, "--catalog", catalog).code == 0


def _coverage(catalog: Path) -> pl.DataFrame:
    return pl.from_arrow(Reader.open(catalog).dataset("coverage").to_table()).sort("unit_id", "start_s")


def _kill_when_journalled(arguments: list[object], lines: int, server: str) -> int:
    """Start a run, SIGKILL it as soon as its journals hold that many results; how many they hold."""
    catalog = Path(str(arguments[-1]))
    with subprocess.Popen(
        [sys.executable, "-m", "evicat.flows.cli", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PREFECT_API_URL": server},
        start_new_session=True,
    ) as process:
        while _journalled(catalog) < lines:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    return _journalled(catalog)


def _journalled(catalog: Path) -> int:
    journals = list((catalog / "work" / "journal").glob("*.jsonl"))
    return sum(max(0, journal.read_bytes().count(b"\n") - 1) for journal in journals)
