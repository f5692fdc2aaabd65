"""Describing stored windows again: what is deterministic agrees, what ignores pictures is found out."""

import json
import shutil
import subprocess

import polars as pl
import pytest

from evicat.catalog.build import build
from evicat.catalog.kit import Kit
from evicat.catalog.measures.again import carries, clues_of, described_again, described_blank
from evicat.catalog.measures.motion import against_motion
from evicat.catalog.measures.sample import draw, parse_share
from evicat.catalog.query import Catalog
from evicat.schemas.errors import UsageError, WindowError
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.storage.store import Store

SIGHT = """
name = "sight"
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
subtitles = "only"
"""
CUES = "1\n00:00:01,000 --> 00:00:02,000\nWho is there?\n"
VLM = """
name = "vlm"
[[scales]]
kind = "local"
policy = "shots"
min_seconds = 1
max_seconds = 4
describer = "vlm-local"
frames = { per_window = 2, max_width = 64 }
options = { model = "m" }
[[scales]]
kind = "narrative"
window_seconds = 2
describer = "vlm-narrative"
frames = { per_window = 2, max_width = 64 }
options = { model = "m" }
"""
SCRIPT = [
    {"field": "narrative", "answer": {"narrative": "A man waits. He leaves.", "cast": []}},
    {
        "field": "objects",
        "answer": {
            **{name: [] for name in ("colours", "screen_text", "spoken_clues", "people", "entities")},
            **{name: [] for name in ("actions", "interactions", "social_cues", "changes")},
            "objects": ["a red box"],
            "place": "a room",
            "scene": "a man in a room",
        },
    },
]


class Made:
    """A catalog of one clip, and how it was made."""

    def __init__(self, folder, clip, recipe, profile):
        folder.mkdir()
        self.media = folder / "media"
        self.media.mkdir()
        self.clip = shutil.copy(clip, self.media / "clip.mp4")
        (self.media / "clip.srt").write_text(CUES)
        self.uri = folder / "catalog"
        self.recipe = parse_toml(Recipe, recipe, "test.toml")
        self.profile = parse_toml(Profile, profile, "profile.toml")
        with self.kit() as kit, Store.connect(self.uri, write=True, create=True) as store:
            build(self.media / "clip.mp4", kit, store)
            store.finish()

    def kit(self):
        return Kit(self.recipe, self.profile)

    @property
    def catalog(self):
        return Catalog.open(str(self.uri))


@pytest.fixture(scope="module")
def clip(tmp_path_factory, ffmpeg):
    """6 s of one grey-blue picture, then 6 s of a picture that moves; the changes are cuts."""
    file = tmp_path_factory.mktemp("clip") / "clip.mp4"
    still = ["-f", "lavfi", "-i", "color=navy:s=64x48:r=10:d=6"]
    moving = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=10:d=6,scroll=horizontal=0.03"]
    command = [ffmpeg, "-loglevel", "error", *still, *moving, "-filter_complex", "concat=n=2", "-g", "10"]
    subprocess.run([*map(str, command), str(file)], check=True)
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory, clip):
    """Catalogs by who described the clip."""
    folder = tmp_path_factory.mktemp("made")
    script = folder / "answers.jsonl"
    script.write_text("".join(json.dumps(rule) + "\n" for rule in SCRIPT))
    simulated = '[engines."*"]\nengine = "simulated"\nconcurrency = 4\n'
    scripted = f'[engines."*"]\nengine = "scripted"\noptions = {{ file = "{script}" }}\n'
    return {
        "sight": Made(folder / "sight", clip, SIGHT, ""),
        "simulated": Made(folder / "simulated", clip, VLM, simulated),
        "scripted": Made(folder / "scripted", clip, VLM, scripted),
    }


def values(card):
    """By producer and measure."""
    rows = card.select("component", "measure", "value").iter_rows()
    return {(component, measure): value for component, measure, value in rows}


@pytest.mark.parametrize("name", ["sight", "simulated", "scripted"])
def test_deterministic_describers_say_the_same_again_and_nothing_is_written(made, name):
    one = made[name]
    before = one.catalog
    with one.kit() as kit:
        sample = draw(before, kit, share=1.0)
        found = described_again(before, kit, sample)
    assert found.notes == ()
    assert len(found.windows) == len(sample.windows) >= 6
    assert set(sample.windows["kind"]) == {"local", "narrative"}
    for (component, measure), value in values(found.card).items():
        assert value == (0 if measure == "again_failed_share" else 1), (component, measure)
    assert one.catalog.version == before.version


def test_what_is_said_without_looking_comes_from_grey_frames_too(made):
    shares = {}
    for name in ("sight", "simulated", "scripted"):
        with made[name].kit() as kit:
            sample = draw(made[name].catalog, kit, share=1.0, with_frames=True)
            found = described_blank(made[name].catalog, kit, sample)
        shares |= {(name, who): value for (who, _), value in values(found.card).items()}
        assert found.windows["again"].null_count() == 0
    assert shares["scripted", "vlm-local"] == shares["scripted", "vlm-narrative"] == 1
    assert shares["sight", "sight"] < 0.2
    assert shares["simulated", "vlm-local"] < 1, "its answers hang on the pictures"
    assert ("sight", "digest") not in shares, "it reads no frames"


