"""A short run over damaged files; ``run.py`` makes the long ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch):
    """The module ``run.py``."""
    folder = Path(__file__).parent
    monkeypatch.syspath_prepend(folder)
    spec = importlib.util.spec_from_file_location("evicat_fuzz_run", folder / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_damaged_files_cost_only_themselves(fuzz) -> None:
    tally = fuzz.run(first=0, cases=60)
    assert tally["cases"] == 60
    assert tally["probe: asset"] >= 20
    assert tally["probe: UnreadableMedia"] >= 5
    assert tally["timeline too long"] == 0
    assert not [what for what in tally if what.startswith("FAULT")]
    assert not [what for what in tally if "DecodeStalled" in what or "DecoderCrashed" in what]


def test_damage_is_always_alike(fuzz, tmp_path: Path) -> None:
    seeds = [tmp_path / "a.mp4", tmp_path / "b.mkv"]
    for number, seed in enumerate(seeds):
        seed.write_bytes(bytes(range(256)) * (20 + number))
    corpus = sys.modules["corpus"]
    once = [corpus.damaged(seeds, case, tmp_path).read_bytes() for case in range(50)]
    again = [corpus.damaged(seeds, case, tmp_path).read_bytes() for case in range(50)]
    assert once == again
    assert len(set(once)) > 45
