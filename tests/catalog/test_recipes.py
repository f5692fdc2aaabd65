"""The recipes that ship say what their papers say, fit, and can be planned with; no weights are loaded."""

import tomllib

import pytest

from evicat.catalog.kit import Kit
from evicat.catalog.recipes import load_recipe, recipe_text, shipped
from evicat.catalog.weights import resolve
from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.recipe import ModelProfile, Profile

TEACHER = "Qwen/Qwen3-VL-235B-A22B-Instruct"
WHISPER = "large-v3"
PROFILE = Profile(
    engines={"*": ModelProfile(engine="simulated")},
    endpoints={"text-embedding-3-large": "http://127.0.0.1:9/v1"},
    # Other weights than these; which they are is not looked at here.
    models={WHISPER: resolve("packaged:whisper-tiny.en", profile=Profile()).location},
)


def scales(name):
    return {scale.name: scale for scale in load_recipe(name).scales}


@pytest.mark.parametrize("name", sorted(set(shipped()) - {"default"}))
def test_every_number_says_whether_a_paper_states_it(name):
    text = recipe_text(name)
    assert tomllib.loads(text)["name"] == name
    numbers = [
        line for line in text.splitlines() if any(letter.isdigit() for letter in line.partition("#")[0])
    ]
    numbers = [line for line in numbers if not line.startswith(("name", "description", "source", "#"))]
    sources = ("paper", "chosen", "Deep Video Discovery")
    lines = text.splitlines()
    silent = [line for line in numbers if not any(word in line.partition("#")[2] for word in sources)]
    under_heading = [
        line
        for line in silent
        if any(
            word in lines[index]
            for word in sources
            for index in range(max(0, lines.index(line) - 2), lines.index(line))
        )
    ]
    assert silent == under_heading


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_recipe_has_its_parts(name):
    if name == "videoseal":
        pytest.importorskip("openai", reason="its embedder needs the package 'openai'")
    with Kit(load_recipe(name), PROFILE) as kit:
        assert len(kit.sources) == len(kit.recipe.scales) + (kit.recipe.speech is not None)
        kit.check()


@pytest.mark.parametrize(("name", "local_s", "narrative_s"), [("video-holmes", 4, 30), ("cg-bench", 30, 60)])
def test_assemble_states_windows_models_and_caps(name, local_s, narrative_s):
    local, narrative = (
        scales(name)[f"{kind}-{s}s"] for kind, s in (("local", local_s), ("narrative", narrative_s))
    )
    assert local.options["model"] == "Qwen/Qwen3.5-9B"
    assert (narrative.frames.per_window, narrative.frames.max_width) == (16, 448)
    stated = {
        "model": TEACHER,
        "past_characters": 1500,
        "max_cast": 20,
        "temperature": 0.0,
        "max_tokens": 1200,
    }
    assert {key: narrative.options[key] for key in stated} == stated


def test_assemble_states_where_the_words_come_from():
    holmes, cg = load_recipe("video-holmes").speech, load_recipe("cg-bench").speech
    assert (holmes.subtitles, holmes.transcriber) == ("never", "faster-whisper")
    assert (cg.subtitles, cg.transcriber) == ("only", None)
    assert load_recipe("vrbench").speech is None


def test_vrbench_has_narratives_only_as_a_layer_of_its_own():
    assert list(scales("vrbench")) == ["local-30s"]
    (narrative,) = scales("vrbench-narrative").values()
    assert (narrative.kind, narrative.options["model"]) == ("narrative", TEACHER)


def test_the_others_state_their_windows():
    seal, dvd = scales("videoseal")["local-16s"], scales("dvd")["local-10s"]
    assert seal.options["model"] == "Qwen/Qwen3-VL-8B-Instruct"
    assert load_recipe("videoseal").embedder.model == "text-embedding-3-large"
    assert dvd.frames.per_window / dvd.window_seconds == 2


def test_the_text_of_a_recipe_has_its_comments(tmp_path):
    assert "# paper" in recipe_text("video-holmes")
    own = tmp_path / "own.toml"
    own.write_text(recipe_text("cg-bench").replace('"cg-bench"', '"own"'))
    assert recipe_text(str(own)) == own.read_text()
    own.write_text("name = 3")
    with pytest.raises(RecipeError, match=r"own\.toml does not fit"):
        recipe_text(str(own))
    with pytest.raises(UnknownNameError, match="cg-bench, default, dvd"):
        recipe_text("cgbench")
