import numpy as np
import pytest

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.sight import Sight
from evicat.catalog.describers.sight_options import SightOptions
from evicat.schemas.recipe import Profile
from evicat.schemas.span import Span

MUST_STAY_EMPTY = ("people", "entities", "actions", "interactions", "social_cues", "objects", "spoken_clues")


@pytest.fixture(scope="module")
def sight():
    return Sight(SightOptions(), Profile())


def describe(sight, frames):
    start_us = frames[0].time_us
    return sight.describe(WindowInput(span=Span(start_us, frames[-1].time_us + 1_000_000), frames=frames))


def test_a_still_picture_is_light_and_colours(draw, sight):
    image = draw.picture((20, 160, 40))
    image[:120] = (120, 180, 250)
    done = describe(sight, draw.in_time([image] * 8))
    assert done.text == (
        "A picture of medium light, mostly green (about 65%), much blue (about 35%) at the top. "
        "There is hardly any movement."
    )
    assert done.record.scene == "a picture of medium light"
    assert done.record.colours == ("mostly green", "much blue at the top")
    assert done.record.changes == ("there is hardly any movement",)
    assert done.flags == ()


def test_a_change_is_bounded_by_the_frames_beside_it(draw, sight):
    before, after = draw.textured(1) // 4, draw.picture((240, 240, 240))
    after[200:, :300] = (230, 20, 20)
    done = describe(sight, draw.in_time([before] * 4 + [after] * 4, start_us=30_000_000))
    change = (
        "the picture changes between 0:33.6 and 0:34.8, to a bright picture, "
        "mostly white (about 80%), some red (about 20%) at the bottom left"
    )
    assert change in done.record.changes
    assert done.text.startswith("At first a dark picture, ")
    assert f"{change[0].upper()}{change[1:]}." in done.text
    assert done.record.scene == "a dark picture, then a bright picture"


def test_movement_is_told_with_its_place(draw, sight):
    images = []
    for step in range(8):
        image = draw.textured(2)
        image[240:, 30 * step : 30 * step + 200] = (250, 250, 250)
        images.append(image)
    done = describe(sight, draw.in_time(images))
    assert done.record.changes == ("there is some movement, most of it at the bottom",)


def test_light_that_grows_is_told_and_is_no_movement(draw, sight):
    images = [(draw.textured(3) * factor).astype(np.uint8) for factor in (0.4, 0.55, 0.7, 0.85)]
    done = describe(sight, draw.in_time(images))
    assert done.record.changes == (
        "it gets brighter between 0:00.0 and 0:03.6",
        "there is hardly any movement",
    )
    darker = describe(sight, draw.in_time(images[::-1]))
    assert darker.record.changes[0] == "it gets darker between 0:00.0 and 0:03.6"


def test_flicker_is_no_growing_light(draw, sight):
    images = [(draw.textured(3) * factor).astype(np.uint8) for factor in (0.5, 0.9) * 4]
    assert describe(sight, draw.in_time(images)).record.changes == ("there is hardly any movement",)


def test_text_is_said_once_and_boxed_in_every_frame_read(draw, sight):
    dark, light = draw.picture((20, 30, 60)), draw.picture((120, 60, 60))
    images = [dark, draw.write(dark, "Harbour Street"), draw.write(light, "Harbour Street"), light]
    done = describe(sight, draw.in_time(images, start_us=60_000_000))
    assert done.record.screen_text == ("Harbour Street",)
    assert [box.time_s for box in done.record.boxes] == [61.2, 62.4]
    assert done.text.endswith('On screen: "Harbour Street" (1:01.2 to 1:02.4).')


