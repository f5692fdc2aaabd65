"""What the tests of the store share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evicat.storage.create import create_catalog


@pytest.fixture(scope="session")
def empty_catalog(tmp_path_factory) -> Path:
    """A catalog without rows, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "catalog"
    create_catalog(path)
    return path


@pytest.fixture
def catalog(empty_catalog, tmp_path) -> Path:
    """A catalog of one test's own."""
    return Path(shutil.copytree(empty_catalog, tmp_path / "catalog"))
