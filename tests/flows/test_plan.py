"""A plan says beforehand what a run then makes and takes, and touches nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing

import polars as pl
import pytest

from evicat.flows import probes
from evicat.flows.plan import plan_request, plan_work
from evicat.storage.reader import Reader

RECIPE = """
name = "seen"
[[scales]]
kind = "local"
window_seconds = 2
describer = "vlm-local"
frames = { per_window = 4, max_width = 448 }
options = { model = "m", dialogue = true }
[[scales]]
kind = "narrative"
window_seconds = 4
describer = "vlm-narrative"
frames = { per_window = 8, max_width = 448 }
options = { model = "m" }
[speech]
subtitles = "only"
"""
RATES = "prompt_tokens_per_second = 1000\noutput_tokens_per_second = 100\ngpus = 2\n"
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nWho is there?\n\n2\n00:00:05,000 --> 00:00:06,000\nPaul.\n"


class Trial:
    """A media folder, a recipe, a profile, and where a catalog would be."""

    def __init__(self, folder, clips) -> None:
        self.media, self.catalog = folder / "media", folder / "catalog"
        self.recipe, self.profile = folder / "seen.toml", folder / "profile.toml"
        self.clips = clips
        self.media.mkdir()
        self.recipe.write_text(RECIPE)
        self.engine()

    def engine(self, rates: str = RATES) -> None:
        self.profile.write_text(f'[engines."*"]\nengine = "simulated"\nconcurrency = 4\n{rates}')

    def put(self, name: str, clip: str):
        return shutil.copy(self.clips[clip], self.media / name)

    def plan(self, *paths, **more):
        asked = [str(path) for path in paths or [self.media]]
        return plan_work(plan_request(asked, str(self.catalog), str(self.recipe), str(self.profile), **more))

    def options(self) -> tuple[object, ...]:
        return "--recipe", self.recipe, "--profile", self.profile, "--catalog", self.catalog


@pytest.fixture
def trial(tmp_path, clips):
    """Two films, one of them with subtitles, and no catalog so far."""
    return two_films(tmp_path, clips)


@pytest.fixture(scope="module")
def clips(colour_clips, evicat_samples):
    return colour_clips | {"bunny": evicat_samples / "bunny.mp4"}


def two_films(folder, clips) -> Trial:
    made = Trial(folder, clips)
    for name in ("red", "blue"):
        made.put(f"{name}.mp4", name)
    (made.media / "red.srt").write_text(SUBTITLES)
    return made


@pytest.fixture(scope="module")
def indexed(evicat, tmp_path_factory, clips):
    """Four films, one of them a copy that has no subtitles beside it, indexed; and what was planned before.

    Nobody writes to it: what is new lies elsewhere.
    """
    made = two_films(tmp_path_factory.mktemp("indexed"), clips)
    made.put("bunny.mp4", "bunny")
    made.put("again.mp4", "red")
    made.before = made.plan()
    run = evicat("index", made.media, *made.options())
    assert run.code == 0, run.err
    return made


@pytest.fixture
def no_probes(monkeypatch):
    """Forbids to probe from now on."""

    def forbid():
        monkeypatch.setattr(probes, "probe", lambda *_, **__: pytest.fail("a file was probed"))

    return forbid


def by_scale(plan, name: str) -> dict[str, int]:
    return {each.scale: getattr(each, name) for each in plan.work}


def units(trial) -> pl.DataFrame:
    return pl.DataFrame(Reader.open(trial.catalog).dataset("units").to_table())


def test_without_a_catalog_all_is_counted_and_none_is_made(trial) -> None:
    plan = trial.plan()
    assert (plan.catalog, plan.assets, plan.unchanged) == ("", 2, 0)
    assert sorted(plan.new) == ["blue.mp4", "red.mp4"]
    assert plan.video_seconds == 16
    assert by_scale(plan, "windows") == {"speech": 2, "local-2s": 8, "narrative-4s": 4}
    assert by_scale(plan, "calls") == {"speech": 0, "local-2s": 8, "narrative-4s": 4}
    assert by_scale(plan, "frames") == {"speech": 0, "local-2s": 32, "narrative-4s": 32}
    assert plan.disk_bytes > 0
    assert not trial.catalog.exists()


def test_what_was_planned_is_what_a_run_takes_within_5_percent(indexed) -> None:
    plan, made = indexed.before, units(indexed)
    assert plan.assets == 3
    for each in plan.work:
        own = made.filter(producer_id=each.producer_id)
        assert (each.units, each.windows) == (len(own), own["windows"].sum())
        assert each.prompt_tokens == pytest.approx(own["prompt_tokens"].sum(), rel=0.05)
    used = made["prompt_tokens"].sum() + made["completion_tokens"].sum()
    assert plan.tokens == pytest.approx(used, rel=0.05)


def test_what_is_made_is_left_out_and_the_rest_goes_by_what_was_measured(indexed, clips) -> None:
    assert [each.output_basis for each in indexed.before.work] == ["", "assumed", "assumed"]
    done = indexed.plan()
    assert (done.work, done.unchanged, done.has_work) == ((), 3, False)
    more = indexed.plan(indexed.media, clips["grey"])
    assert (more.assets, more.unchanged, more.new) == (1, 3, ("grey.mp4",))
    assert by_scale(more, "windows") == {"speech": 1, "local-2s": 4, "narrative-4s": 2}
    local = more.work[1]
    assert (local.prompt_basis, local.output_basis) == ("measured", "measured")
    taken = units(indexed).filter(scale="local-2s")
    assert local.output_tokens == round(taken["completion_tokens"].sum() / taken["windows"].sum() * 4)
    assert more.disk_basis == "measured"


def test_a_unit_that_was_begun_counts_with_what_is_left(evicat, trial) -> None:
    (trial.media / "blue.mp4").unlink()
    assert evicat("index", trial.media, *trial.options(), "--limit-windows", 3).code == 4
    left = trial.plan()
    made = units(trial).filter(pl.col("kind") != "speech")["windows"].sum()
    assert sum(each.windows for each in left.work) == 6 - made


def test_windows_that_failed_count_where_they_are_retried(evicat, trial) -> None:
    trial.profile.write_text('[engines."*"]\nengine = "simulated"\noptions = { faults = { rejected = 1 } }')
    assert evicat("index", trial.media, *trial.options()).code == 3
    trial.engine()
    assert not trial.plan().has_work
    again = trial.plan(retry=["failed"])
    assert by_scale(again, "windows") == {"local-2s": 8, "narrative-4s": 4}


def test_a_second_plan_opens_no_file(trial, no_probes) -> None:
    first = trial.plan()
    no_probes()
    assert trial.plan() == first


def test_a_file_that_was_written_to_is_probed_again(trial) -> None:
    before = trial.plan()
    trial.put("red.mp4", "bunny")
    assert trial.plan().video_seconds != before.video_seconds


def test_a_copy_of_what_is_known_is_nothing_new(indexed, clips, tmp_path) -> None:
    copy = shutil.copy(clips["blue"], tmp_path / "third.mp4")
    plan = indexed.plan(indexed.media, copy)
    assert (plan.assets, plan.unchanged, plan.new) == (0, 3, ("third.mp4",))


def test_files_that_cannot_be_read_are_told_and_the_rest_is_planned(evicat, trial, no_probes) -> None:
    (trial.media / "text.mp4").write_text("no film")
    os.mkfifo(trial.media / "pipe.mp4")
    plan = trial.plan()
    assert plan.assets == 2
    assert set(plan.unreadable) == {"text.mp4", "pipe.mp4"}
    no_probes()  # what is no film stays none until it is written to
    run = evicat("plan", trial.media, trial.media / "gone.mp4", *trial.options())
    assert run.code == 0
    assert "text.mp4" in run.out
    assert "gone.mp4" in run.out


def test_hours_are_tokens_by_the_rates_and_narratives_wait_for_each_other(trial) -> None:
    plan = trial.plan()
    for each in plan.work[1:]:
        assert each.seconds == pytest.approx(each.prompt_tokens / 1000 + each.output_tokens / 100, rel=0.01)
        assert each.gpu_hours == pytest.approx(2 * each.seconds / 3600)
    assert plan.wall_seconds is None  # nobody knows how long subtitles take
    assert any("speech by subtitles" in note for note in plan.notes)


def test_the_wall_is_the_longest_of_what_runs_side_by_side(indexed, clips) -> None:
    plan = indexed.plan(clips["grey"])
    engine = sum(each.seconds for each in plan.work[1:])
    chain = 4 * plan.work[2].seconds  # two windows of one film, each as long as a request among four
    assert plan.wall_seconds == pytest.approx(max(engine, chain))


def test_without_rates_hours_stay_blank_and_it_is_said_what_to_do(evicat, trial) -> None:
    trial.engine(rates="")
    run = evicat("plan", trial.media, *trial.options())
    assert run.code == 0
    assert "write prompt_tokens_per_second and output_tokens_per_second" in run.out
    assert "GPU hours" not in run.out


def test_a_recipe_can_be_planned_that_could_not_run_here(evicat, trial) -> None:
    run = evicat("plan", trial.media, "--recipe", trial.recipe)
    assert run.code == 0
    assert "a run would not start here: the profile does not say how to run 'm'" in run.out
    told = json.loads(evicat("plan", trial.media, "--recipe", "video-holmes", "--json").out)
    assert {each["scale"] for each in told["work"]} >= {"local-4s", "narrative-30s", "vectors"}
    assert any("a run would not start here" in note for note in told["notes"])


def test_reindex_plans_by_the_same_table(evicat, indexed, tmp_path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace("per_window = 4", "per_window = 2"))
    options = "--recipe", other, "--profile", indexed.profile, "--catalog", indexed.catalog
    planned = evicat("plan", indexed.media, *options).out
    assert "local-2s" in planned
    assert evicat("reindex", "--plan", *options).out == planned


def test_shots_of_a_library_tell_how_many_a_new_film_has(evicat, trial) -> None:
    trial.recipe.write_text(
        RECIPE.replace("window_seconds = 2", 'policy = "shots"\nmin_seconds = 0.5\nmax_seconds = 20')
    )
    assert by_scale(trial.plan(), "windows")["local-shots"] == 4  # of 4 s, as is assumed
    assert evicat("index", trial.media, *trial.options()).code == 0
    found = units(trial).filter(scale="local-shots")["windows"].sum()
    trial.put("grey.mp4", "grey")
    assert by_scale(trial.plan(), "windows")["local-shots"] == round(found / 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nowhere/at/all"], "no such file, folder or pattern: /nowhere/at/all"),
        ([".", "--recipe", "gone.toml"], "cannot read recipe"),
        ([".", "--recipe", "nobody"], "unknown recipe"),
        ([".", "--catalog", "file"], "is a file"),
        ([".", "--catalog", "newer"], "newer"),
        ([".", "--retry", "all"], "unknown outcome to retry"),
        ([".", "--profile", "half.toml"], "write both or neither"),
    ],
)
def test_what_is_wrong_is_said(evicat, trial, tmp_path, arguments, said) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "evicat.json").write_text('{"format": "evicat-catalog", "schema": 999}')
    (tmp_path / "half.toml").write_text('[engines."m"]\nprompt_tokens_per_second = 5\n')
    run = evicat("plan", *arguments, cwd=tmp_path)
    assert run.code == 2
    assert said in " ".join(run.err.split())


def test_a_damaged_cache_of_probes_is_named(evicat, trial, own_probes) -> None:
    own_probes.write_bytes(b"no database at all" * 100)
    run = evicat("plan", trial.media, *trial.options())
    assert run.code == 2
    assert f"{own_probes} is no usable cache of probes" in "".join(run.err.split("\n"))


def test_where_probes_cannot_be_kept_a_note_says_so(evicat, trial, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "file" / "evicat")
    told = json.loads(evicat("plan", trial.media, *trial.options(), "--json").out)
    assert any("probes are not kept" in note for note in told["notes"])
    assert told["assets"] == 2


def test_kept_probes_that_are_no_longer_understood_are_made_again(trial, own_probes) -> None:
    before = trial.plan()
    with closing(sqlite3.connect(own_probes)) as cache, cache:
        cache.execute("UPDATE probes SET facts = '{}'")
    assert trial.plan() == before
