"""Killed at any moment of its life, a catalog ends as if nothing had happened once the rest is done.

The moments are drawn by a seed from those of an unbroken life (``life_child.py``); another seed tries others:
``EVICAT_KILL_SEED=7 pytest tests/storage/test_kill_points.py``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evicat.storage.layout import Layout
from evicat.storage.reader import Reader
from evicat.storage.snapshots import check_content, reader_at, snapshots
from evicat.storage.tables import table_spec
from evicat.storage.transact import check_keys

CHILD = Path(__file__).with_name("life_child.py")
SEED = int(os.environ.get("EVICAT_KILL_SEED", "20260731"))
BY_ITSELF, BY_PARENT = 14, 6
"""So many children die at a point that Python sees, and so many while Lance writes."""
SIDE_BY_SIDE = 2
RUNS = [f"{'die' if run < BY_ITSELF else 'tell'}-{run}" for run in range(BY_ITSELF + BY_PARENT)]


@dataclass(frozen=True)
class Moment:
    """A point of a life by its number, and how long after it the parent kills; None: the child dies there."""

    number: int
    name: str
    delay_s: float | None = None

    def __str__(self) -> str:
        later = "" if self.delay_s is None else f", {self.delay_s * 1000:.1f} ms later"
        return f"seed {SEED}: before point {self.number} ({self.name}){later}"


@dataclass(frozen=True)
class Broken:
    """What the test saw of a life that was killed once."""

    moment: Moment
    returncode: int
    made_before: list[str]
    made_after: list[str]
    state: dict[str, Any]


def start(catalog: Path, *order: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), str(catalog), f"{catalog}.json", *map(str, order)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def made(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("made ")]


def live_on(catalog: Path) -> list[str]:
    """What is not done yet, in a new process; which windows that made."""
    with start(catalog) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, f"{catalog} does not go on"
    return made(output)


def state(making, catalog: Path) -> dict[str, Any]:
    """All rows at the head, what the snapshots hold, and what still waits to be committed."""
    layout = Layout.of(catalog)
    manifests = snapshots(layout)
    for each in manifests:
        check_content(reader_at(catalog, each.name), each)
    folders = (layout.journals, layout.staged)
    return {
        "tables": making.content(catalog),
        "manifests": {
            each.name: (each.view, each.producers, each.rows, each.content_hash) for each in manifests
        },
        "snapshots": {each.name: rows_at(catalog, each.name) for each in manifests},
        "waiting": [path for folder in folders for path in folder.iterdir() if path.suffix != ".tmp"],
    }


def rows_at(catalog: Path, snapshot: str) -> list[str]:
    rows = reader_at(catalog, snapshot).dataset("entries").to_table(columns=["entry_id", "text"]).to_pylist()
    return sorted(f"{row['entry_id']} {row['text']}" for row in rows)


def check_head(catalog: Path) -> None:
    """What a reader meets right after the kill: whole tables without an id that stands twice."""
    reader = Reader.open(catalog)
    for name in reader.names():
        check_keys(name, reader.dataset(name).to_table(columns=list(table_spec(name).key)))


def break_once(making, catalog: Path, moment: Moment) -> Broken:
    order = ("die" if moment.delay_s is None else "tell", moment.number)
    with start(catalog, *order) as process:
        output = ""
        if moment.delay_s is not None:
            while not output.endswith("here\n"):
                line = process.stdout.readline()
                assert line, f"{moment}: the child ended before"
                output += line
            time.sleep(moment.delay_s)  # not to wait for anything: somewhere within what Lance does
            process.send_signal(signal.SIGKILL)
        output += process.communicate()[0]
    if Layout.of(catalog).marker.exists():
        check_head(catalog)
    return Broken(moment, process.returncode, made(output), live_on(catalog), state(making, catalog))


def drawn(points: list[tuple[str, float]]) -> list[Moment]:
    """Moments over the whole life: one from each of as many equal parts of it."""
    draw = random.Random(SEED)
    names = ["", *(name for name, _ in points)]
    lasts_s = [0.0, *(after - before for (_, before), (_, after) in pairwise(points))]
    by_lance = [number for number in range(1, len(points)) if names[number].startswith("lance ")]
    dying = [Moment(number, names[number]) for number in spread(draw, range(1, len(names)), BY_ITSELF)]
    killed = [
        Moment(number, names[number], draw.random() * lasts_s[number])
        for number in spread(draw, by_lance, BY_PARENT)
    ]
    return dying + killed


def spread(draw: random.Random, numbers: Sequence[int], count: int) -> list[int]:
    edges = [len(numbers) * part // count for part in range(count + 1)]
    return [numbers[draw.randrange(low, high)] for low, high in pairwise(edges)]


@pytest.fixture(scope="module")
def unbroken(making, tmp_path_factory) -> tuple[list[tuple[str, float]], list[str], dict[str, Any]]:
    """Of a life that nobody ends: its points, the windows that it makes, and what is there at its end."""
    catalog = tmp_path_factory.mktemp("unbroken") / "catalog"
    windows = live_on(catalog)
    points = json.loads(Path(f"{catalog}.json").read_text(encoding="utf-8"))
    return points, windows, state(making, catalog)


@pytest.fixture(scope="module")
def broken(making, unbroken, tmp_path_factory):
    """All lives that are killed once, by the name of their run; some run while others are looked at."""
    folder = tmp_path_factory.mktemp("killed")
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        runs: dict[str, Future[Broken]] = {
            run: pool.submit(break_once, making, folder / run, moment)
            for run, moment in zip(RUNS, drawn(unbroken[0]), strict=True)
        }
        yield runs
        for future in runs.values():
            future.cancel()


@pytest.mark.slow
def test_an_unbroken_life_shows_what_it_should(unbroken) -> None:
    points, windows, found = unbroken
    assert len(windows) == len(set(windows)) == 16
    kinds = {"write", "fsync", "os.rename", "os.remove", "flock", "lance commit", "lance compact_files"}
    assert kinds <= {name for name, _ in points}
    assert {row["producer_id"] for row in found["tables"]["entries"]} == {
        row["producer_id"] for row in found["tables"]["views"] if row["kind"] == "local"
    }
    assert [len(found["snapshots"][name]) for name in ("first", "last")] == [4, 4]
    assert set(found["snapshots"]["first"]).isdisjoint(found["snapshots"]["last"]), "one was retired"
    assert found["waiting"] == []


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_killed_once_it_ends_as_an_unbroken_life(unbroken, broken, run: str) -> None:
    _, windows, expected = unbroken
    found = broken[run].result()
    assert found.returncode == -signal.SIGKILL, found.moment
    assert not set(found.made_before) & set(found.made_after), f"{found.moment}: made twice"
    lost = set(windows) - set(found.made_before) - set(found.made_after)
    assert len(lost) <= 1, f"{found.moment}: only what was in flight may be durable and not told"
    assert found.state == expected, found.moment
