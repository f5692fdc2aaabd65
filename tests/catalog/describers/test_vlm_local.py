"""A window shown to a vision-language model and read back; the model's part is played by prepared answers."""

import numpy as np
import pytest
from pydantic import ValidationError

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.chat import ChatOptions, Domain, prompt_text
from evicat.schemas.entry import FLAGS
from evicat.schemas.errors import (
    AnswerError,
    EngineDownError,
    RefusedError,
    RequestError,
    TooLongError,
    TruncatedError,
)
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile, Recipe, Scale
from evicat.schemas.records import LocalRecord, SpeechSegment
from evicat.schemas.span import US, Span

SPAN = Span(120 * US, 150 * US)


@pytest.fixture
def window(draw):
    """8 frames of 2:00 to 2:30, and a sentence."""
    frames = draw.in_time([draw.textured(seed) for seed in range(8)], start_us=121_875_000, step_us=3_750_000)
    said = SpeechSegment(start_s=125.0, end_s=127.5, text="The tea is cold.", source="faster-whisper")
    return WindowInput(SPAN, frames=frames, speech=(said,))


def test_an_answer_becomes_a_record_and_its_sentences(describer, window, local_answer):
    made = describer("vlm-local", local_answer()).describe(window)
    assert made.record == LocalRecord(
        scene="a woman pours tea in a kitchen",
        place="a kitchen",
        people=({"descriptor": "the woman in grey", "details": ("short hair",)},),
        objects=("a red mug",),
        actions=("she pours tea",),
        screen_text=("EXIT 27",),
    )
    assert made.text == (
        "A woman pours tea in a kitchen. Place: a kitchen. People: the woman in grey (short hair). "
        'Objects: a red mug. Actions: she pours tea. On screen: "EXIT 27".'
    )
    assert (made.flags, made.message, made.is_partial) == ((), "", False)
    assert (made.attempts, made.prompt_tokens, made.completion_tokens) == (1, 100, 10)
    assert [frame.time_us for frame in made.shown] == [frame.time_us for frame in window.frames]


def test_every_frame_stands_after_its_time_on_the_clock_of_the_video(describer, window, local_answer):
    vlm = describer("vlm-local", local_answer())
    vlm.describe(window)
    (request,) = vlm.engine.asked
    labels = [part for part in request.parts if isinstance(part, str)]
    assert labels[:2] == ["Frame at 2:01.8:", "Frame at 2:05.6:"]
    assert [isinstance(part, str) for part in request.parts] == [True, False] * 8
    assert (request.temperature, request.max_tokens, request.schema) == (0.0, 1200, vlm.schema)
    assert request.system == prompt_text("local")


def test_what_waits_is_what_is_shown(describer, window, local_answer):
    vlm = describer("vlm-local", local_answer(), local_answer())
    packed = vlm.prepare(window.frames)
    made = vlm.describe(WindowInput(SPAN, frames=packed))
    assert made.shown == packed
    assert [picture.jpeg for picture in vlm.engine.asked[0].pictures] == [frame.jpeg for frame in packed]
    vlm.describe(window)
    first, second = vlm.engine.asked
    assert [p.jpeg for p in first.pictures] == [p.jpeg for p in second.pictures]


def test_dialogue_is_shown_where_the_recipe_wants_it(describer, window, local_answer):
    with_it = describer("vlm-local", local_answer(), dialogue=True)
    without = describer("vlm-local", local_answer())
    assert (with_it.reads, without.reads) == ({"frames", "speech"}, {"frames"})
    for vlm in (with_it, without):
        vlm.describe(window)
    line = '2:05.0-2:07.5 a voice says: "The tea is cold."'
    assert line in " ".join(with_it.engine.asked[0].texts)
    assert "tea" not in " ".join(without.engine.asked[0].texts)


def test_where_nothing_is_visible_a_cautious_scene_is_left(describer, window, local_answer):
    empty = {"objects": [], "screen_text": [], "people": [], "actions": []} | {
        "place": "",
        "scene": "a black picture",
    }
    made = describer("vlm-local", local_answer(**empty)).describe(window)
    assert (made.text, made.flags) == ("A black picture.", ("nothing_visible",))


def test_without_frames_nothing_is_asked(describer):
    vlm = describer("vlm-local")
    assert vlm.describe(WindowInput(SPAN)).record is None
    assert vlm.engine.asked == []


def test_a_model_that_needs_two_pictures_gets_the_one_twice_and_the_entry_says_one(
    describer, window, local_answer
):
    """B12."""
    vlm = describer("vlm-local", local_answer(), min_frames=2)
    made = vlm.describe(WindowInput(SPAN, frames=window.frames[:1]))
    first, second = vlm.engine.asked[0].pictures
    assert first.jpeg == second.jpeg
    assert len(made.shown) == 1


