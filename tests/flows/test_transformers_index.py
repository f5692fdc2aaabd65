"""A tiny vision-language model in this process, through all of ``evicat index``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from evicat.catalog.query import Catalog

pytest.importorskip("llguidance", reason="the engine 'transformers' needs the package 'llguidance'")

RECIPE = """
name = "tiny"
[[scales]]
kind = "local"
window_seconds = 4
describer = "vlm-local"
frames = { per_window = 2, max_width = 64 }
options = { model = "lab/tiny-vl", max_tokens = 300 }
[[scales]]
kind = "narrative"
window_seconds = 4
describer = "vlm-narrative"
frames = { per_window = 2, max_width = 64 }
options = { model = "lab/tiny-vl", max_tokens = 300 }
"""
PROFILE = """
threads = 1
[models]
"lab/tiny-vl" = "{folder}"
[engines."lab/tiny-vl"]
engine = "{engine}"
concurrency = 4
"""


@pytest.fixture
def library(tmp_path: Path, colour_clips: dict[str, Path], tiny_vlm: Path) -> Path:
    shutil.copy(colour_clips["red"], tmp_path / "red.mp4")
    (tmp_path / "tiny.toml").write_text(RECIPE)
    (tmp_path / "p.toml").write_text(PROFILE.format(folder=tiny_vlm, engine="transformers"))
    return tmp_path


@pytest.fixture
def index(evicat, library):
    def run(*more: str):
        files = ("--recipe", "tiny.toml", "--profile", "p.toml")
        return evicat("index", "red.mp4", "-c", "c", *files, *more, cwd=library)

    return run


@pytest.mark.slow
def test_a_model_in_this_process_describes_a_clip_once_and_its_catalog_holds(index, evicat, library):
    first = index()
    assert first.code == 0, first.err
    catalog = Catalog.open(str(library / "c"))
    entries = catalog.entries()
    assert entries.group_by("kind").len().sort("kind").rows() == [("local", 2), ("narrative", 2)]
    scenes = [json.loads(record)["scene"] for record in entries.filter(kind="local")["record"]]
    assert all(scenes)
    assert catalog.coverage()["outcome"].to_list() == ["done"] * 4
    units = catalog.units()
    assert units["prompt_tokens"].min() > 500, "the prompts of four windows"
    assert units["completion_tokens"].min() > 10
    checked = evicat("status", "-c", "c", "--check", cwd=library)
    assert checked.code == 0, checked.out

    made = pl.DataFrame(entries).select("entry_id", "text")
    (library / "p.toml").write_text(PROFILE.format(folder=library / "gone", engine="transformers"))
    again = index()
    assert again.code == 0, "a run that has nothing to ask loads no weights"
    assert Catalog.open(str(library / "c")).entries().select("entry_id", "text").equals(made)
