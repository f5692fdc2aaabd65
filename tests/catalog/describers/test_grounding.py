"""Boxes in answers of a chat model, which are prepared; a red square says where they belong."""

import json

import cv2
import numpy as np
import pytest

from evicat.catalog.boxes import Placed
from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.chat import prompt_text
from evicat.catalog.describers.crop_check import crop
from evicat.catalog.describers.vlm_local import GroundedAnswer, LocalAnswer
from evicat.catalog.engines.made_up import made_up
from evicat.schemas.entry import FLAGS
from evicat.schemas.errors import AnswerError, EngineDownError, RecipeError, RefusedError
from evicat.schemas.identity import Producer
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import US, Span

SPAN = Span(120 * US, 150 * US)
SIZE = (640, 360)
SQUARE = (160, 90, 320, 180)
"""In pixels of the frame: 250, 250, 500, 500 of 1000."""


def with_square(size=SIZE, square=SQUARE):
    image = np.full((size[1], size[0], 3), 60, np.uint8)
    image[square[1] : square[3], square[0] : square[2]] = (220, 20, 20)
    return image


@pytest.fixture
def window(draw):
    """4 frames, the first at 2:01.9."""
    return WindowInput(SPAN, draw.in_time([with_square()] * 4, start_us=121_950_000, step_us=3_750_000))


@pytest.fixture
def grounded(local_answer):
    """JSON of an answer to ``vlm-local`` with boxes: each is ``(t, name, box)``."""

    def answer(*boxes):
        seen = [dict(zip(("t", "name", "box"), each, strict=True)) for each in boxes]
        return json.dumps(json.loads(local_answer()) | {"boxes": seen})

    return answer


def corners(box):
    return box.x1, box.y1, box.x2, box.y2


def test_a_box_becomes_one_of_the_picture_at_the_time_of_its_frame(describer, window, grounded):
    answer = grounded(("2:01.9", "the red  square", [250, 250, 500, 500]))
    made = describer("vlm-local", answer, ground=True).describe(window)
    (box,) = made.record.boxes
    assert (box.name, box.time_s, box.source, box.confidence) == ("the red square", 121.95, "vlm", None)
    assert corners(box) == (250, 250, 500, 500)
    assert (made.flags, made.message) == ((), "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"family": "qwen3-vl"}, (250, 250, 500, 500)),
        ({"family": "qwen3-vl", "coordinates": "thousand-yx"}, (250, 250, 500, 500)),
        ({"family": "qwen2.5-vl"}, (161, 91, 322, 182)),
        ({"family": "qwen2.5-vl", "coordinates": "thousand"}, (250, 250, 500, 500)),
    ],
)
def test_each_family_counts_as_it_does(describer, window, grounded, options, said):
    """Qwen2.5-VL's processor makes 644 x 364 of 640 x 360, and its pixels are of that."""
    answer = grounded((121.95, "square", said))
    made = describer("vlm-local", answer, ground=True, **options).describe(window)
    assert corners(made.record.boxes[0]) == pytest.approx((250, 250, 500, 500), abs=0.1)


def test_gemini_names_rows_first(describer, window, grounded):
    answer = grounded((121.95, "square", (100, 200, 300, 400)))
    made = describer("vlm-local", answer, ground=True, coordinates="thousand-yx").describe(window)
    assert corners(made.record.boxes[0]) == (200, 100, 400, 300)


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl"])
def test_padding_that_was_added_for_the_model_is_taken_off(describer, draw, grounded, family):
    """A strip of 600 x 10 goes out in the middle of rows that are black above and below."""
    strip = with_square((600, 10), (150, 2, 300, 6))
    asked = WindowInput(SPAN, draw.in_time([strip], start_us=SPAN.start_us))
    vlm = describer("vlm-local", ground=True, family=family)
    (packed,) = vlm.prepare(asked.frames)
    assert (packed.inside.width, packed.inside.height) == (600, 10)
    assert packed.inside.top > 0
    assert np.abs(packed.displayed.image.astype(int) - strip).mean() < 12
    scaled = (
        vlm.budget.family.processed(packed.width, packed.height) if family == "qwen2.5-vl" else (1000, 1000)
    )
    across, down = scaled[0] / packed.width, scaled[1] / packed.height
    top = packed.inside.top
    vlm.engine.answers.append(
        grounded((120.0, "square", [150 * across, (top + 2) * down, 300 * across, (top + 6) * down]))
    )
    (box,) = vlm.describe(asked).record.boxes
    assert corners(box) == pytest.approx((250, 200, 500, 600), abs=0.1)


