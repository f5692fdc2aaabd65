import cv2
import numpy as np
import pytest

from evicat.catalog.describers.looks import colours, main_colour, motion, place, spot_difference, thumb, views
from evicat.catalog.describers.sight_options import SightOptions

OPTIONS = SightOptions()


def thumbs(draw, *images):
    return [thumb(frame, OPTIONS) for frame in draw.in_time(images)]


@pytest.mark.parametrize("colour", [(0, 0, 0), (0, 0, 200), (255, 255, 255), (47, 61, 74)])
def test_a_picture_of_one_colour_is_blank_also_with_noise(draw, colour):
    noisy = np.clip(draw.picture(colour) + np.random.default_rng(1).normal(0, 4, (360, 640, 3)), 0, 255)
    plain, noise = thumbs(draw, draw.picture(colour), noisy.astype(np.uint8))
    assert plain.blank
    assert noise.blank


def test_a_thin_line_is_something_to_see(draw):
    image = cv2.line(draw.picture((47, 61, 74)), (160, 150), (160, 205), (240, 220, 30), 2)
    (item,) = thumbs(draw, image)
    assert not item.blank


def test_the_blank_rule_is_an_option(draw):
    image = cv2.circle(draw.picture(), (300, 200), 6, (255, 255, 255), -1)
    (frame,) = draw.in_time([image])
    assert not thumb(frame, OPTIONS).blank
    assert thumb(frame, SightOptions(blank_share=0.01)).blank


def test_views_part_where_the_picture_changes(draw):
    one, two = draw.textured(1), draw.textured(2) // 2 + 120
    green = draw.picture((20, 160, 40))
    shown = views(thumbs(draw, one, one, two, green, green, one), OPTIONS)
    assert [len(view) for view in shown] == [2, 1, 2, 1]


def test_equally_bright_colours_are_different_views(draw):
    shown = views(thumbs(draw, draw.picture((200, 40, 40)), draw.picture((40, 111, 40))), OPTIONS)
    assert [main_colour(view[0]) for view in shown] == ["red", "green"]


def test_movement_and_changing_light_are_one_view(draw):
    base = draw.textured(3, width=760)
    moving = [base[:, offset : offset + 640] for offset in (0, 20, 40)]
    fading = [(base[:, 40:680] * factor).astype(np.uint8) for factor in (0.8, 0.6)]
    assert len(views(thumbs(draw, *moving, *fading), OPTIONS)) == 1


def test_another_picture_in_the_same_colours_is_neither_a_change_nor_movement(draw):
    unlike = thumbs(draw, draw.textured(1), draw.textured(2))
    assert len(views(unlike, OPTIONS)) == 1
    assert motion(unlike, OPTIONS) == []


def test_motion_grows_with_the_movement_and_ignores_a_fade(draw):
    base = draw.textured(4, width=760)
    still = motion(thumbs(draw, base[:, :640], base[:, :640]), OPTIONS)
    slow = motion(thumbs(draw, base[:, :640], base[:, 4:644]), OPTIONS)
    quick = motion(thumbs(draw, base[:, :640], base[:, 30:670]), OPTIONS)
    fade = motion(thumbs(draw, base[:, :640], (base[:, :640] * 0.6).astype(np.uint8)), OPTIONS)
    assert still[0].mean() == 0
    assert 1 < slow[0].mean() < quick[0].mean()
    assert fade[0].mean() < 1


def test_colours_come_with_share_and_place(draw):
    image = draw.picture((20, 160, 40))
    image[:120] = (60, 120, 230)
    image[300:, 560:] = (230, 20, 20)
    green, blue, red = colours(thumbs(draw, image), OPTIONS)
    assert (green.term, blue.term, red.term) == ("green", "blue", "red")
    assert green.share == pytest.approx(0.646, abs=0.01)
    assert blue.share == pytest.approx(1 / 3, abs=0.01)
    assert (blue.place, red.place) == ("at the top", "at the bottom right")


def test_small_shares_are_named_only_where_they_catch_the_eye(draw):
    image = draw.picture((250, 250, 250))
    image[:60, :40] = (128, 128, 128)
    image[300:, 600:] = (230, 20, 20)
    assert [colour.term for colour in colours(thumbs(draw, image), SightOptions(accent_share=0.005))] == [
        "white",
        "red",
    ]


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (slice(0, 18), slice(0, 96), "at the top"),
        (slice(36, 54), slice(0, 96), "at the bottom"),
        (slice(0, 54), slice(64, 96), "on the right"),
        (slice(18, 36), slice(0, 32), "on the left"),
        (slice(0, 18), slice(0, 32), "at the top left"),
        (slice(18, 36), slice(32, 64), "in the middle"),
        (slice(0, 54), slice(0, 96), ""),
    ],
)
def test_places(rows, columns, expected):
    where = np.zeros((54, 96))
    where[rows, columns] = 1
    assert place(where, OPTIONS) == expected


def test_bars_are_at_the_top_and_bottom():
    where = np.zeros((54, 96))
    where[:7] = where[-7:] = 1
    assert place(where, OPTIONS) == "at the top and bottom"


def test_a_small_text_is_a_large_difference_at_one_spot(draw):
    still = draw.textured(5)
    before, after, again = thumbs(draw, still, draw.write(still, "Hello there", size=0.8), still)
    assert spot_difference(before, after) > OPTIONS.ocr_change
    assert spot_difference(before, again) == 0


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 2), (40, 1900), (1900, 40), (2160, 3840)])
def test_every_shape_of_picture_can_be_measured(draw, height, width):
    (item,) = thumbs(draw, draw.textured(6, height=height, width=width))
    assert item.pixels.shape == (54, 96, 3)
    assert colours([item], OPTIONS)
    assert "array" not in repr(item)
