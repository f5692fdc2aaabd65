"""A file system that really fills up: the store says so, keeps what it has, and goes on in more room."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from evicat.schemas.errors import DiskFullError
from evicat.storage.store import Store


def _mount(*arguments: object) -> bool:
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder):
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(making, catalog: Path, *names: str) -> int:
    """Store 20 windows with long texts for each name, as far as they are missing; how many were made."""
    made = 0
    with Store.connect(catalog, write=True, create=True) as store:
        for name in names:
            unit = making.unit(name)
            have = store.open(unit)
            for window in range(20):
                if window * making.WINDOW_US not in have:
                    text = random.Random(f"{name} {window}").randbytes(4000).hex()  # nothing to compress
                    store.write(unit, making.done(unit, window, text))
                    made += 1
            store.close(unit, complete=True)
            store.commit(force=True)
    return made


@pytest.mark.slow
def test_a_disk_that_fills_up_loses_nothing_and_the_next_run_completes_equal(
    making, small_disk: Path, tmp_path: Path
) -> None:
    catalog, unbroken = small_disk / "catalog", tmp_path / "unbroken"
    names = [f"video {number}" for number in range(20)]
    with pytest.raises(DiskFullError, match=r"the disk is full: .* Free some space and run the same command"):
        _fill(making, catalog, *names)
    assert _mount("-o", "remount,size=64m", small_disk)
    assert 0 < _fill(making, catalog, *names) < 20 * len(names)
    assert _fill(making, catalog, *names) == 0
    assert _fill(making, unbroken, *names) == 20 * len(names)
    assert making.content(catalog)["entries"] == making.content(unbroken)["entries"]
