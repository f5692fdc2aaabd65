import cv2
import numpy as np
import pytest

from evicat.catalog.describers.patches import find_again
from evicat.catalog.describers.sight_options import SightOptions
from evicat.catalog.describers.tracks import SAME_PIXELS, is_misread, on_screen, tracks
from evicat.schemas.records import ObjectBox

OPTIONS = SightOptions()
BOX = {"x1": 80, "y1": 480, "x2": 620, "y2": 580}
"""Around what the pictures below have written at (60, 200), in 640 x 360."""


def line(name, *, time_s=0.0, confidence=0.95, **place):
    return ObjectBox(time_s=time_s, name=name, confidence=confidence, source="ocr", **(BOX | place))


def seen(track):
    return [(box.time_s, box.source) for box in track.boxes]


@pytest.fixture(scope="module")
def pictures(draw):
    plain = draw.textured(3) // 3
    return plain, draw.write(plain, "Harbour Street")


def test_an_unread_frame_with_the_same_pixels_is_a_sighting(draw, pictures):
    plain, titled = pictures
    frames = draw.in_time([plain, titled, titled, plain])
    (track,) = tracks(frames, {0: [], 1: [line("Harbour Street", time_s=1.2)], 3: []}, OPTIONS)
    assert seen(track) == [(1.2, "ocr"), (2.4, SAME_PIXELS)]
    assert on_screen([track]) == 'on screen: "Harbour Street" (0:01.2 to 0:02.4)'


def test_unread_frames_before_the_first_reading_are_looked_at(draw, pictures):
    plain, titled = pictures
    frames = draw.in_time([plain, titled, titled, titled])
    (track,) = tracks(frames, {3: [line("Harbour Street", time_s=3.6)]}, OPTIONS)
    assert seen(track) == [(1.2, SAME_PIXELS), (2.4, SAME_PIXELS), (3.6, "ocr")]


def test_a_frame_that_was_read_without_the_text_is_not_looked_back_into(draw, pictures):
    _, titled = pictures
    (track,) = tracks(draw.in_time([titled] * 2), {0: [], 1: [line("Harbour Street", time_s=1.2)]}, OPTIONS)
    assert seen(track) == [(1.2, "ocr")]


def test_a_line_missed_by_the_reader_is_still_there(draw, pictures):
    _, titled = pictures
    reading = {0: [line("Harbour Street")], 1: [], 2: [line("Harbour Street", time_s=2.4)]}
    (track,) = tracks(draw.in_time([titled] * 3), reading, OPTIONS)
    assert [source for _, source in seen(track)] == ["ocr", SAME_PIXELS, "ocr"]


def test_something_else_in_its_place_ends_a_track(draw, pictures):
    plain, titled = pictures
    frames = draw.in_time([titled, plain, titled])
    found = tracks(frames, {0: [line("Harbour Street")], 2: [line("Harbour Street", time_s=2.4)]}, OPTIONS)
    assert [seen(track) for track in found] == [[(0.0, "ocr")], [(2.4, "ocr")]]
    assert on_screen(found) == 'on screen: "Harbour Street" (0:00.0, 0:02.4)'


def test_a_text_that_moves_is_one_track_of_its_readings(draw):
    images = [draw.write(draw.picture(), "Cast and crew", at=(60, y)) for y in (300, 240, 180)]
    reading = {
        i: [line("Cast and crew", time_s=1.2 * i, y1=780 - 170 * i, y2=850 - 170 * i)] for i in range(3)
    }
    (track,) = tracks(draw.in_time(images), reading, OPTIONS)
    assert [source for _, source in seen(track)] == ["ocr"] * 3


def test_the_reading_that_most_frames_agree_on_names_all(draw, pictures):
    _, titled = pictures
    names = ("Harbour Streel", "Harbour Street", "Harbour Street")
    reading = {i: [line(name, time_s=1.2 * i, confidence=0.99 - 0.01 * i)] for i, name in enumerate(names)}
    (track,) = tracks(draw.in_time([titled] * 3), reading, OPTIONS)
    assert track.text == "Harbour Street"
    assert {box.name for box in track.boxes} == {"Harbour Street"}


