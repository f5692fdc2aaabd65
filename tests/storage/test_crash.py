"""A process killed anywhere loses at most the window in flight, and the next run ends as an unbroken one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("crash_child.py")
WINDOWS = 2 * 7 * 3

FAILPOINTS = [
    ("pathlib:Path.mkdir", 4, "after"),
    ("pathlib:Path.mkdir", 5, "after"),
    ("evicat.storage.create:create_table", 4, "after"),
    ("evicat.storage.create:write_head", 1, "after"),
    ("evicat.storage.journal:Journal.append", 10, "before"),
    ("evicat.storage.staging:write_durably", 9, "before"),
    ("evicat.storage.journal:Journal.remove", 5, "before"),
    ("evicat.storage.units:OpenUnit.release", 2, "before"),
    ("evicat.storage.transact:Tables.replace", 4, "after"),
    ("evicat.storage.transact:create_table", 1, "after"),
    ("evicat.storage.transact:Tables.replace", 13, "after"),
    ("evicat.storage.commit:write_head", 2, "before"),
    ("evicat.storage.commit:write_head", 2, "after"),
    ("pathlib:PosixPath.unlink", 9, "after"),
    ("evicat.storage.indexes:_make_missing", 2, "after"),
]


@pytest.fixture(scope="module")
def child():
    """The child's module, to finish its work in this process."""
    from . import crash_child

    return crash_child


@pytest.fixture(scope="module")
def unbroken(child, making, tmp_path_factory):
    """Content of the catalog after a run that nobody killed."""
    catalog = tmp_path_factory.mktemp("unbroken") / "catalog"
    told = []
    child.work(catalog, told.append)
    assert len(told) == len(set(told)) == WINDOWS
    return making.content(catalog)


def start(catalog, *failpoint):
    command = [sys.executable, str(CHILD), str(catalog), *map(str, failpoint)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(child, catalog, durable):
    """Run again to the end; what was durable is not done again."""
    told = []
    child.work(catalog, told.append)
    assert not set(told) & set(durable)
    assert len(told) >= WINDOWS - len(durable) - 1, "at most the window in flight was durable unsaid"


@pytest.mark.parametrize("failpoint", FAILPOINTS, ids=lambda failpoint: "-".join(map(str, failpoint)))
def test_killed_at_a_failpoint(child, making, unbroken, tmp_path, failpoint):
    with start(tmp_path / "catalog", *failpoint) as process:
        output, _ = process.communicate()
    assert process.returncode == 9, "the failpoint was reached"
    durable = output.splitlines()
    assert len(durable) < WINDOWS or "indexes" in failpoint[0]
    finish(child, tmp_path / "catalog", durable)
    assert making.content(tmp_path / "catalog") == unbroken


@pytest.mark.parametrize("windows", [9, 33])
def test_killed_after_some_windows(child, making, unbroken, tmp_path, windows):
    with start(tmp_path / "catalog") as process:
        durable = [process.stdout.readline().strip() for _ in range(windows)]
        process.send_signal(signal.SIGKILL)
        durable += process.stdout.read().splitlines()
    assert process.returncode == -signal.SIGKILL
    finish(child, tmp_path / "catalog", durable)
    assert making.content(tmp_path / "catalog") == unbroken


def test_killed_again_and_again(child, making, unbroken, tmp_path):
    catalog, durable = tmp_path / "catalog", []
    for failpoint in (FAILPOINTS[4], FAILPOINTS[8], FAILPOINTS[13]):
        with start(catalog, *failpoint) as process:
            durable += process.communicate()[0].splitlines()
        assert process.returncode == 9
    assert len(durable) == len(set(durable))
    child.work(catalog, durable.append)
    assert len(durable) == len(set(durable))
    assert making.content(catalog) == unbroken
