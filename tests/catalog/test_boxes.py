"""Boxes: coordinates of model families, the rules that boxes keep, and boxes as text."""

import importlib
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evicat.catalog.boxes import (
    Found,
    Placed,
    clean,
    dropped_note,
    keep,
    overlap,
    parse,
    render,
    to_thousand,
)
from evicat.catalog.tokens import FAMILIES
from evicat.schemas.records import ObjectBox

WHOLE = Placed(0, 0, 448, 252)


def box(name="a mug", x1=100.0, y1=100.0, x2=200.0, y2=200.0, *, time_s=1.0, confidence=None, source=""):
    return ObjectBox(
        time_s=time_s, name=name, x1=x1, y1=y1, x2=x2, y2=y2, confidence=confidence, source=source
    )


def found(corners, name="a mug", confidence=None):
    return Found(1.0, name, corners, confidence)


def test_pixels_are_those_of_the_picture_as_the_model_scaled_it():
    """Qwen2.5-VL: 448 x 250 becomes 448 x 252, sides in whole cells of 28."""
    seen = FAMILIES["qwen2.5-vl"].processed(448, 250)
    assert seen == (448, 252)
    assert to_thousand((112, 63, 224, 126), "pixels", seen, WHOLE) == (250, 250, 500, 500)


@pytest.mark.parametrize(
    ("coordinates", "corners"),
    [("thousand", (250, 100, 500, 200)), ("thousand-yx", (100, 250, 200, 500))],
)
def test_thousandths_are_of_the_picture_whatever_its_size(coordinates, corners):
    for size in ((448, 252), (64, 640)):
        shown = to_thousand(corners, coordinates, size, Placed(0, 0, *size))
        assert shown == pytest.approx((250, 100, 500, 200))


def test_padding_around_the_picture_is_taken_off():
    """640 x 4 in the middle of 640 x 32: the picture's rows begin at 14."""
    at = Placed(0, 14, 640, 4)
    assert to_thousand((64, 15, 128, 17), "pixels", (640, 32), at) == pytest.approx((100, 250, 200, 750))
    same = (100, 15 * 1000 / 32, 200, 17 * 1000 / 32)
    assert to_thousand(same, "thousand", (640, 32), at) == pytest.approx((100, 250, 200, 750))


@given(width=st.integers(16, 3000), height=st.integers(16, 3000))
@example(width=50, height=20)
@example(width=42, height=42)
def test_what_a_model_sees_is_what_its_own_processor_makes(width, height):
    """Against the library's own function, as far as pictures of a prompt go."""
    processing = importlib.import_module("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    for family in FAMILIES.values():
        least = family.server_min_pixels
        theirs = processing.smart_resize(
            height, width, factor=family.cell, min_pixels=least, max_pixels=10**9
        )
        assert family.processed(width, height) == theirs[::-1]


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        ((-30, 0, 500, 500), "outside"),
        ((0, 0, 500, 1030), "outside"),
        ((1500, 100, 1600, 200), "outside"),
        ((float("nan"), 0, 500, 500), "outside"),
        ((0, 0, float("inf"), 500), "outside"),
        ((500, 0, 100, 500), "reversed"),
        ((0, 500, 100, 500), "reversed"),
        ((500, 500, 500.01, 600), "reversed"),
        ((-15, 100, -5, 200), "outside"),
        ((0, 0, 1000, 801), "large"),
    ],
)
def test_a_box_that_cannot_be_is_dropped_and_counted(corners, reason):
    boxes, dropped = clean([found(corners), found((0, 0, 1000, 800))], "vlm")
    assert [(each.x1, each.y1, each.x2, each.y2, each.source) for each in boxes] == [(0, 0, 1000, 800, "vlm")]
    assert dict(dropped) == {reason: 1}


def test_a_box_that_sticks_out_a_little_is_cut_at_the_edge():
    ((only,), dropped) = clean([found((-12, 300, 40.06, 1009), confidence=0.98765)], "detector")
    assert (only.x1, only.y1, only.x2, only.y2, only.confidence) == (0, 300, 40.1, 1000, 0.988)
    assert not dropped


def test_the_two_most_confident_of_each_name_stay_in_order_of_time():
    sure = [box(x1=i, time_s=float(9 - i), confidence=i / 10) for i in range(1, 6)]
    other = box("a cup", time_s=20.0, confidence=0.01)
    kept, dropped = keep([*sure, other, box("A MUG", confidence=0.05)])
    assert [(each.name, each.confidence) for each in kept] == [
        ("a mug", 0.5),
        ("a mug", 0.4),
        ("a cup", 0.01),
    ]
    assert dict(dropped) == {"surplus": 4}


