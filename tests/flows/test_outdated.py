"""What changes an answer makes exactly its own producers run again; what does not, makes no call."""

from __future__ import annotations

import shutil

import polars as pl
import pytest

from evicat.catalog.kit import Kit
from evicat.catalog.query import Catalog
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.storage.reader import Reader


def _units(shelf) -> set[tuple[str, str]]:
    rows = Reader.open(shelf.catalog).dataset("units").to_table(columns=["unit_id", "scale"]).to_pylist()
    return {(row["unit_id"], row["scale"]) for row in rows}


LOCAL, NARRATIVE, SPEECH = "local-2s", "narrative-4s", "speech"
CHANGES = {
    "frames per window": ("per_window = 2", "per_window = 3", {LOCAL, NARRATIVE}),
    "resize": ("max_width = 64", "max_width = 32", {LOCAL, NARRATIVE}),
    "an option of the describer": ("ocr_frames = 0", "ocr_frames = 0, dark_below = 40", {LOCAL, NARRATIVE}),
    "window length": ("window_seconds = 2\n", "window_seconds = 1\n", {"local-1s", NARRATIVE}),
    "narrative window length": ("window_seconds = 4\n", "window_seconds = 8\n", {"narrative-8s"}),
    "where words come from": (
        'subtitles = "only"',
        'subtitles = "only"\nlanguages = ["de"]',
        {SPEECH, NARRATIVE},
    ),
}


@pytest.fixture
def shelf(rerun):
    rerun.put("film.mp4", "red")
    rerun.index()
    return rerun


@pytest.mark.slow
def test_each_change_of_the_recipe_makes_its_own_units_and_no_other(shelf) -> None:
    """One after the other on one catalog; back at the first recipe, all is there."""
    first = shelf.recipe.read_text()
    before = _units(shelf)
    assert {scale for _, scale in before} == {LOCAL, NARRATIVE, SPEECH}
    for what, (old, new, expected) in CHANGES.items():
        assert old in first
        shelf.recipe.write_text(first.replace(old, new, 1))
        shelf.index()
        after = _units(shelf)
        assert {scale for _, scale in after - before} == expected, what
        assert before <= after, "other producers' units stay"
        before = after
    shelf.recipe.write_text(first)
    assert shelf.made_by(shelf.index) == []


def test_other_bytes_make_all_units_of_that_film_and_none_of_another(shelf) -> None:
    shelf.put("other.mp4", "grey")
    shelf.index()
    before = _units(shelf)
    shutil.copy(shelf.clips["blue"], shelf.media / "film.mp4")
    made = shelf.made_by(shelf.index)
    assert len(made) == 4 + 2
    assert sorted(scale for _, scale in _units(shelf) - before) == [LOCAL, NARRATIVE, SPEECH]


@pytest.mark.parametrize(
    ("old", "new"),
    [('name = "rerun"', 'name = "renamed"'), ('name = "rerun"', 'name = "rerun"\ndescription = "Other."')],
)
def test_what_decides_no_result_makes_nothing(shelf, old: str, new: str) -> None:
    shelf.recipe.write_text(shelf.recipe.read_text().replace(old, new, 1))
    head = Reader.open(shelf.catalog).head
    assert shelf.made_by(shelf.index) == []
    assert Reader.open(shelf.catalog).head == head


def test_no_two_windows_share_an_answer(shelf) -> None:
    """Other pictures at the same times, asked for with the same options, get texts of their own."""
    shelf.put("other.mp4", "grey")
    shelf.index()
    calls = [call for call in shelf.calls if call[0] == "sight"]
    assert len(calls) == 2 * 4
    entries = Catalog.open(str(shelf.catalog)).entries(kind="local")
    assert entries["text"].n_unique() == 8
    assert entries.select(pl.struct("asset_id", "start_s").n_unique()).item() == 8


SPOKEN = """
name = "spoken"
[[scales]]
kind = "local"
window_seconds = 2
describer = "sight"
frames = { per_window = 2, max_width = 64 }
options = { ocr_frames = 0 }
[[scales]]
kind = "narrative"
window_seconds = 4
describer = "digest"
[speech]
subtitles = "never"
transcriber = "faster-whisper"
model = "packaged:whisper-tiny.en"
[embedder]
name = "sentence-transformers"
model = "packaged:all-MiniLM-L6-v2"
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('compute_type = "int8"', 'compute_type = "float32"', {"speech", "narrative"}),
        ('subtitles = "never"', 'subtitles = "first"', {"speech", "narrative"}),
        ("max_width = 64", "max_width = 32", {"local", "narrative"}),
    ],
)
def test_a_model_that_changes_changes_what_it_makes_and_what_reads_that(
    old: str, new: str, changed: set[str]
) -> None:
    first = SPOKEN.replace("[embedder]", 'compute_type = "int8"\n[embedder]')

    def ids(text: str) -> dict[str, str]:
        with Kit(parse_toml(Recipe, text, "spoken.toml"), Profile()) as kit:
            return {producer.kind: producer.producer_id for producer in kit.sources}

    before, after = ids(first), ids(first.replace(old, new, 1))
    assert {kind for kind in before if before[kind] != after[kind]} == changed
