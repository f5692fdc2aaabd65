"""What the tests of the store share."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from evicat.storage.create import create_catalog


@pytest.fixture(scope="session")
def making() -> ModuleType:
    """The module ``making.py`` beside this file."""
    spec = importlib.util.spec_from_file_location(
        "evicat_tests_making", Path(__file__).with_name("making.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