def test_text_is_told_from_its_first_to_its_last_sight(draw, sight):
    still = draw.textured(3) // 3
    titled = draw.write(still, "Harbour Street")
    done = describe(sight, draw.in_time([still, *[titled] * 5, still, still], start_us=60_000_000))
    assert done.record.screen_text == ("Harbour Street",)
    assert [box.time_s for box in done.record.boxes] == [61.2, 62.4, 63.6, 64.8, 66.0]
    assert [box.source for box in done.record.boxes] == ["ocr", *["same_pixels"] * 4]
    assert done.text.endswith('On screen: "Harbour Street" (1:01.2 to 1:06.0).')


def test_a_text_that_comes_back_has_two_times(draw, sight):
    still = draw.textured(3) // 3
    titled = draw.write(still, "Harbour Street")
    done = describe(sight, draw.in_time([titled, titled, still, titled]))
    assert done.text.endswith('On screen: "Harbour Street" (0:00.0 to 0:01.2, 0:03.6).')


def test_without_ocr_nothing_is_read_and_no_model_is_named(draw):
    blind = Sight(SightOptions(ocr_frames=0), Profile())
    done = describe(blind, draw.in_time([draw.write(draw.picture(), "Harbour Street")]))
    assert blind.model is None
    assert done.record.screen_text == ()
    assert Sight(SightOptions(), Profile()).model.name == "PP-OCRv6-small"


@pytest.mark.parametrize(
    ("shades", "scene"),
    [
        ([(0, 0, 0)] * 8, "nothing can be seen: the picture is plain black"),
        ([(0, 0, 255)], "nothing can be seen: the picture is plain blue"),
        ([(0, 0, 0), (255, 255, 255)], "nothing can be seen: the picture is plain black, then plain white"),
    ],
)
def test_blank_windows_are_flagged_and_claim_nothing(draw, sight, shades, scene):
    done = describe(sight, draw.in_time([draw.picture(shade) for shade in shades]))
    assert done.flags == ("nothing_visible",)
    assert done.record.is_empty()
    assert done.record.scene == scene
    assert done.text == f"{scene[0].upper()}{scene[1:]}."


def test_a_black_moment_is_a_change_not_a_blank_window(draw, sight):
    image = draw.textured(4)
    done = describe(sight, draw.in_time([image, draw.picture(), image]))
    assert done.flags == ()
    assert "the picture changes between 0:00.0 and 0:01.2, to a plain black picture" in done.record.changes


def test_a_single_frame_tells_no_movement(draw, sight):
    done = describe(sight, draw.in_time([draw.textured(5)]))
    assert done.record.changes == ()
    assert "movement" not in done.text


@pytest.mark.parametrize(("height", "width"), [(2, 2), (24, 1900), (1900, 24)])
def test_odd_shapes_are_described(draw, sight, height, width):
    images = [draw.textured(seed, height=height, width=width) for seed in (6, 7)]
    done = describe(sight, draw.in_time(images))
    assert done.record.colours
    assert done.text.startswith(("A ", "At first "))


def test_frames_of_different_sizes_can_follow_each_other(draw, sight):
    done = describe(sight, draw.in_time([draw.textured(8), draw.textured(8, height=180, width=320)]))
    assert done.record.changes == ("there is hardly any movement",)


def test_what_sight_cannot_see_stays_empty(draw, sight):
    done = describe(sight, draw.in_time([draw.textured(seed) for seed in range(8)]))
    assert not any(getattr(done.record, field) for field in MUST_STAY_EMPTY)
    assert done.record.place == ""


def test_different_windows_get_different_texts(draw, sight):
    texts = {describe(sight, draw.in_time([draw.textured(seed)])).text for seed in range(10)}
    assert len(texts) == 10


def test_many_changes_keep_the_scene_short(draw, sight):
    dark, bright = draw.textured(9) // 4, draw.textured(10) // 4 + 190
    shades = [dark, bright] * 20
    done = describe(sight, draw.in_time(shades))
    assert len(done.record.scene) <= 500
    assert done.record.scene.endswith("and 32 more changes of light")
    assert sum("the picture changes" in change for change in done.record.changes) == 39
