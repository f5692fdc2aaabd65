"""The tour that `make demo` takes: its three searches lead where they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "demo" / "demo.py"


@pytest.mark.slow
def test_the_tour_finds_speech_screen_text_and_what_is_seen(tmp_path: Path, evicat_samples: Path) -> None:
    command = [sys.executable, DEMO, "--samples", tmp_path / "samples", "--catalog", tmp_path / "catalog"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("$ evicat search") == 3
    assert "wrong:" not in done.stdout