def test_boxes_that_cannot_be_are_left_out_counted_and_flagged(describer, window, grounded):
    answer = grounded(
        ("2:01.9", "square", [250, 250, 500, 500]),
        ("2:01.9", "square", [250, 250, 1300, 500]),
        ("2:01.9", "square", [500, 250, 250, 500]),
        ("2:03.0", "square", [250, 250, 500, 500]),
        ("2:01.9", "wall", [0, 0, 1000, 999]),
    )
    made = describer("vlm-local", answer, ground=True).describe(window)
    assert len(made.record.boxes) == 1
    assert made.flags == ("boxes_dropped",)
    assert made.flags[0] in FLAGS
    assert made.message == (
        "4 boxes dropped: 1 outside the frame, 1 reversed or empty, 1 of no frame's time, "
        "1 over 80% of the frame"
    )


def test_large_and_surplus_boxes_are_no_fault_of_the_model(describer, window, grounded):
    times = ("2:01.9", "2:05.7", "2:09.4")
    answer = grounded(*((time, "square", [250, 250, 500, 500]) for time in times))
    made = describer("vlm-local", answer, ground=True).describe(window)
    assert [box.time_s for box in made.record.boxes] == [121.95, 125.7]
    assert (made.flags, made.message) == ((), "1 box dropped: 1 beyond the 2 best of their name")


def test_a_box_without_four_numbers_breaks_the_schema(describer, window, grounded):
    bad = grounded(("2:01.9", "square", [1, 2, 3]))
    with pytest.raises(AnswerError, match="box"):
        describer("vlm-local", bad, bad, ground=True).describe(window)


def test_boxes_are_asked_for_only_where_the_recipe_wants_them(describer, window, local_answer, grounded):
    vlm, other = describer("vlm-local", local_answer()), describer("vlm-local", grounded(), ground=True)
    vlm.describe(window)
    other.describe(window)
    assert vlm.engine.asked[0].system == prompt_text("local")
    assert (vlm.answer_class, other.answer_class) == (LocalAnswer, GroundedAnswer)
    assert "boxes" not in vlm.schema["properties"]
    (asked,) = other.engine.asked
    assert asked.schema["properties"]["boxes"]["maxItems"] == 24
    assert "from 0 to 1000 across and down" in asked.system
    assert "{box}" not in asked.system


def producer_id(vlm):
    facts = {"component": vlm.component, "version": vlm.version, "model": vlm.model, "options": vlm.facts()}
    return Producer(kind="local", scale="local-10s", **facts).producer_id


def test_grounding_makes_another_producer_and_leaves_the_others_as_they_are(describer):
    plain = describer("vlm-local")
    assert not {"ground", "coordinates", "check_crop"} & set(plain.facts())
    options = [
        {},
        {"ground": True},
        {"ground": True, "coordinates": "pixels"},
        {"ground": True, "check_crop": {"model": "m"}},
        {"ground": True, "check_crop": {"model": "other"}},
        {"ground": True, "check_crop": {"model": "m", "margin": 0.2}},
    ]
    assert len({producer_id(describer("vlm-local", **each)) for each in options[:4]}) == 4
    kept = describer("vlm-local", ground=True, coordinates="thousand")
    assert producer_id(kept) == producer_id(describer("vlm-local", ground=True))


@pytest.mark.parametrize("options", [{"coordinates": "pixels"}, {"check_crop": {"model": "m"}}])
def test_options_about_boxes_need_boxes(describer, options):
    with pytest.raises(RecipeError, match="ground = true"):
        describer("vlm-local", **options)


