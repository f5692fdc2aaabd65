"""What all tests share: sample clips, ffmpeg, and an environment without model hubs and foreign servers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
PREFECT_HOME = pytest.StashKey[str]()

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
    }


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[PREFECT_HOME], ignore_errors=True)


@pytest.fixture(scope="session")
def evicat_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the clips of ``demo/samples.py``; what they show is in its docstring. Read only."""
    spec = importlib.util.spec_from_file_location("evicat_demo_samples", ROOT / "demo" / "samples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="session")
def ffmpeg() -> Path:
    """The ffmpeg binary that makes test media."""
    import imageio_ffmpeg

    return Path(imageio_ffmpeg.get_ffmpeg_exe())


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny Qwen3-VL with random weights. Read only."""
    file = ROOT / "tests" / "catalog" / "engines" / "tiny_vlm.py"
    spec = importlib.util.spec_from_file_location("evicat_tiny_vlm", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.save_tiny_vlm(tmp_path_factory.mktemp("tiny_vlm"))
