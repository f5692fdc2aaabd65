"""What all tests share: sample clips, ffmpeg, and an environment without model hubs and foreign servers."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from .calling import Run

PREFECT_HOME = pytest.StashKey[str]()
UNUSED_SERVICES = "SCHEDULER LATE_RUNS FOREMAN CANCELLATION_CLEANUP PAUSE_EXPIRATIONS TRIGGERS"
"""Of Prefect's server: what deployments and automations need, of which tests have none."""

# A deadline per example would be a timed assertion: it fails on a busy machine, not on a fault.
settings.register_profile("evicat", deadline=None)
settings.load_profile("evicat")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: models come from packages only, Prefect gets a home of its own."""
    home = config.stash[PREFECT_HOME] = tempfile.mkdtemp(prefix="evicat-prefect-")
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE"):
        os.environ.pop(name, None)
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": home,
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in UNUSED_SERVICES.split()},
        # Test processes share the cores: threads that spin while they wait for one another take from all.
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[PREFECT_HOME], ignore_errors=True)


@pytest.fixture(scope="session")
def evicat_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the clips of ``demo/samples.py``; what they show is in its docstring. Read only."""
    from .scripts import script

    return script("demo/samples.py").write_samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[str]:
    """One Prefect server for all flows that tests run, here or in a child; its address."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield PREFECT_API_URL.value()


@pytest.fixture(scope="session")
def evicat(prefect_server: str) -> Callable[..., Run]:
    """Calls the command line in this process: ``evicat("status", "--catalog", uri)``."""
    from . import calling

    return calling.evicat


@pytest.fixture(scope="session")
def ffmpeg() -> Path:
    """The ffmpeg binary that makes test media."""
    import imageio_ffmpeg

    return Path(imageio_ffmpeg.get_ffmpeg_exe())


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny Qwen3-VL with random weights. Read only."""
    from .catalog.engines.tiny_vlm import save_tiny_vlm

    return save_tiny_vlm(tmp_path_factory.mktemp("tiny_vlm"))


@pytest.fixture(scope="session")
def making() -> ModuleType:
    """The module that makes values to be stored."""
    from .storage import making

    return making