def test_the_same_line_twice_in_a_frame_is_two_tracks(draw, pictures):
    _, titled = pictures
    lines = [line("No", y1=100, y2=200), line("No", y1=600, y2=700)]
    later = [box.model_copy(update={"time_s": 1.2}) for box in reversed(lines)]
    found = tracks(draw.in_time([titled] * 2), {0: lines, 1: later}, OPTIONS)
    assert [[box.y1 for box in track.boxes] for track in found] == [[100, 100], [600, 600]]
    assert on_screen(found) == 'on screen: "No" (0:00.0 to 0:01.2)'


def test_texts_come_in_the_order_of_their_first_sight(draw, pictures):
    plain, _ = pictures
    reading = {0: [line("low", y1=800, y2=900), line("high", y1=10, y2=90)], 1: [line("top", y1=0, y2=9)]}
    found = tracks(draw.in_time([plain, draw.textured(8)]), reading, OPTIONS)
    assert [track.text for track in found] == ["high", "low", "top"]
    assert on_screen([]) == ""


@pytest.mark.parametrize("other", ["Eastbound train", "Westbound trail"])
def test_nearly_the_same_letters_are_another_text_where_the_pixels_differ(draw, other):
    one, dark = "Westbound train", draw.picture()
    frames = draw.in_time([draw.write(dark, one), draw.write(dark, other)])
    found = tracks(frames, {0: [line(one)], 1: [line(other, time_s=1.2)]}, OPTIONS)
    assert [track.text for track in found] == [one, other]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Harbour Street", "Harbour Streel", True),
        ("Harbour Street", "Harvard Square", False),
        ("Chapter 1", "Chapter 2", False),
        ("10:31:07", "10:31:08", False),
        ("Exit", "Edit", False),
    ],
)
def test_small_differences_of_reading_are_one_text(one, other, same):
    assert is_misread(line(one), line(other), OPTIONS) is same
    assert not is_misread(line(one), line(other, y1=100, y2=200), OPTIONS)


def test_case_blanks_and_stops_are_no_difference(draw, pictures):
    plain, titled = pictures
    reading = {0: [line("Harbour Street")], 1: [line("HARBOUR  STREET.", time_s=1.2)]}
    (track,) = tracks(draw.in_time([titled, plain]), reading, OPTIONS)
    assert track.text == "Harbour Street"


def alike(known, other, box):
    return find_again(known, box, other)[1]


def compressed(image):
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 40])
    assert done
    return cv2.imdecode(data, cv2.IMREAD_COLOR)


def test_light_and_noise_leave_a_text_the_same(draw, pictures):
    _, titled = pictures
    noise = np.random.default_rng(0).normal(0, 6, titled.shape)
    darker = np.clip(titled * 0.7 + noise, 0, 255).astype(np.uint8)
    one, two = draw.in_time([titled, compressed(darker)])
    assert alike(one, two, line("Harbour Street")) >= OPTIONS.text_likeness


@pytest.mark.parametrize("later", ["10:31:08", "10:31:09", "10:31:01", "10:32:07", "10:81:07"])
def test_one_other_digit_is_another_text(draw, later):
    dark = draw.picture((30, 40, 60))
    frames = draw.in_time([compressed(draw.write(dark, text)) for text in ("10:31:07", later)])
    box = line("10:31:07", x1=90, x2=390, y1=470, y2=570)
    assert alike(*frames, box) < OPTIONS.text_likeness


def test_frames_of_other_sizes_and_blank_ones_are_not_the_same(draw, pictures):
    _, titled = pictures
    one, small, blank = draw.in_time([titled, titled[::2, ::2], draw.picture()])
    assert alike(one, small, line("Harbour Street")) == 0
    assert alike(one, blank, line("Harbour Street")) == 0
    assert alike(one, one, line("Harbour Street")) == pytest.approx(1)
    assert alike(blank, blank, line("Harbour Street")) == 0
    assert alike(one, one, line("x", x1=999.9, x2=1000, y1=999.9, y2=1000)) == 0


@pytest.mark.parametrize(("right", "down", "is_found"), [(0, 0, True), (6, -8, True), (0, 90, False)])
def test_a_text_is_found_again_nearby(draw, right, down, is_found):
    dark = draw.picture((30, 40, 60))
    one, two = draw.in_time(
        [draw.write(dark, "Harbour", at=at) for at in ((60, 200), (60 + right, 200 + down))]
    )
    box = line("Harbour", x2=300)
    found, likeness = find_again(one, box, two)
    assert (likeness >= OPTIONS.text_likeness) is is_found
    if is_found:
        assert (found.x1 - box.x1, found.y1 - box.y1) == pytest.approx((right / 0.64, down / 0.36), abs=0.1)
