"""Another recipe over the same videos: what differs is planned, made, and shown when the user says so."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from evicat.catalog.query import Catalog
from evicat.flows.plan import plan_work
from evicat.flows.reindex import catalog_request

RECIPE = """
name = "{name}"
[[scales]]
kind = "local"
window_seconds = {local}
describer = "sight"
frames = {{ per_window = {frames}, max_width = 96 }}
options = {{ ocr_frames = 0 }}
[[scales]]
kind = "narrative"
window_seconds = {narrative}
describer = "digest"
"""


def write_recipe(folder: Path, name: str, *, local=4, frames=2, narrative=8) -> Path:
    file = folder / f"{name}.toml"
    file.write_text(RECIPE.format(name=name, local=local, frames=frames, narrative=narrative))
    return file


def put_films(folder: Path, samples: Path) -> Path:
    folder.mkdir()
    for name in ("card.mp4", "phone.mp4"):
        shutil.copy(samples / name, folder)
    return folder


@pytest.fixture
def recipe(tmp_path):
    """Writes a recipe that differs from the others where it is told to."""
    return partial(write_recipe, tmp_path)


@pytest.fixture
def media(tmp_path, evicat_samples):
    return put_films(tmp_path / "media", evicat_samples)


@pytest.fixture
def catalog(evicat, recipe, media, tmp_path):
    assert evicat("index", media, "--catalog", tmp_path / "c", "--recipe", recipe("old")).code == 0
    return tmp_path / "c"


@pytest.fixture(scope="module")
def kept(evicat, evicat_samples, tmp_path_factory):
    """The same for tests that change nothing of it."""
    folder = tmp_path_factory.mktemp("kept")
    media = put_films(folder / "media", evicat_samples)
    run = evicat("index", media, "--catalog", folder / "c", "--recipe", write_recipe(folder, "old"))
    assert run.code == 0, run.err
    return folder / "c"


def planned(catalog: Path, recipe: Path) -> dict[str, int]:
    """Windows to make, by scale."""
    work = plan_work(catalog_request(str(catalog), str(recipe), None, [])).work
    return {each.scale: each.windows for each in work}


def test_the_same_recipe_plans_nothing(evicat, kept, recipe):
    assert planned(kept, recipe("old")) == {}
    run = evicat("reindex", "--catalog", kept, "--recipe", recipe("old"))
    assert run.code == 0
    assert "Nothing to make: 2 videos are complete." in run.out


def test_other_frames_change_the_scale_and_what_reads_it(kept, recipe):
    assert planned(kept, recipe("new", frames=3)) == {"local-4s": 3, "narrative-8s": 2}


def test_another_narrative_costs_no_local_call(kept, recipe):
    assert planned(kept, recipe("new", narrative=4)) == {"narrative-4s": 3}


def test_a_plan_touches_nothing(evicat, kept, recipe):
    before = sorted((path, path.stat().st_mtime_ns) for path in kept.rglob("*") if path.is_file())
    run = evicat("reindex", "--plan", "--catalog", kept, "--recipe", recipe("new", frames=3))
    assert run.code == 0
    assert "2 videos (" in run.out
    assert before == sorted((path, path.stat().st_mtime_ns) for path in kept.rglob("*") if path.is_file())


def test_what_was_planned_is_made_and_the_old_is_shown_until_told(evicat, catalog, recipe):
    old = Catalog.open(str(catalog)).entries()
    new = recipe("new", frames=3)
    plan = plan_work(catalog_request(str(catalog), str(new), None, []))
    run = evicat("reindex", "--catalog", catalog, "--recipe", new)
    assert run.code == 0
    assert "show them with: evicat activate" in run.out
    after = Catalog.open(str(catalog))
    assert after.entries().equals(old)
    for work in plan.work:
        made = after.units().filter(producer_id=work.producer_id)
        assert (len(made), made["windows"].sum()) == (work.units, work.windows)
        beside = after.entries(producer=work.producer_id)
        assert set(beside["video"]) == {"card.mp4", "phone.mp4"}


def test_videos_that_the_catalog_does_not_know_are_left_alone(evicat, catalog, recipe, media, evicat_samples):
    shutil.copy(evicat_samples / "globe.mp4", media)
    assert evicat("reindex", "--catalog", catalog, "--recipe", recipe("new", frames=3)).code == 0
    assert set(Catalog.open(str(catalog)).videos()["video"]) == {"card.mp4", "phone.mp4"}


def test_a_folder_out_of_reach_is_told(evicat, catalog, recipe, media):
    shutil.move(media, media.with_name("elsewhere"))
    run = evicat("reindex", "--catalog", catalog, "--recipe", recipe("new", frames=3))
    assert run.code == 2
    assert f"no such file, folder or pattern: {media}" in " ".join(run.err.split())
    assert len(Catalog.open(str(catalog)).videos()) == 2


def test_a_video_that_changed_is_made_though_all_else_is_complete(
    evicat, catalog, recipe, media, evicat_samples
):
    shutil.copy(evicat_samples / "globe.mp4", media / "card.mp4")
    before = Catalog.open(str(catalog)).videos()
    run = evicat("reindex", "--catalog", catalog, "--recipe", recipe("old"))
    assert run.code == 0
    assert "1 videos are new or changed" in run.out
    after = Catalog.open(str(catalog)).videos()
    assert after["video"].to_list() == before["video"].to_list()
    assert after["asset_id"].to_list() != before["asset_id"].to_list()


def test_a_file_that_could_not_be_read_is_tried_again_when_asked(evicat, catalog, recipe, media):
    (media / "broken.mp4").write_text("not a film")
    index = ("index", media, "--catalog", catalog, "--recipe", recipe("old"))
    assert evicat(*index).code == 3
    again = ("reindex", "--catalog", catalog, "--recipe", recipe("old"))
    assert evicat(*again).code == 0
    assert evicat(*again, "--retry", "failed").code == 3
