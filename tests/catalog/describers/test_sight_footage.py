"""What ``sight`` says of real clips, checked against what a person sees in them (``demo/samples.py``)."""

import av
import pytest

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.sight import Sight
from evicat.catalog.describers.sight_options import SightOptions
from evicat.catalog.media.frame import Frame
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US, Span


def shown(path, *, start_s=0, end_s=10, count=8, max_width=640):
    """``count`` frames in the middles of equal parts of a window."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        decoded = [(frame, round(frame.pts * frame.time_base * US)) for frame in container.decode(stream)]
    end_us = min(end_s * US, decoded[-1][1] + US // 25)
    step_us = (end_us - start_s * US) / count
    frames = []
    for wanted in (start_s * US + (index + 0.5) * step_us for index in range(count)):
        frame, time_us = min(decoded, key=lambda item: abs(item[1] - wanted))
        width = min(max_width, frame.width)
        small = frame.reformat(width=width, height=frame.height * width // frame.width, format="rgb24")
        frames.append(Frame(frame.pts, time_us, small.to_ndarray()))
    return WindowInput(span=Span(start_s * US, end_us), frames=tuple(frames))


@pytest.fixture(scope="module")
def sight():
    return Sight(SightOptions(), Profile())


@pytest.fixture(scope="module")
def record(sight, evicat_samples):
    return lambda name, **facts: sight.describe(shown(evicat_samples / name, **facts)).record


def changes(record):
    return [change for change in record.changes if "picture changes" in change]


def test_a_title_card_is_read_and_nothing_else(record):
    card = record("card.mp4")
    assert card.screen_text == ("THANKS FOR WATCHING",)
    assert {box.name for box in card.boxes} == {"THANKS FOR WATCHING"}
    assert card.colours == ("almost all grey",)
    assert changes(card) == []


def test_the_title_stays_as_long_as_it_is_whole(record):
    """It slides in until 2.5 s and out from 4.5 s on; at 2.0 s and 5.0 s half of its letters is gone."""
    boxes = record("card.mp4", start_s=2, end_s=6, count=16).boxes
    times = [box.time_s for box in boxes]
    assert {"ocr", "same_pixels"} == {box.source for box in boxes}
    assert [time for time in times if 2.6 <= time <= 4.5] == pytest.approx(
        [2.625, 2.875, 3.125, 3.375, 3.625, 3.875, 4.125, 4.375], abs=0.02
    )
    assert min(times) > 2.0
    assert max(times) < 5.0


@pytest.mark.parametrize("start_s", [0, 10, 20])
def test_the_globe_is_a_dark_picture_without_letters(record, start_s):
    globe = record("globe.mp4", start_s=start_s, end_s=start_s + 10)
    assert globe.scene == "a dark picture"
    assert globe.colours == ("mostly black", "some blue")
    assert globe.changes == ("there is a little movement",)
    assert globe.screen_text == ()


def test_the_shots_of_the_street_are_told_apart(record):
    street = record("street.mp4", count=20)
    bounds = [
        change.removeprefix("the picture changes between ").partition(",")[0] for change in changes(street)
    ]
    assert bounds == [
        "0:00.7 and 0:01.3",
        "0:02.7 and 0:03.3",
        "0:05.2 and 0:05.8",
        "0:07.2 and 0:07.8",
        "0:09.2 and 0:09.8",
    ]
    assert "there is some movement" in street.changes or "there is much movement" in street.changes


@pytest.mark.parametrize("name", ["bunny.mp4", "phone.mp4"])
def test_moving_in_one_shot_is_no_change_of_picture(record, name):
    one_shot = record(name)
    assert changes(one_shot) == []
    assert "there is some movement" in one_shot.changes
    assert one_shot.screen_text == ()


def test_the_meadow_is_green(record):
    assert record("bunny.mp4").colours[0] == "much green"
