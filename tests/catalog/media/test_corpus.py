"""All media of these tests in one folder, indexed in one run: what is good is used, what is not is told."""

from __future__ import annotations

import os
import random
from pathlib import Path

import polars as pl
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.span import US

RECIPE = """
name = "corpus"
[[scales]]
kind = "local"
window_seconds = 10
describer = "sight"
frames = { per_window = 2, max_width = 64 }
options = { ocr_frames = 0 }
[[scales]]
kind = "narrative"
window_seconds = 60
describer = "digest"
[speech]
subtitles = "only"
"""
UNREADABLE = ("zero.mp4", "text.mp4", "rand.mp4", "half.mp4")


@pytest.mark.slow
def test_the_whole_corpus_in_one_run(make, recipes, evicat, tmp_path) -> None:
    folder = tmp_path / "media"
    folder.mkdir()
    for name in recipes:
        if Path(name).suffix not in {".jpg", ".srt"}:
            os.link(make(name), folder / name)
    (folder / "zero.mp4").touch()
    (folder / "text.mp4").write_text("not a film")
    (folder / "rand.mp4").write_bytes(random.Random(3).randbytes(4096))
    (folder / "half.mp4").write_bytes(make("src.mp4").read_bytes()[:9000])
    (tmp_path / "corpus.toml").write_text(RECIPE)
    run = evicat("index", folder, "--catalog", tmp_path / "c", "--recipe", tmp_path / "corpus.toml")
    assert run.code == 3, run.err
    catalog = Catalog.open(str(tmp_path / "c"))
    status = dict(catalog.videos().select("video", "status").iter_rows())
    assert {name for name, is_ in status.items() if is_ == "failed"} == set(UNREADABLE)
    for name in UNREADABLE:
        assert f"failed {name}: " in run.out
    assert set(status) == {path.name for path in folder.iterdir()}
    lengths = dict(catalog.videos().select("asset_id", "duration_s").iter_rows())
    entries = catalog.entries()
    beyond = entries.filter(pl.col("end_s") > pl.col("asset_id").replace_strict(lengths) + 1 / US)
    assert beyond.is_empty()
    assert not catalog.coverage().filter(pl.col("outcome") == "failed").height
    checked = evicat("status", "--check", "--catalog", tmp_path / "c")
    assert checked.code == 0, checked.out
