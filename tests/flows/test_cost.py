"""The ledger of a catalog, summed up: what producers took, what was planned, and the rates of models."""

from __future__ import annotations

import json

import pytest

from evicat.flows.cost import cost, estimate_of
from evicat.flows.measured import Measured
from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.identity import ModelRef, Producer, Unit
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import US, Span
from evicat.storage.reader import Reader
from evicat.storage.store import Store

RECIPE = """
name = "seen"
[[scales]]
kind = "local"
window_seconds = 2
describer = "vlm-local"
frames = { per_window = 4, max_width = 448 }
options = { model = "m" }
[[scales]]
kind = "narrative"
window_seconds = 4
describer = "vlm-narrative"
frames = { per_window = 8, max_width = 448 }
options = { model = "m" }
"""
PROFILE = '[engines."*"]\nengine = "simulated"\n'


@pytest.fixture(scope="module")
def made(evicat, tmp_path_factory, colour_clips):
    """A catalog of two films by a simulated model; nobody writes to it."""
    tmp_path = tmp_path_factory.mktemp("cost")
    (tmp_path / "seen.toml").write_text(RECIPE)
    (tmp_path / "profile.toml").write_text(PROFILE)
    media = [colour_clips["red"], colour_clips["blue"]]
    options = ("--recipe", tmp_path / "seen.toml", "--profile", tmp_path / "profile.toml")
    run = evicat("index", *media, *options, "--catalog", tmp_path / "c")
    assert run.code == 0, run.err
    return tmp_path / "c"


def test_it_is_the_sum_of_the_ledger(evicat, made) -> None:
    told = json.loads(evicat("cost", "--catalog", made, "--json").out)
    local, narrative = told["producers"]
    assert (told["videos"], local["videos"], local["windows"], local["attempts"]) == (2, 2, 8, 8)
    assert (narrative["scale"], narrative["windows"]) == ("narrative-4s", 4)
    assert local["video_hours"] == pytest.approx(16 / 3600)
    status = [json.loads(line) for line in evicat("status", "--catalog", made, "--json").out.splitlines()]
    for name, column in (("prompt_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        units = [unit for video in status for unit in video["units"]]
        assert local[name] + narrative[name] == sum(unit[column] for unit in units)


def test_a_plan_would_have_said_the_same(made) -> None:
    for each in cost(str(made), []).producers:
        assert each.planned_ratio == pytest.approx(1, abs=0.05)


def test_one_video_costs_its_share(evicat, made) -> None:
    run = evicat("cost", "red.mp4", "--catalog", made)
    assert run.code == 0
    one = cost(str(made), ["red.mp4"])
    assert (one.videos, [each.windows for each in one.producers]) == (1, [4, 2])
    unknown = evicat("cost", "green.mp4", "--catalog", made)
    assert unknown.code == 2
    assert "known: blue.mp4, red.mp4" in unknown.err


def test_a_producer_of_another_making_has_no_plan(made) -> None:
    producer, *_ = Measured(Reader.open(made)).producers.values()
    options = producer.options | {"describer": producer.options["describer"] | {"prompt": "another"}}
    assert estimate_of(producer)
    assert estimate_of(producer.model_copy(update={"options": options})) is None
    assert estimate_of(producer.model_copy(update={"version": producer.version + 1})) is None


@pytest.fixture
def timed(tmp_path):
    """Writes a catalog whose requests took the times that they are told to."""

    def write(windows: list[tuple[int, int, float]], **describer: object):
        model, options = ModelRef(name="big"), {"describer": describer}
        producer = Producer(
            kind="local", scale="local-1s", component="other", version=1, model=model, options=options
        )
        unit = Unit(asset_id="a" * 32, producer_id=producer.producer_id, kind="local", scale=producer.scale)
        catalog = tmp_path / "timed"
        with Store.connect(catalog, write=True, create=True) as store:
            store.add_producer(producer)
            store.add_root(Root("r", "files", "/media"))
            store.add_name(VideoName("r", "film.mp4", "a" * 32, "film.mp4", FileStamp(1, 1, 1, 1)))
            store.open(unit)
            for number, (prompt, output, seconds) in enumerate(windows):
                result = WindowResult(
                    span=Span(number * US, (number + 1) * US),
                    outcome=Outcome.EMPTY,
                    prompt_tokens=prompt,
                    completion_tokens=output,
                    seconds=seconds,
                )
                store.write(unit, result)
            store.close(unit, complete=False)
        return catalog

    return write


def test_the_rates_of_a_model_are_those_that_its_requests_had(evicat, timed, tmp_path) -> None:
    windows = [(1000 + 50 * n, 100 + 37 * (n % 5), 0.0) for n in range(20)]
    catalog = timed([(p, o, p / 4000 + o / 50) for p, o, _ in windows])
    (rate,) = cost(str(catalog), []).rates
    assert (rate.model, rate.windows, rate.slots) == ("big", 20, None)
    assert rate.prompt_tokens_per_second == pytest.approx(4000)
    assert rate.output_tokens_per_second == pytest.approx(50)
    profile = tmp_path / "p.toml"
    profile.write_text('[engines."big"]\nengine = "simulated"\nconcurrency = 32\n')
    run = evicat("cost", "--catalog", catalog, "--profile", profile)
    assert '[engines."big"]\nprompt_tokens_per_second = 128000\noutput_tokens_per_second = 1600' in run.out


def test_windows_whose_crops_another_model_checked_tell_no_rates_of_either(timed) -> None:
    windows = [(p, o, p / 4000 + o / 50) for p, o in ((1000 + 50 * n, 100 + 37 * (n % 5)) for n in range(20))]
    assert cost(str(timed(windows, check_crop={"model": "m"})), []).rates == ()


def test_windows_that_are_all_alike_tell_no_rates(evicat, timed) -> None:
    catalog = timed([(1000, 100, 2.0)] * 20)
    found = cost(str(catalog), [])
    assert found.rates == ()
    assert "too alike to tell prompts from answers" in evicat("cost", "--catalog", catalog).out


def test_a_catalog_without_work_says_so(evicat, tmp_path) -> None:
    Store.connect(tmp_path / "c", write=True, create=True).release()
    run = evicat("cost", "--catalog", tmp_path / "c")
    assert (run.code, run.out) == (0, "Nothing was made so far.\n")