@pytest.mark.parametrize("cut", [('{"objects": ["a', "length"), '{"objects": ["a', "{" + "\n" * 8000])
def test_a_cut_answer_is_asked_for_once_more_with_more_room_and_for_less(
    describer, window, local_answer, cut
):
    """B32."""
    vlm = describer("vlm-local", cut, local_answer())
    made = vlm.describe(window)
    first, second = vlm.engine.asked
    assert (first.max_tokens, second.max_tokens) == (1200, 2400)
    assert second.parts == (*first.parts, prompt_text("shorter"))
    assert (made.attempts, made.prompt_tokens, made.completion_tokens) == (2, 200, 20)
    assert made.message.startswith("asked again: the answer")


def test_an_answer_that_stays_cut_is_no_entry(describer, window):
    """B32."""
    vlm = describer("vlm-local", ('{"objects": ["a', "length"), ('{"objects": ["b', "length"))
    with pytest.raises(TruncatedError, match="cut at 2400 tokens") as error:
        vlm.describe(window)
    told = error.value
    assert (told.raw, told.attempts, told.prompt_tokens, told.completion_tokens) == (
        '{"objects": ["b',
        2,
        200,
        20,
    )


def test_a_whole_answer_that_was_cut_all_the_same_is_not_believed(describer, window, local_answer):
    whole = local_answer(), "length"
    with pytest.raises(TruncatedError):
        describer("vlm-local", whole, whole).describe(window)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("", "empty"),
        ("null", "not a JSON object"),
        ("[]", "not a JSON object"),
        ('{"summary": "A man walks."}', "breaks its schema"),
        ({"objects": ["a"] * 500}, "objects: List should have at most 12"),
        ({"scene": "He goes home now. " * 20}, "repeats itself"),
        ({"scene": "x" * 401}, "scene: String should have at most 400"),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_once_more_with_other_sampling(
    describer, window, local_answer, bad, message
):
    """B32, B33."""
    bad = local_answer(**bad) if isinstance(bad, dict) else bad
    vlm = describer("vlm-local", bad, local_answer())
    assert vlm.describe(window).record.scene == "a woman pours tea in a kitchen"
    first, second = vlm.engine.asked
    assert (second.temperature, second.seed != first.seed) == (0.3, True)
    assert (second.parts, second.max_tokens) == (first.parts, first.max_tokens)

    vlm = describer("vlm-local", bad, bad)
    with pytest.raises(AnswerError, match=message) as error:
        vlm.describe(window)
    assert (len(vlm.engine.asked), error.value.attempts, error.value.raw) == (2, 2, bad)


def test_three_tries_are_the_most(describer, window):
    vlm = describer("vlm-local", "{", "null", "{", "never")
    with pytest.raises(TruncatedError) as error:
        vlm.describe(window)
    assert (error.value.attempts, vlm.engine.answers) == (3, ["never"])


def test_a_model_that_declines_is_not_asked_again(describer, window):
    vlm = describer("vlm-local", ("I cannot help with that.", "refused"))
    with pytest.raises(RefusedError, match="declined to answer: I cannot") as error:
        vlm.describe(window)
    assert (error.value.attempts, error.value.completion_tokens) == (1, 10)


def test_a_refused_request_is_not_sent_again_and_earlier_tries_count(describer, window):
    """B34: 400, 413 and 422 come as RequestError."""
    vlm = describer("vlm-local", "null", RequestError("too long"), "never")
    with pytest.raises(RequestError, match="too long") as error:
        vlm.describe(window)
    assert (error.value.attempts, error.value.prompt_tokens) == (2, 100)
    assert vlm.engine.answers == ["never"]


def test_an_engine_that_is_down_ends_more_than_the_window(describer, window):
    with pytest.raises(EngineDownError):
        describer("vlm-local", EngineDownError("gone")).describe(window)


def test_times_outside_the_window_are_left_out_and_counted(describer, window, local_answer):
    """B35."""
    changes = [
        (3.0, "shrunk"),
        (135.2, "the door opens"),
        (9999, "late"),
        ("02:15", "it rings"),
        ("2:01.8", "light"),
    ]
    made = describer("vlm-local", local_answer(changes=[{"t": t, "what": w} for t, w in changes])).describe(
        window
    )
    assert made.record.changes == ("at 2:01.8: light", "at 2:15.0: it rings", "at 2:15.2: the door opens")
    assert "shrunk" not in made.text + made.record.model_dump_json()
    assert (made.flags, made.message) == (("times_dropped",), "2 times outside the window dropped")


