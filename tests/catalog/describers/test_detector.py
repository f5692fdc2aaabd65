"""The describer that looks for named things: real processors and real loading, tiny models, a red square."""

import json

import numpy as np
import pytest

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.detection import load_detector, one_text
from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.weights import resolve
from evicat.schemas.entry import Entry
from evicat.schemas.errors import EngineDownError, RecipeError, RequestError, UsageError, WindowError
from evicat.schemas.recipe import FrameOptions, Profile, Scale
from evicat.schemas.records import LocalRecord
from evicat.schemas.span import US, Span

SPAN = Span(10 * US, 20 * US)
KINDS = ["owlv2", "owlvit", "grounding-dino"]


@pytest.fixture(scope="module")
def tiny():
    """The module that builds small detectors; it loads torch."""
    from . import tiny_detectors

    return tiny_detectors


@pytest.fixture(scope="module")
def folders(tiny, tmp_path_factory):
    """By kind: a folder with random weights that looks at pictures of 64 pixels."""
    return {kind: tiny.BUILD[kind](tmp_path_factory.mktemp(kind)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def finds_red(tiny, monkeypatch):
    """All models find the first name around what is red."""
    for each in tiny.CLASSES.values():
        monkeypatch.setattr(each, "forward", tiny.finds_red)


def load(folder, engine=None, device="cpu", **options):
    """The describer on the model in ``folder``."""
    given = {"model": str(folder), "names": ["red square", "dog"]} | options
    scale = Scale(
        kind="objects", window_seconds=10, describer="detector", frames=FrameOptions(), options=given
    )
    made = load_describer(scale, Profile(threads=1, device=device))
    made.bind(lambda model: engine)
    return made


def with_square(width, height, square):
    image = np.full((height, width, 3), 60, np.uint8)
    left, top, right, bottom = square
    image[top:bottom, left:right] = (230, 20, 20)
    return image


@pytest.fixture
def window(draw):
    """Three frames with a square of 100 x 100 pixels that moves to the right."""
    images = [with_square(640, 360, (left, 100, left + 100, 200)) for left in (100, 200, 300)]
    return WindowInput(SPAN, draw.in_time(images, start_us=SPAN.start_us, step_us=2 * US))


def corners(box):
    return box.x1, box.y1, box.x2, box.y2


@pytest.mark.parametrize("size", [(640, 360), (360, 640), (500, 500), (900, 100)])
def test_boxes_are_of_the_displayed_picture_whatever_its_shape(tiny, kind, finds_red, tmp_path, size):
    """What goes in is what the kind's processor makes: padded to a square (OWLv2), squeezed, or scaled."""
    width, height = size
    square = width // 4, height // 4, width // 2, height * 3 // 4
    folder = tiny.BUILD[kind](tmp_path, side=800)
    detector = load_detector(resolve(str(folder), profile=Profile()), Profile(threads=1))
    ((found,),) = detector.find([with_square(width, height, square)], ["red square", "dog"], 0.5)
    assert found.name == "red square"
    scale = (1000 / width, 1000 / height) * 2
    expected = [edge * each for edge, each in zip(square, scale, strict=True)]
    pixel = max(1000 / 800, 1000 / min(size))
    assert found.corners == pytest.approx(expected, abs=1 + pixel)


def test_random_weights_go_the_whole_way(kind, folders, window):
    describer = load(folders[kind], confidence=0.1)
    made = describer.describe(window)
    assert made.record.wanted == ("red square", "dog")
    assert set(made.record.objects) <= {"red square", "dog"}
    times = {frame.time_s for frame in window.frames}
    for box in made.record.boxes:
        assert box.time_s in times
        assert box.source == "detector"
        assert 0.1 < box.confidence <= 1
    assert made == describer.describe(window)


def test_more_frames_than_are_looked_at_together_keep_their_order(tiny, folders, finds_red, draw):
    detector = load_detector(resolve(str(folders["owlv2"]), profile=Profile()), Profile(threads=1))
    images = [with_square(200, 100, (10 * i, 40, 10 * i + 20, 60)) for i in range(11)]
    lefts = [found[0].corners[0] for found in detector.find(images, ["red square"], 0.5)]
    assert lefts == sorted(lefts)
    assert len(lefts) == 11


def test_the_entry_says_what_was_found_and_when(folders, finds_red, window):
    made = load(folders["owlv2"]).describe(window)
    assert made.text == "Seen: red square (at 0:10.0 and 0:12.0)."
    assert made.record.objects == ("red square",)
    assert [box.time_s for box in made.record.boxes] == [10.0, 12.0]
    assert made.message == "1 box dropped: 1 beyond the 2 best of their name"
    assert made.flags == ()
    assert made.shown is None


def test_the_entry_cites_the_frames_that_were_looked_at(folders, finds_red, window, draw):
    (black,) = draw.in_time([draw.picture()], start_us=18 * US)
    made = load(folders["owlv2"]).describe(WindowInput(SPAN, (*window.frames, black)))
    assert made.shown == window.frames


def test_where_nothing_is_found_there_is_no_entry(folders, finds_red, draw):
    grey = draw.in_time([with_square(640, 360, (0, 0, 0, 0)) + np.arange(640)[:, None].astype(np.uint8) // 4])
    made = load(folders["owlv2"]).describe(WindowInput(SPAN, grey))
    assert (made.record, made.message) == (None, "none of 2 names was found")


def test_frames_that_show_nothing_are_not_looked_at(folders, draw):
    black = draw.in_time([draw.picture(), draw.picture((8, 8, 8))])
    made = load(folders["owlv2"], confidence=0.0).describe(WindowInput(SPAN, black))
    assert (made.record, made.message) == (None, "no frame shows anything")


def test_boxes_that_cannot_be_are_flagged(folders, tiny, window, monkeypatch):
    """A box that lies half outside, one of the whole picture, and one that is right."""

    def beside(self, pixel_values, input_ids, **_):
        found = tiny.finds_red(self, pixel_values, input_ids)
        boxes = [[0.0, 0.1, 0.3, 0.1], [0.5, 0.28125, 1.0, 0.5625], [0.2, 0.2, 0.1, 0.1]]
        found.pred_boxes = tiny.torch.tensor([boxes] * len(pixel_values))
        found.logits = found.logits.repeat(1, 3, 1)
        return found

    monkeypatch.setattr(tiny.CLASSES["owlv2"], "forward", beside)
    made = load(folders["owlv2"]).describe(WindowInput(SPAN, window.frames[:1]))
    (box,) = made.record.boxes
    assert corners(box) == pytest.approx((150, 266.7, 250, 444.4), abs=0.1)
    assert made.flags == ("boxes_dropped",)
    assert made.message == "2 boxes dropped: 1 outside the frame, 1 over 80% of the frame"


def local_entry(number, record):
    return Entry(
        entry_id=f"local.{number}",
        unit_id="unit",
        asset_id="asset",
        producer_id="local",
        kind="local",
        scale="local-5s",
        span=SPAN,
        text="a scene",
        record=record if isinstance(record, str) else record.model_dump_json(),
    )


def test_names_come_from_local_entries_each_once(folders, finds_red, window):
    entries = (
        local_entry(0, LocalRecord(scene="a", objects=("Red square.", "a blue cup", "!"))),
        local_entry(1, LocalRecord(scene="a", objects=("A BLUE CUP", "a door", "a " + "long " * 40))),
    )
    describer = load(folders["owlv2"], names_from_local=True, max_local_names=2)
    assert describer.reads == {"frames", "local"}
    made = describer.describe(WindowInput(SPAN, window.frames, entries=entries))
    assert made.record.wanted == ("red square", "dog", "a blue cup", "a door")
    assert made.message.startswith("1 more names of local entries were not looked for; ")


def test_names_that_are_longer_than_the_model_reads_are_told(folders, finds_red, window):
    long = "a red square " * 5
    with pytest.raises(UsageError, match="cannot read all of 'a red square"):
        load(folders["owlv2"], names=["dog", long.strip()]).check()
    load(folders["grounding-dino"], names=["dog", long.strip()]).check()
    describer = load(folders["owlv2"], names=["red square"], names_from_local=True)
    entries = (local_entry(0, LocalRecord(scene="a", objects=(long, "a door"))),)
    made = describer.describe(WindowInput(SPAN, window.frames, entries=entries))
    assert made.record.wanted == ("red square", "a door")
    assert made.message.startswith("1 names are longer than the model reads")


def test_without_any_name_nothing_is_looked_for(folders, window):
    describer = load(folders["owlv2"], names=[], names_from_local=True)
    entries = (local_entry(0, LocalRecord(scene="a")),)
    made = describer.describe(WindowInput(SPAN, window.frames, entries=entries))
    assert (made.record, made.message) == (None, "nothing to look for")


def test_a_local_entry_of_another_shape_is_an_error_of_the_window(folders, window):
    describer = load(folders["owlv2"], names_from_local=True)
    with pytest.raises(WindowError, match=r"local\.0 is not a local record"):
        describer.describe(WindowInput(SPAN, window.frames, entries=(local_entry(0, "{}"),)))


def test_names_stand_in_one_text_and_know_their_places():
    text, spans = one_text(["A Dog", "no. 7 bus", "cup."])
    assert text == "a dog. no 7 bus. cup."
    assert [text[first:last] for first, last in spans] == ["a dog", "no 7 bus", "cup"]


def test_each_name_has_the_score_of_its_own_tokens(folders):
    """Of 20 names too, which do not stand in one prompt."""
    detector = load_detector(resolve(str(folders["grounding-dino"]), profile=Profile()), Profile(threads=1))
    text, spans = one_text(["a dog", "x"])
    assert detector._tokens(text, spans, 99) == [[1, 2, 3, 4], [6]]
    image = np.random.default_rng(0).integers(0, 255, (60, 90, 3), dtype=np.uint8)
    (found,) = detector.find([image], [f"thing {number}" for number in range(20)], 0.0)
    assert len(found) == 3 * 6
    assert {int(each.name.removeprefix("thing ")) // 8 for each in found} == {0, 1, 2}


def test_names_that_are_too_long_for_one_prompt_stand_in_several(folders):
    """Grounding DINO reads 256 tokens; here each letter is one."""
    detector = load_detector(resolve(str(folders["grounding-dino"]), profile=Profile()), Profile(threads=1))
    names = [letter * 50 for letter in "abcdefgh"]
    assert list(map(len, detector._prompts(names))) == [4, 4]
    image = np.random.default_rng(0).integers(0, 255, (60, 90, 3), dtype=np.uint8)
    (found,) = detector.find([image], names, 0.0)
    assert {each.name for each in found[:6]} <= set(names[:4])
    assert {each.name for each in found[6:]} <= set(names[4:])
    assert len(found) == 2 * 6


def test_crops_are_checked_by_a_chat_model(folders, finds_red, window, engine):
    asked = engine(json.dumps({"shows": True}), json.dumps({"shows": False}))
    made = load(folders["owlv2"], asked, check_crop={"model": "m"}).describe(window)
    assert len(made.record.boxes) == 1
    assert made.message.endswith("of their name, 1 not what they are called, by their crop")
    assert (made.further_calls, made.prompt_tokens, made.completion_tokens) == (2, 200, 20)


def test_where_all_crops_are_denied_there_is_no_entry_but_a_message(folders, finds_red, window, engine):
    asked = engine(*[json.dumps({"shows": False})] * 2)
    made = load(folders["owlv2"], asked, check_crop={"model": "m"}).describe(window)
    assert made.record is None
    assert made.message == (
        "none of 2 names was found; 3 boxes dropped: 1 beyond the 2 best of their name, "
        "2 not what they are called, by their crop"
    )
    assert made.prompt_tokens == 200


def test_what_is_looked_for_makes_the_producer_and_where_the_weights_lie_does_not(folders, tmp_path):
    one, copy = load(folders["owlv2"]), tmp_path / "copy"
    copy.mkdir()
    for file in folders["owlv2"].iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert load(copy).model.identity() == one.model.identity()
    assert load(copy).facts() == one.facts()
    assert load(copy, names=["cat"]).facts() != one.facts()
    assert load(copy, check_crop={"model": "m"}).facts() != one.facts()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"names": []}, "names_from_local = true"),
        ({"names": ["..."]}, "names"),
        ({"confidence": 1.0}, "confidence"),
        ({"check_crop": {"model": ""}}, r"check_crop\.model"),
    ],
)
def test_options_that_do_not_fit_are_named(folders, options, told):
    with pytest.raises(RecipeError, match=told):
        load(folders["owlv2"], **options)


def test_a_folder_without_a_detector_ends_a_run_at_its_start(folders, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UsageError, match="'bert'; a detector is of one of these: owlvit, owlv2"):
        load(tmp_path).check()
    (tmp_path / "config.json").write_bytes((folders["owlv2"] / "config.json").read_bytes())
    with pytest.raises(UsageError, match="cannot load the detector"):
        load(tmp_path).check()
    load(folders["owlv2"]).check()


def test_a_device_that_is_not_there_ends_a_run_at_its_start(folders, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match="sees 0 CUDA devices"):
        load(folders["owlv2"], device="cuda").check()


def test_frames_that_a_processor_scales_to_nothing_fail_their_window_alone(folders, draw):
    strip = np.random.default_rng(0).integers(0, 256, (2, 2048, 3), dtype=np.uint8)
    with pytest.raises(RequestError, match="takes no frames of 2048x2"):
        load(folders["grounding-dino"]).describe(WindowInput(SPAN, draw.in_time([strip])))


def test_a_frame_of_one_pixel_is_a_picture_all_the_same(folders, draw):
    dot = np.array([[[250, 20, 20]]], np.uint8)
    load(folders["grounding-dino"], confidence=0).describe(WindowInput(SPAN, draw.in_time([dot])))


def test_a_model_that_fails_leaves_its_windows_to_the_next_run(folders, window, tiny, monkeypatch):
    def fail(self, **_):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(tiny.CLASSES["owlv2"], "forward", fail)
    with pytest.raises(EngineDownError, match="device-side assert"):
        load(folders["owlv2"]).describe(window)
