"""A library of two videos for each test, copied from one that was written once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .library import TEXTS, Library


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = Library(tmp_path_factory.mktemp("library") / "catalog")
    library.write("a.mp4", TEXTS)
    library.write("b.mp4", TEXTS[:2])
    return library.path


@pytest.fixture
def library(written: Path, tmp_path: Path) -> Library:
    made = Library.__new__(Library)
    made.path = Path(shutil.copytree(written, tmp_path / "catalog"))
    return made