def test_without_confidence_those_that_came_first_stay():
    kept, _ = keep([box(time_s=3.0), box(time_s=1.0), box(time_s=2.0)])
    assert [each.time_s for each in kept] == [1.0, 3.0]


def test_two_boxes_around_one_object_in_one_frame_are_one():
    one, same, beside = (
        box(confidence=0.9),
        box(x2=210.0, confidence=0.8),
        box(x1=150.0, x2=250.0, confidence=0.7),
    )
    assert overlap(one, same) == pytest.approx(100 / 110)
    assert keep([one, same, beside]) == ([one, beside], {})


def test_the_ledger_is_told_how_many_and_why():
    _, dropped = clean([found((9, 0, 1, 5)), found((0, 0, 3000, 1)), found((0, 0, 5000, 1))], "vlm")
    assert dropped_note(dropped) == "3 boxes dropped: 2 outside the frame, 1 reversed or empty"
    assert dropped_note(clean([found((9, 0, 1, 5))], "vlm")[1]) == "1 box dropped: 1 reversed or empty"
    assert dropped_note(clean([], "vlm")[1]) == ""


def test_boxes_are_written_as_open_o3_video_writes_them():
    text = render([box("a red mug", 120.0, 40.0, 310.5, 200.0, time_s=12.4), box("R&B <live>", time_s=3.0)])
    assert text == (
        "<obj>a red mug</obj><box>[120,40,310.5,200]</box>at<t>12.4</t>s\n"
        "<obj>R&amp;B &lt;live&gt;</obj><box>[100,100,200,200]</box>at<t>3</t>s"
    )


coordinate = st.floats(0, 1000, allow_subnormal=True)
names = st.text(min_size=1, max_size=60) | st.text("<>&;/objxt" + string.whitespace, min_size=1, max_size=20)


@st.composite
def boxes(draw):
    (x1, x2), (y1, y2) = (
        sorted(draw(st.lists(coordinate, min_size=2, max_size=2, unique=True))) for _ in "xy"
    )
    time_s = draw(st.floats(0, 1e6))
    return box(draw(names), x1, y1, x2, y2, time_s=time_s)


@given(st.lists(boxes(), max_size=4))
@settings(max_examples=300)
def test_what_is_written_is_read_again_exactly(written):
    read = parse(render(written))
    assert read.boxes == tuple(written)
    assert read.unread == ()


@given(st.text("<>/objxt[],.0123456789 ats", max_size=80))
@settings(max_examples=300)
def test_whatever_a_text_holds_it_is_read(text):
    read = parse(text)
    assert parse(render(read.boxes)).boxes == read.boxes


def test_words_and_blanks_around_boxes_do_not_matter():
    text = "Here <obj>the dog</obj> <box>[ 10, 20, 30.5, 40 ]</box>\nat <t>5.0</t>s it barks, as said."
    assert parse(text) == parse(render([box("the dog", 10.0, 20.0, 30.5, 40.0, time_s=5.0)]))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("<obj>a</obj><box>[1,2,3]</box>at<t>1</t>s", "four numbers, not 3"),
        ("<obj>a</obj><box>[1,2,x,4]</box>at<t>1</t>s", "could not convert"),
        ("<obj>a</obj><box>[1,2,3,4]</box>at<t>nan</t>s", "is no time"),
        ("<obj>a</obj><box>[5,5,1,9]</box>at<t>1</t>s", "is empty"),
        ("<obj>a</obj><box>[0,0,2000,9]</box>at<t>1</t>s", "less than or equal to 1000"),
        ("<obj>a</obj><box>[1,2,3,4]</box>", "not <obj>"),
        ("<obj>a<box>[1,2,3,4]</box>at<t>1</t>s", "not <obj>"),
        ("<box>[1,2,3,4]</box>at<t>1</t>s", "not <obj>"),
    ],
)
def test_what_cannot_be_read_is_told_and_takes_nothing_with_it(wrong, why):
    good = box("b", 1.0, 2.0, 3.0, 4.0, time_s=2.0)
    read = parse(f"first {render([good])} then {wrong} and {render([good])}")
    assert read.boxes == (good, good)
    (told,) = read.unread
    assert why in told
    assert told.startswith(wrong[:20])
