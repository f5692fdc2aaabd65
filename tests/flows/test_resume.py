"""A run that was killed, or that met a full disk, is completed by the next one, to the same tables."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from evicat.storage import head, journal, staging, transact
from evicat.storage.layout import Layout
from evicat.storage.reader import Reader

pytestmark = pytest.mark.slow
WINDOWS = 2 * (4 + 2)
"""Calls for two clips of 8 s: four local windows and two narratives each."""


def _two_films(library) -> None:
    library.put("a.mp4", "red")
    library.put("b.mp4", "blue")
    profile = library.folder / "one.toml"
    profile.write_text("videos_at_once = 1")
    library.profile = str(profile)


@pytest.fixture(scope="module")
def killed(new_rerun, tmp_path_factory):
    """A run that was killed before its ninth call: one film is staged, and two windows journalled."""
    library = new_rerun(tmp_path_factory.mktemp("killed"))
    _two_films(library)
    process = library.start_other(library.media, stop_at=9)
    said = [process.stdout.readline().strip() for _ in range(9)]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert said == [
        *["sight 0", "sight 2", "sight 4", "sight 6", "digest 0", "digest 4"],
        *said[:2],
        "waiting",
    ]
    library.index(catalog=library.folder / "unbroken")
    return library


@pytest.fixture
def layout(rerun, killed) -> Layout:
    """A copy of the killed catalog; ``rerun`` indexes the same films into it."""
    rerun.media, rerun.profile, rerun.catalog = killed.media, killed.profile, rerun.folder / "catalog"
    shutil.copytree(killed.catalog, rerun.catalog)
    return Layout.of(rerun.catalog)


def _nothing(layout: Layout) -> None: ...


def _lose_staged(layout: Layout) -> None:
    shutil.rmtree(layout.staged)


def _truncate_local_chunk(layout: Layout) -> None:
    chunk = max(layout.staged.glob("*.arrow"), key=lambda path: path.stat().st_size)
    os.truncate(chunk, chunk.stat().st_size // 2)


def _cut_journal(layout: Layout) -> None:
    (path,) = layout.journals.glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])


def _leave_locks(layout: Layout) -> None:
    holder = json.dumps({"pid": 1, "host": "gone"})
    claims = [layout.claims / f"{path.stem}.lock" for path in layout.journals.glob("*.jsonl")]
    for lock in [*claims, layout.commit_lock]:
        lock.write_text(holder)


@pytest.mark.parametrize(
    ("damage", "calls"),
    [
        (_nothing, WINDOWS - 8),
        (_lose_staged, WINDOWS - 2),
        (_truncate_local_chunk, WINDOWS - 8 + 4),
        (_cut_journal, WINDOWS - 8 + 1),
        (_leave_locks, WINDOWS - 8),
    ],
)
def test_killed_and_damaged_the_next_run_makes_what_is_missing_and_nothing_else(
    rerun, killed, layout, equal_part, damage: Callable[[Layout], None], calls: int
) -> None:
    damage(layout)
    assert len(rerun.made_by(rerun.index)) == calls
    assert equal_part(rerun.catalog).equals(equal_part(killed.folder / "unbroken"))
    assert rerun.made_by(rerun.index) == []
    status = {row["asset_id"]: row["status"] for row in _rows(rerun.catalog, "videos")}
    assert {row["asset_id"] for row in _rows(rerun.catalog, "entries")} == set(status)
    assert set(status.values()) == {"ok"}


def _rows(catalog: Path, table: str) -> list[dict]:
    return Reader.open(catalog).dataset(table).to_table().to_pylist()


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
FULL_LANCE = OSError("LanceError(IO): Generic LocalFileSystem error: No space left on device (os error 28)")


@pytest.mark.parametrize(
    ("owner", "name", "free", "error", "again"),
    [
        (journal, "_write_all", 3, FULL, 1),
        (staging, "write_durably", 12, FULL, 0),
        (transact.Tables, "replace", 0, FULL_LANCE, 0),
        (transact.Tables, "replace", 3, FULL_LANCE, 0),
        (head, "write_durably", 3, FULL, 0),
    ],
    ids=["journal", "stage", "commit", "between tables", "head"],
)
def test_a_full_disk_ends_the_run_with_advice_and_loses_nothing(
    rerun, killed, evicat, equal_part, monkeypatch, owner, name: str, free: int, error: OSError, again: int
) -> None:
    """``free``: so many writes of this kind still succeed; ``again``: windows in flight when it was full."""
    _two_films(rerun)
    real, left = getattr(owner, name), iter(range(free))

    def write(*arguments: object) -> object:
        if next(left, None) is None:
            raise error
        return real(*arguments)

    index = ("index", rerun.media, "--catalog", rerun.catalog, "--recipe", rerun.recipe)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, write)
        run = evicat(*index, "--profile", rerun.profile)
    said = " ".join(run.err.split())
    assert run.code == 3, said
    assert "DiskFull: the disk is full: " in said
    assert "Free some space and run the same command again" in said
    assert "Traceback" not in said
    assert evicat(*index).code == 0
    assert len(rerun.calls) == WINDOWS + again
    assert equal_part(rerun.catalog).equals(equal_part(killed.folder / "unbroken"))
