"""What a window is going to take is what describing it takes; a whole asset is the sum of its windows."""

from __future__ import annotations

import numpy as np
import pytest

from evicat.catalog.describers.base import Expected, WindowInput
from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.engines.loaders import open_engine
from evicat.catalog.estimate import WORDS_PER_MINUTE, Dialogue, Estimate, likely_windows
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import frame_times
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.grid import windows
from evicat.schemas.recipe import FrameOptions, ModelProfile, Profile, Scale
from evicat.schemas.records import SpeechSegment
from evicat.schemas.span import US, Span

SIMULATED = Profile(engines={"*": ModelProfile(engine="simulated")})


def scale(kind="local", seconds=10.0, frames=8, width=448, **options) -> Scale:
    return Scale(
        kind=kind,
        window_seconds=seconds,
        describer=f"vlm-{kind}",
        frames=FrameOptions(per_window=frames, max_width=width),
        options={"model": "m", **options},
    )


def film(seconds: float, *, width=1920, height=1080, rate=25.0) -> Asset:
    video = VideoFacts(
        stream_index=0,
        codec="h264",
        width=width,
        height=height,
        time_base="1/1000",
        origin_pts=0,
        frame_count=round(seconds * rate),
    )
    return Asset(
        asset_id="a",
        source_id="a",
        size_bytes=1,
        container="mp4",
        duration_us=round(seconds * US),
        origin_us=0,
        video=video,
    )


def opened(of: Scale):
    """The describer of a scale with a simulated engine, and the engine."""
    describer = load_describer(of, SIMULATED)
    describer.bind(lambda model: open_engine(model, SIMULATED))
    return describer, describer.engine


def shown(span: Span, count: int, width: int, height: int) -> tuple[Frame, ...]:
    image = np.zeros((height, width, 3), np.uint8)
    return tuple(Frame(number, at, image) for number, at in enumerate(frame_times(span, count)))


def spoken(start_s: float, text: str) -> SpeechSegment:
    return SpeechSegment(start_s=start_s, end_s=start_s + 1, text=text, source="subtitles:sidecar en")


@pytest.mark.parametrize("size", [(448, 252), (120, 90), (40, 30), (252, 448)])
@pytest.mark.parametrize("count", [1, 8, 80])
def test_a_window_takes_what_was_expected(size, count) -> None:
    describer, engine = opened(scale(frames=count))
    span = Span(70 * US, 80 * US)
    window = WindowInput(span, frames=shown(span, count, *size))
    expected = describer.expected(window)
    made = describer.describe(window)
    assert expected.frames == len(made.shown)
    assert expected.prompt_tokens == pytest.approx(engine.spent.prompt_tokens, rel=0.02)


def test_what_is_said_and_what_came_before_are_counted() -> None:
    describer, engine = opened(scale("narrative", 60.0))
    first = Span(0, 60 * US)
    said = (spoken(3, "He asks her where the boat is."), spoken(9, "She says nothing for a while. " * 20))
    silent, heard = (
        WindowInput(first, frames=shown(first, 8, 448, 252), speech=speech) for speech in ((), said)
    )
    more = describer.expected(heard).prompt_tokens - describer.expected(silent).prompt_tokens
    assert more > 150
    describer.describe(heard)
    assert describer.expected(heard).prompt_tokens == pytest.approx(engine.spent.prompt_tokens, rel=0.02)
    later = Span(600 * US, 660 * US)
    at_first, later_on = (
        describer.expected(WindowInput(span, frames=shown(span, 8, 448, 252))) for span in (first, later)
    )
    assert later_on.prompt_tokens > at_first.prompt_tokens + 100


def test_without_frames_no_model_is_asked() -> None:
    describer, _ = opened(scale())
    assert describer.expected(WindowInput(Span(0, US))) == Expected()


def test_a_describer_without_a_model_takes_no_tokens() -> None:
    of = Scale(kind="local", window_seconds=10, describer="sight", frames=FrameOptions())
    whole = Estimate(load_describer(of, Profile()), of).unit(film(100), 10)
    assert whole == Expected(frames=80)


@pytest.mark.parametrize("seconds", [4.0, 90.0, 3_000.0])
def test_an_asset_takes_the_sum_of_its_windows(seconds) -> None:
    of = scale("narrative", 30.0)
    describer, _ = opened(of)
    asset = film(seconds)
    spans = windows(asset.duration_us, of.window_us)
    each = [describer.expected(WindowInput(span, frames=shown(span, 8, 448, 252))) for span in spans]
    whole = Estimate(describer, of).unit(asset, len(spans))
    assert whole.frames == sum(one.frames for one in each)
    assert whole.prompt_tokens == pytest.approx(sum(one.prompt_tokens for one in each), rel=0.02)
    assert whole.output_tokens == pytest.approx(sum(one.output_tokens for one in each))


def test_a_picture_that_stands_is_shown_once() -> None:
    of = scale(seconds=4.0, frames=8)
    whole = Estimate(opened(of)[0], of).unit(film(40, rate=1.0), 10)
    assert whole.frames == 40


def test_dialogue_is_assumed_by_the_minute_and_spread_over_the_windows() -> None:
    of = scale(dialogue=True)
    estimate = Estimate(opened(of)[0], of)
    said = Dialogue.assumed(600 * US)
    assert said.characters == WORDS_PER_MINUTE * 10 * 5.5
    silent, heard = (estimate.unit(film(600), 60, dialogue) for dialogue in (Dialogue(), said))
    assert heard.prompt_tokens - silent.prompt_tokens > said.characters / 4
    deaf = scale()
    assert Estimate(opened(deaf)[0], deaf).unit(film(600), 60, said) == Estimate(opened(deaf)[0], deaf).unit(
        film(600), 60
    )


def test_shots_are_as_long_as_they_were_so_far_within_their_bounds() -> None:
    of = Scale(
        kind="local",
        policy="shots",
        min_seconds=2,
        max_seconds=10,
        describer="sight",
        frames=FrameOptions(),
    )
    assert likely_windows(of, 0) == 0
    assert likely_windows(of, 100 * US) == 25
    assert likely_windows(of, 100 * US, 5.0) == 20
    assert likely_windows(of, 100 * US, 0.1) == 50
    assert likely_windows(of, 100 * US, 1000.0) == 10
    assert likely_windows(scale(seconds=30.0), 100 * US) == 4
