"""Tools over a real catalog: what they return, their limits, and calls that are wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.readers.crop_video import CAPS, FPS, MOST, crop_times
from evicat.readers.looking import shares
from evicat.readers.session import LONGEST_CALL, Limits, Session
from evicat.readers.tool import TOOLS, CallError
from evicat.readers.trace import Trace
from evicat.schemas.errors import UnknownNameError, UnreadableMediaError, UsageError
from evicat.schemas.span import US, Span

from ..viewer.gallery import BROKEN, VIDEO

CROP = {"start_time": 0, "end_time": 4, "sampling_strategy": "coarse"}


def test_every_tool_has_a_closed_schema():
    assert set(TOOLS) == {
        "GlobalBrowse",
        "ClipSearch",
        "FrameInspect",
        "VisualRetrieve",
        "VisualInspect",
        "crop_video",
    }
    for tool in TOOLS.values():
        schema = tool.Arguments.model_json_schema()
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert tool.description


def test_a_session_needs_a_video_that_is_there(opened):
    with pytest.raises(UnknownNameError, match="nowhere"):
        Session(opened, "nowhere.mp4")
    with pytest.raises(UnreadableMediaError, match=BROKEN):
        Session(opened, BROKEN)


def test_the_whole_video_is_seen_at_once(session, shown):
    step = session.call("GlobalBrowse", {"query": "a man with a bag"})
    assert step.error == ""
    assert step.entry_ids == shown.narratives
    assert "2 of 2 entries" in step.text
    assert step.boundary == "none"


def test_clips_are_found_in_time_order(session, shown):
    step = session.call("ClipSearch", {"query": "corridor platform gap", "top_k": 16})
    assert step.error == ""
    assert step.entry_ids
    assert list(step.spans) == sorted(step.spans)
    known = {*shown.narratives, *shown.locals, *shown.speech}
    assert set(step.entry_ids) <= known
    assert "no vectors" in step.text


def test_frames_are_those_of_the_ranges(session):
    ranges = [{"start": 0, "end": 2}, {"start": 6, "end": 8}]
    step = session.call("FrameInspect", {"question": "what?", "ranges": ranges})
    assert [time for _, time in step.frames] == [0.5, 1.5, 6.5, 7.5]
    assert [frame.pts for frame in session.returned.pictures] == [pts for pts, _ in step.frames]
    assert step.boundary == "none"


def test_ranges_share_the_frames(opened):
    session = Session(opened, VIDEO, limits=Limits(inspect_frames=3, visual_frames=2))
    one = {"start": 0, "end": 8}
    assert len(session.call("FrameInspect", {"question": "q", "ranges": [one]}).frames) == 3
    assert len(session.call("FrameInspect", {"question": "q", "ranges": [one, one]}).frames) <= 3
    step = session.call("FrameInspect", {"question": "q", "ranges": [one] * 4})
    assert not step.valid
    assert "at most 3 frames" in step.error


@given(st.lists(st.floats(1e-3, 1e5), min_size=1, max_size=50), st.integers(50, 64))
def test_shares_stay_within_the_pool(lengths, pool):
    dealt = shares(lengths, pool)
    assert sum(dealt) <= pool
    assert min(dealt) >= 1


def test_a_model_observes(opened, scripted):
    with scripted({"field": "observation", "answer": {"observation": "a test card"}}) as llm:
        session = Session(opened, VIDEO, llm=llm)
        step = session.call("FrameInspect", {"question": "q", "ranges": [{"start": 0, "end": 1}]})
    assert step.text == "a test card"
    assert step.boundary == "options"
    assert step.tokens[0] > 0


def test_a_model_judges(opened, scripted):
    verdict = {"sufficient": True, "feedback": "it is clear", "answer": "B"}
    with scripted({"field": "sufficient", "answer": verdict}) as llm:
        session = Session(opened, VIDEO, llm=llm, limits=Limits(visual_frames=4))
        step = session.call("VisualInspect", {"question": "q", "spans": [{"start": 0, "end": 8}]})
    assert json.loads(step.text) == verdict
    assert len(step.frames) == 4
    assert step.boundary == "options"


@pytest.mark.parametrize("name", ["VisualInspect", "VisualRetrieve"])
def test_without_a_model_it_says_so_and_the_call_is_no_worse(session, name):
    given_ = {"question": "q", "spans": [{"start": 0, "end": 1}]}
    step = session.call(name, given_ if name == "VisualInspect" else {"query": "q"})
    assert step.valid
    assert "llm=" in step.error
    assert step.text == step.error


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({**CROP, "start_time": 4, "end_time": 2}, "0 <= start < end"),
        ({**CROP, "start_time": 4, "end_time": 4}, "0 <= start < end"),
        ({**CROP, "end_time": 8.5}, "0 <= start < end"),
        ({**CROP, "start_time": -1}, "0 <= start < end"),
        ({**CROP, "start_time": 1, "end_time": 1.0000001}, "0 <= start < end"),
        ({**CROP, "end_time": 1e308}, "0 <= start < end"),
        ({**CROP, "end_time": float("nan")}, "finite"),
        ({**CROP, "end_time": "4"}, "end_time"),
        ({**CROP, "end_time": True}, "end_time"),
        ({**CROP, "sampling_strategy": "finest"}, "sampling_strategy"),
        ({**CROP, "more": 1}, "more"),
        ({"start_time": 0}, "end_time"),
        ({**CROP, "end_time": object()}, "not JSON"),
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[]", "object"),
        ("[" * 10_000, "not JSON"),
        ('{"start_time": 0, "start_time": 1}', "twice"),
        ("9" * 5000, "not JSON"),
        ("x" * (LONGEST_CALL + 1), "at most"),
        ('{"start_time": "\ud800"}', "crop_video"),
    ],
)
def test_a_wrong_crop_is_counted_and_never_repaired(session, given_, told):
    step = session.call("crop_video", given_)
    assert not step.valid
    assert told in step.error
    assert step.error_class == "CallError"
    assert step.frames == ()
    assert session.returned is None
    assert session.trace.steps == (step,)
    assert Trace.from_json(session.trace.to_json()) == session.trace


def test_an_unknown_tool_names_the_known_ones(session):
    step = session.call("crop", {})
    assert not step.valid
    assert "crop_video" in step.error


def test_the_end_of_the_video_is_legal(session):
    step = session.call("crop_video", {**CROP, "start_time": 4, "end_time": session.duration_s})
    assert step.valid
    assert len(step.frames) == 4
    assert all(4 <= time < session.duration_s for _, time in step.frames)


@pytest.mark.parametrize(("strategy", "count"), [("coarse", 8), ("medium", 16), ("fine", 32)])
def test_both_samplers_show_what_they_promise(opened, strategy, count):
    whole = {"start_time": 0, "end_time": 8, "sampling_strategy": strategy}
    for sampler in ("fps", "cap"):
        step = Session(opened, VIDEO, limits=Limits(crop_sampler=sampler)).call("crop_video", whole)
        assert len(step.frames) == count


@given(st.integers(0, 10**10), st.integers(1, 10**10), st.sampled_from(list(FPS)))
def test_crop_times_lie_inside_and_within_the_caps(start, length, density):
    span = Span(start, start + length)
    by_fps, by_cap = (crop_times(span, density, sampler) for sampler in ("fps", "cap"))
    for times in (by_fps, by_cap):
        assert list(times) == sorted(set(times))
        assert all(time in span for time in times)
    assert len(by_fps) <= min(MOST, max(1, length * FPS[density] / US + 1))
    assert len(by_cap) == min(CAPS[density], len(by_cap))
    assert length < CAPS[density] or len(by_cap) == CAPS[density]


def test_a_trace_says_what_it_read(session):
    session.call("crop_video", CROP)
    trace = session.trace
    assert (trace.version, trace.view, trace.video) == (session.catalog.version, "default", VIDEO)
    assert trace.question == "What is shown?"
    assert Trace.from_json(trace.to_json()) == trace


def test_limits_are_checked():
    with pytest.raises(UsageError, match="inspect_frames"):
        Limits(inspect_frames=0)
    with pytest.raises(CallError, match="fewer ranges"):
        shares([1.0, 1.0], 1)