def shows_red(request):
    """What a model would say that sees: whether most of the crop is red."""
    (picture,) = request.pictures
    image = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
    red = (image[:, :, 2] > 150) & (image[:, :, 1] < 90)
    return json.dumps({"shows": bool(red.mean() > 0.5)})


def test_crops_are_shown_to_a_model_and_what_it_denies_is_dropped(describer, window, grounded):
    answer = grounded(
        ("2:01.9", "red square", [250, 250, 500, 500]), ("2:01.9", "red ball", [600, 600, 900, 900])
    )
    vlm = describer("vlm-local", answer, ground=True, check_crop={"model": "m"})
    vlm.engine.answers += [shows_red, shows_red]
    made = vlm.describe(window)
    assert [box.name for box in made.record.boxes] == ["red square"]
    assert made.message == "1 box dropped: 1 not what they are called, by their crop"
    assert made.flags == ()
    assert (made.prompt_tokens, made.completion_tokens) == (300, 30)
    assert (made.attempts, made.further_calls) == (1, 2)
    assert {request.parts[1] for request in vlm.engine.asked[1:]} == {
        "It is said to show: red square",
        "It is said to show: red ball",
    }


@pytest.mark.parametrize(
    ("trouble", "calls"), [(RefusedError("no"), 1), (("I cannot say", "stop"), 2), (("", "refused"), 1)]
)
def test_a_box_without_an_answer_about_its_crop_is_dropped(describer, window, grounded, trouble, calls):
    answer = grounded(("2:01.9", "red square", [250, 250, 500, 500]))
    vlm = describer("vlm-local", answer, trouble, trouble, ground=True, check_crop={"model": "m"})
    made = vlm.describe(window)
    assert made.record.boxes == ()
    assert made.message == "1 box dropped: 1 with no answer about their crop"
    assert made.further_calls == calls


def test_where_the_model_of_the_check_is_gone_the_run_ends(describer, window, grounded):
    answer = grounded(("2:01.9", "red square", [250, 250, 500, 500]))
    gone = EngineDownError("gone")
    with pytest.raises(EngineDownError):
        describer("vlm-local", answer, gone, ground=True, check_crop={"model": "m"}).describe(window)


def test_the_check_is_tried_before_a_run(describer):
    vlm = describer("vlm-local", ground=True, check_crop={"model": "m"})
    vlm.check()
    assert [request.schema for request in vlm.engine.checked] == [vlm.schema, vlm.crops._schema]


@pytest.mark.parametrize(
    ("box", "margin", "expected"),
    [
        ((250, 250, 500, 500), 0, SQUARE),
        ((250, 250, 500, 500), 0.5, (80, 45, 400, 225)),
        ((0, 0, 500, 1000), 0.1, (0, 0, 352, 360)),
        ((999.9, 999.9, 1000, 1000), 0, (639, 359, 640, 360)),
    ],
)
def test_a_crop_is_what_lies_in_the_box_and_its_margin(draw, box, margin, expected):
    (frame,) = draw.in_time([np.arange(360 * 640 * 3).reshape(360, 640, 3).astype(np.uint8)])
    cut = crop(
        frame, ObjectBox(time_s=0, name="a", **dict(zip(("x1", "y1", "x2", "y2"), box, strict=True))), margin
    )
    left, top, right, bottom = expected
    assert (cut.image == frame.image[top:bottom, left:right]).all()
    assert cut.image.shape[:2] == (bottom - top, right - left)


def test_a_packed_frame_knows_where_its_picture_lies(describer, draw):
    (packed,) = describer("vlm-local").prepare(draw.in_time([with_square()]))
    assert packed.inside == Placed(0, 0, 640, 360)


def test_what_is_made_up_for_trials_has_boxes_that_have_a_size(describer):
    """The engine ``simulated`` follows the schema; it knows no frames, so most of these boxes are dropped."""
    schema = describer("vlm-local", ground=True).schema
    boxes = [box["box"] for seed in "abc" for box in json.loads(made_up(schema, seed))["boxes"]]
    assert boxes
    assert all(left < right and top < bottom for left, top, right, bottom in boxes)