@pytest.mark.slow
def test_a_model_in_this_process_says_the_same_again_and_looks(tmp_path, clip, tiny_vlm):
    pytest.importorskip("llguidance", reason="the engine 'transformers' needs the package 'llguidance'")
    recipe = VLM.replace('model = "m"', 'model = "lab/tiny-vl", max_tokens = 300')
    recipe = recipe.replace("window_seconds = 2", "window_seconds = 4")
    profile = f"""threads = 1
[models]
"lab/tiny-vl" = "{tiny_vlm}"
[engines."*"]
engine = "transformers"
concurrency = 1
"""
    one = Made(tmp_path / "tiny", clip, recipe, profile)
    with one.kit() as kit:
        sample = draw(one.catalog, kit, share=1.0)
        again = values(described_again(one.catalog, kit, sample).card)
        blank = values(described_blank(one.catalog, kit, sample).card)
    assert again["vlm-local", "again_same_share"] == again["vlm-narrative", "again_same_share"] == 1
    assert blank["vlm-local", "blank_share"] < 1


def test_a_describer_whose_answers_change_is_found_out(made, monkeypatch):
    from evicat.catalog.describers.sight import Sight

    real = Sight.describe

    def other(self, window):
        made = real(self, window)
        return made.__class__(**{**_fields(made), "text": "Something else entirely."})

    monkeypatch.setattr(Sight, "describe", other)
    with made["sight"].kit() as kit:
        found = described_again(made["sight"].catalog, kit, draw(made["sight"].catalog, kit, share=1.0))
    measured = values(found.card)
    assert measured["sight", "again_same_share"] == 0
    assert measured["sight", "again_words"] < 0.1
    assert measured["digest", "again_same_share"] == 1, "it reads the stored entries, not the new ones"


def test_windows_that_fail_the_second_time_are_counted_and_told(made, monkeypatch):
    from evicat.catalog.describers.sight import Sight

    def fails(self, window):
        raise WindowError("the lens is covered")

    monkeypatch.setattr(Sight, "describe", fails)
    with made["sight"].kit() as kit:
        found = described_again(made["sight"].catalog, kit, draw(made["sight"].catalog, kit, share=1.0))
    assert values(found.card)["sight", "again_failed_share"] == 1
    assert ("sight", "again_words") not in values(found.card), "there is nothing to compare"
    assert found.notes == ("6 windows were not described: the lens is covered",)


def _fields(made):
    return {name: getattr(made, name) for name in made.__dataclass_fields__}


class TestSample:
    def test_is_drawn_by_seed_and_bounded(self, made):
        with made["sight"].kit() as kit:
            catalog = made["sight"].catalog
            one, same, other = (draw(catalog, kit, share=0.5, seed=seed, most=4) for seed in (1, 1, 2))
        assert one.windows.equals(same.windows)
        assert len(one.windows) == 4
        assert not one.windows.equals(other.windows)
        assert "4 of 9 windows" in one.notes[0]
        assert one.cost(2).startswith("8 calls for 4 windows of 1 video,")

    def test_of_what_reads_its_past_has_no_two_windows_in_a_row(self, made):
        with made["simulated"].kit() as kit:
            windows = draw(made["simulated"].catalog, kit, share=1.0).windows
        starts = windows.filter(pl.col("kind") == "narrative")["start_s"].sort()
        assert len(starts) >= 2
        assert starts.diff().drop_nulls().min() >= 4
        assert windows["prompt_tokens"].min() > 0

    def test_needs_the_recipe_that_made_what_is_shown(self, made):
        with made["simulated"].kit() as kit, pytest.raises(UsageError, match=r"shows local-2s by sight"):
            draw(made["sight"].catalog, kit, share=1.0)

    @pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.5", 0.5), ("100 %", 1.0)])
    def test_share(self, text, share):
        assert parse_share(text) == pytest.approx(share)

    @pytest.mark.parametrize("text", ["", "all", "0", "-1%", "200%", "nan", "1%%"])
    def test_what_is_no_share_is_told(self, text):
        with pytest.raises(UsageError, match="not a share of windows"):
            parse_share(text)


def test_a_file_that_is_gone_is_told_and_found_elsewhere(made, tmp_path, clip):
    one = Made(tmp_path / "moved", clip, SIGHT, "")
    (one.media / "clip.mp4").rename(tmp_path / "elsewhere.mp4")
    with one.kit() as kit:
        sample = draw(one.catalog, kit, share=1.0)
        lost = described_again(one.catalog, kit, sample)
        assert lost.card.is_empty()
        assert "clip.mp4: its file was not found" in lost.notes[0]
        found = described_again(one.catalog, kit, sample, media_roots=[tmp_path])
    assert len(found.windows) == len(sample.windows)


def test_seconds_of_motion_that_no_frame_shows_are_counted(made):
    found = against_motion(made["sight"].catalog)
    measured = values(found.card)
    assert found.notes == ()
    assert measured["sight", "unseen_share"] == 0, "frames at half past every second"
    assert measured["sight", "unseen_s"] == pytest.approx(1, abs=0.2)


def test_a_few_frames_leave_motion_unseen(clip, tmp_path):
    sparse = SIGHT.replace("window_seconds = 2", "window_seconds = 6").replace(
        "per_window = 2", "per_window = 1"
    )
    measured = values(against_motion(Made(tmp_path / "sparse", clip, sparse, "").catalog).card)
    assert measured["sight", "unseen_share"] == pytest.approx(6 / 7), "5 to 12 s move, and 9 s is shown"
    assert measured["sight", "unseen_s"] == pytest.approx(6, abs=0.2)


def test_clues_are_the_phrases_of_a_record_or_else_sentences():
    record = {
        "scene": "a red car",
        "people": [{"descriptor": "a man", "details": ["a hat"]}],
        "boxes": [{"name": "x"}],
    }
    assert clues_of(json.dumps(record), "A red car.") == ["a red car", "a man", "a hat"]
    assert clues_of('{"narrative": "He waits. He goes."}', "He waits. He goes.") == ["He waits.", "He goes."]
    assert carries("The man wears a hat.", "a man with a hat")
    assert not carries("The man wears a coat.", "a red hat")