def test_times_that_a_model_echoes_are_those_of_the_frames(describer, window, local_answer):
    """B35: the model says back every time of its prompt."""

    def echo(request):
        labels = [part.removeprefix("Frame at ").rstrip(":") for part in request.texts[1:]]
        return local_answer(changes=[{"t": label, "what": f"event {i}"} for i, label in enumerate(labels)])

    made = describer("vlm-local", echo).describe(window)
    assert len(made.record.changes) == 8
    assert made.record.changes[3] == "at 2:13.1: event 3"


def test_too_many_large_frames_are_cut_before_the_call_and_the_entry_says_so(describer, draw, local_answer):
    """B34: 60 s at 2 frames a second of 4096 x 2160, where 8 images and 8,000 tokens are taken."""
    image = draw.picture((0, 80, 160), height=2160, width=4096)
    frames = draw.in_time([image] * 120, start_us=0, step_us=500_000)

    def server(request):
        tokens = sum(-(-p.width // 32) * -(-p.height // 32) for p in request.pictures)
        too_much = len(request.pictures) > 8 or tokens + sum(map(len, request.texts)) / 4 > 8000
        return RequestError("over the limit") if too_much else local_answer()

    vlm = describer("vlm-local", server, max_frames=8, max_prompt_tokens=8000)
    made = vlm.describe(WindowInput(Span(0, 60 * US), frames=frames))
    size = f"{made.shown[0].width}x{made.shown[0].height}"
    assert (made.flags, made.message) == (("frames_dropped",), f"8 of 120 frames were shown, at {size}")
    assert not made.is_partial
    assert made.shown[0].time_s < 20 < 40 <= made.shown[-1].time_s


def most(images, answer):
    """Takes so many images in a request, and not one more."""

    def reply(request):
        too_many = len(request.pictures) > images
        return TooLongError(f"at most {images} images") if too_many else answer

    return reply


def test_a_prompt_that_is_too_long_is_sent_once_more_with_half_the_frames(describer, window, local_answer):
    """B34."""
    at = {"changes": [{"t": t, "what": w} for t, w in (("2:01.8", "dark"), ("2:05.6", "light"))]}
    server = most(7, local_answer(**at))
    vlm = describer("vlm-local", server, server)
    made = vlm.describe(window)
    first, second = vlm.engine.asked
    labels = [part for part in second.parts if isinstance(part, str)]
    assert labels == ["Frame at 2:05.6:", "Frame at 2:13.1:", "Frame at 2:20.6:", "Frame at 2:28.1:"]
    assert [isinstance(part, str) for part in second.parts] == [True, False] * 4
    assert second.pictures == first.pictures[1::2]
    assert [frame.time_us for frame in made.shown] == [frame.time_us for frame in window.frames[1::2]]
    assert (made.flags, made.attempts) == (("frames_dropped",), 2)
    assert made.message.startswith("4 of 8 frames were shown, at ")
    assert made.message.endswith("asked again: at most 7 images")
    assert made.record.changes == ("at 2:01.8: dark", "at 2:05.6: light")


def test_a_prompt_that_stays_too_long_is_not_sent_a_third_time(describer, window, local_answer):
    """B34."""
    server = most(3, local_answer())
    vlm = describer("vlm-local", server, server, "never")
    with pytest.raises(TooLongError, match="at most 3 images") as error:
        vlm.describe(window)
    assert (error.value.attempts, vlm.engine.answers) == (2, ["never"])


@pytest.mark.parametrize(("frames", "options"), [(1, {}), (3, {"min_frames": 2})])
def test_a_prompt_that_is_too_long_with_the_fewest_frames_is_sent_once(
    describer, window, local_answer, frames, options
):
    server = most(0, local_answer())
    vlm = describer("vlm-local", server, **options)
    with pytest.raises(TooLongError) as error:
        vlm.describe(WindowInput(SPAN, frames=window.frames[:frames]))
    assert error.value.attempts == 1


def test_an_answer_that_was_cut_may_find_too_little_room_for_a_longer_one(describer, window, local_answer):
    """A server counts the tokens of the answer into its context."""
    no_room = TooLongError("maximum context length")
    vlm = describer("vlm-local", ('{"objects": ["a', "length"), no_room, local_answer())
    made = vlm.describe(window)
    last = vlm.engine.asked[-1]
    assert (len(last.pictures), last.max_tokens, last.parts[-1]) == (4, 2400, prompt_text("shorter"))
    assert (made.attempts, made.flags) == (3, ("frames_dropped",))


@pytest.mark.parametrize(("width", "height"), [(2048, 8), (2, 2), (1, 1), (8, 2048)])
def test_odd_shapes_are_shown(describer, draw, local_answer, width, height):
    frames = draw.in_time([draw.picture(height=height, width=width)], start_us=SPAN.start_us)
    vlm = describer("vlm-local", local_answer())
    assert vlm.describe(WindowInput(SPAN, frames=frames)).record
    (picture,) = vlm.engine.asked[0].pictures
    assert min(picture.width, picture.height) >= 32


def test_replaced_characters_are_flagged(describer, window, local_answer):
    made = describer("vlm-local", local_answer(objects=["a\x00b", "c\ud800"])).describe(window)
    assert (made.record.objects, made.flags) == (("a\ufffdb", "c\ufffd"), ("characters_replaced",))
    made.text.encode()


def test_all_its_flags_are_known():
    assert {
        "frames_dropped",
        "times_dropped",
        "dialogue_cut",
        "characters_replaced",
        "nothing_visible",
    } <= set(FLAGS)


def test_the_engine_is_checked_once_with_a_picture_and_the_real_schema(describer):
    vlm = describer("vlm-local")
    vlm.check()
    vlm.check()
    (request,) = vlm.engine.checked
    assert request.schema == vlm.schema
    assert request.pictures[0].jpeg[:2] == b"\xff\xd8"
    assert len(request.pictures) == 8, "as many as the scale takes of a window"
    assert (vlm.slots, vlm.served_by) == (3, vlm.engine)


def test_the_engine_is_checked_with_no_more_pictures_than_the_budget_lets_through(describer):
    vlm = describer("vlm-local", max_frames=3)
    vlm.check()
    assert len(vlm.engine.checked[0].pictures) == 3
    vlm = describer("vlm-local", max_frames=1, min_frames=2)
    vlm.check()
    assert len(vlm.engine.checked[0].pictures) == 2


@pytest.mark.parametrize("domain", [name for name in Domain.__args__ if name])
def test_a_domain_adds_its_note_and_is_another_producer(describer, domain):
    vlm, plain = describer("vlm-local", domain=domain), describer("vlm-local")
    note = vlm.system.removeprefix(plain.system).strip()
    assert len(note) > 50
    assert vlm.facts()["prompt"] != plain.facts()["prompt"]


def _producer(profile, **options):
    from evicat.catalog.kit import Kit

    scale = Scale(
        kind="local", window_seconds=4, describer="vlm-local", frames={}, options={"model": "m", **options}
    )
    with Kit(Recipe(name="r", scales=(scale,)), profile) as kit:
        return kit.local["local-4s"]


def test_where_it_runs_is_no_part_of_the_producer_and_what_it_is_asked_is(monkeypatch):
    def profile(**where):
        return Profile(engines={"*": ModelProfile(endpoint="http://127.0.0.1:1/v1", **where)})

    one = _producer(profile())
    other = profile(alias="x", concurrency=64, timeout_seconds=5)
    assert _producer(other.model_copy(update={"videos_at_once": 9})).producer_id == one.producer_id
    assert one.model == ModelRef(name="m")
    assert not {"model", "revision", "quantization"} & set(one.options["describer"])
    ids = {one.producer_id}
    for options in (
        {"max_tokens": 900},
        {"temperature": 0.5},
        {"quantization": "fp8"},
        {"revision": "abc"},
        {"jpeg_quality": 80},
    ):
        ids.add(_producer(profile(), **options).producer_id)
    monkeypatch.setattr("evicat.catalog.describers.chat.prompt_text", lambda name: "Another prompt.")
    ids.add(_producer(profile()).producer_id)
    assert len(ids) == 7


def test_the_prompt_names_every_field_that_the_answer_needs(describer):
    vlm = describer("vlm-local")
    assert [name for name in vlm.schema["properties"] if f"`{name}`" not in vlm.system] == []


def test_an_unbound_describer_says_so(draw):
    from evicat.catalog.describers.vlm_local import VlmLocal, VlmLocalOptions

    frames = draw.in_time([np.zeros((8, 8, 3), np.uint8)])
    with pytest.raises(RuntimeError, match="call bind"):
        VlmLocal(VlmLocalOptions(model="m"), Profile()).describe(WindowInput(SPAN, frames=frames))


@pytest.mark.parametrize("seed", [2**63 - 1, -(2**63) - 1])
def test_a_seed_that_no_engine_could_take_is_told_by_the_recipe(seed):
    with pytest.raises(ValidationError, match="seed"):
        ChatOptions(model="m", seed=seed)
