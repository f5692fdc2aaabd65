"""A longer window told by a vision-language model, with dialogue, past and cast."""

import json
import random
import string

import pytest

from evicat.catalog.describers.base import Past, WindowInput
from evicat.catalog.describers.cast import Seen, running_cast
from evicat.catalog.tokens import text_tokens
from evicat.schemas.entry import Entry
from evicat.schemas.errors import AnswerError
from evicat.schemas.records import CastMember, SpeechSegment
from evicat.schemas.span import US, Span

SPAN = Span(60 * US, 90 * US)


def member(name, *, first=0.0, last=60.0, descriptor="", formerly=()):
    return CastMember(
        name=name, descriptor=descriptor, formerly=formerly, first_seen_s=first, last_seen_s=last
    )


@pytest.fixture
def frames(draw):
    images = [draw.textured(seed, height=90, width=160) for seed in range(16)]
    return draw.in_time(images, start_us=60_937_500, step_us=1_875_000)


def prompt(vlm):
    return "\n".join(vlm.engine.asked[-1].texts)


def test_the_paragraph_is_the_text_and_the_cast_is_kept(describer, frames, told):
    vlm = describer("vlm-narrative", told("She\nleaves.", ("Anna", "a tall woman"), ("the dog",)))
    made = vlm.describe(WindowInput(SPAN, frames=frames))
    assert made.text == made.record.narrative == "She leaves."
    assert made.record.cast == (
        member("Anna", first=60, last=90, descriptor="a tall woman"),
        member("the dog", first=60, last=90),
    )
    request = vlm.engine.asked[0]
    assert (len(request.pictures), request.temperature, request.max_tokens) == (16, 0.0, 1200)


def test_the_past_and_the_cast_so_far_are_told(describer, frames, told):
    past = Past(
        Span(30 * US, 60 * US), "Anna waits.", (member("Anna", descriptor="a tall woman"), member("a dog"))
    )
    vlm = describer("vlm-narrative", told())
    vlm.describe(WindowInput(SPAN, frames=frames, past=past))
    assert "What came before (0:30.0-1:00.0): Anna waits." in prompt(vlm)
    assert "- Anna: a tall woman\n- a dog" in prompt(vlm)
    assert "not described" not in prompt(vlm)


def test_after_a_gap_the_prompt_says_that_some_time_was_not_described(describer, frames, told):
    vlm = describer("vlm-narrative", told())
    vlm.describe(WindowInput(SPAN, frames=frames, past=Past(Span(0, 30 * US), "Anna waits.")))
    assert "The 30 seconds between that and this stretch were not described." in prompt(vlm)


def test_where_nothing_came_before_the_prompt_says_why(describer, frames, told):
    vlm = describer("vlm-narrative", told(), told())
    vlm.describe(WindowInput(SPAN, frames=frames))
    assert "Nothing before this stretch was described" in prompt(vlm)
    vlm.describe(WindowInput(Span(0, 30 * US), frames=frames))
    assert "This is the beginning of the video" in prompt(vlm)


@pytest.mark.parametrize("most", [1500, 20])
def test_of_a_long_past_the_end_is_told(describer, frames, told, most):
    story = " ".join(f"word{number}" for number in range(1000))
    vlm = describer("vlm-narrative", told(), past_characters=most)
    vlm.describe(WindowInput(SPAN, frames=frames, past=Past(Span(30 * US, 60 * US), story)))
    line = next(line for line in prompt(vlm).splitlines() if line.startswith("What came before"))
    shown = line.partition("): ")[2]
    assert most - 10 < len(shown) <= most
    assert shown.startswith("... word")
    assert story.endswith(shown.removeprefix("... "))


def test_dialogue_is_told_with_its_times_and_the_narrative_rests_on_it(describer, frames, told):
    said = [
        (65.0, 67.0, "Will you come?", ()),
        (70.0, 71.0, "Thank you.", ("unsure_speech",)),
        (89.5, 95.0, "No.", ()),
    ]
    speech = [SpeechSegment(start_s=a, end_s=b, text=t, source="x", flags=f) for a, b, t, f in said]
    entries = [
        Entry(
            entry_id=f"e{i}",
            unit_id="u",
            asset_id="a",
            producer_id="p",
            kind="speech",
            scale="speech",
            span=Span.from_seconds(each.start_s, each.end_s),
            text=each.text,
            flags=each.flags,
        )
        for i, each in enumerate(speech)
    ]
    vlm = describer("vlm-narrative", told())
    made = vlm.describe(WindowInput(SPAN, frames=frames, speech=tuple(speech), entries=tuple(entries)))
    assert '1:05.0-1:07.0 a voice says: "Will you come?"' in prompt(vlm)
    assert "Thank you" not in prompt(vlm)
    assert '"No."' not in prompt(vlm), "its middle lies in the next window"
    assert made.record.rests_on == ("e0",)


def test_endless_dialogue_is_cut_and_the_entry_says_so(describer, frames, told):
    speech = tuple(
        SpeechSegment(start_s=60 + i / 20, end_s=60.05 + i / 20, text=f"line {i} " + "blah " * 60, source="x")
        for i in range(600)
    )
    vlm = describer("vlm-narrative", told())
    made = vlm.describe(WindowInput(SPAN, frames=frames, speech=speech))
    assert made.flags == ("dialogue_cut",)
    assert "of 600 lines of dialogue were not shown" in made.message
    assert '"line 0 ' in prompt(vlm)
    assert '"line 599 ' not in prompt(vlm)
    assert len(prompt(vlm)) < 3 * 16_384 / 2


def test_a_story_of_many_long_windows_covers_each_of_them_within_its_bounds(describer, frames):
    """B34: 500 windows of 300 words and 20 newcomers each; no prompt grows with what came before."""
    windows = 500

    def tell(number):
        draw = random.Random(number)
        words = ["".join(draw.choices(string.ascii_lowercase, k=7)) for _ in range(300)]
        cast = [
            {"name": f"{one} of {number}", "descriptor": " ".join(draw.sample(words, 20)), "formerly": ""}
            for one in range(20)
        ]
        return json.dumps({"narrative": f"{number} {' '.join(words)}", "cast": cast})

    vlm = describer("vlm-narrative", *map(tell, range(windows)))
    past, prompts, packed = None, [], vlm.prepare(frames)
    for number in range(windows):
        span = Span(number * 60 * US, (number + 1) * 60 * US)
        made = vlm.describe(WindowInput(span, frames=packed, past=past))
        assert made.text.startswith(f"{number} ")
        assert len(made.record.cast) == 20
        past = Past(span, made.record.narrative, made.record.cast)
        prompts.append(sum(map(text_tokens, vlm.engine.asked[-1].texts)))
    assert len(vlm.engine.asked) == windows
    assert max(prompts) <= vlm.options.max_prompt_tokens / 2
    assert max(prompts[2:]) - min(prompts[2:]) < 100


def test_without_frames_nothing_is_asked(describer):
    vlm = describer("vlm-narrative")
    assert vlm.describe(WindowInput(SPAN)).record is None
    assert vlm.engine.asked == []


def test_a_blank_narrative_is_no_answer(describer, frames, told):
    with pytest.raises(AnswerError, match="blank"):
        describer("vlm-narrative", told(" "), told(" ")).describe(WindowInput(SPAN, frames=frames))


def test_it_reads_no_local_entries(describer):
    assert describer("vlm-narrative").reads == {"frames", "speech", "past"}


def test_the_cast_runs_on_over_windows():
    first = running_cast(
        (), [Seen("the man with the backpack", "brown coat"), Seen("Eve", "red hair")], Span(0, 30 * US), 20
    )
    second = running_cast(first, [Seen("a dog", "")], Span(30 * US, 60 * US), 20)
    assert [(m.name, m.first_seen_s, m.last_seen_s) for m in second] == [
        ("a dog", 30, 60),
        ("the man with the backpack", 0, 30),
        ("Eve", 0, 30),
    ]
    third = running_cast(second, [Seen("Paul", "", "the man with the backpack"), Seen("EVE", "")], SPAN, 20)
    assert third == (
        member("Paul", descriptor="brown coat", formerly=("the man with the backpack",), last=90),
        member("EVE", descriptor="red hair", last=90),
        member("a dog", first=30),
    )


def test_those_seen_longest_ago_leave_a_full_cast():
    before = tuple(member(f"old {i}", last=float(i)) for i in range(20))
    after = running_cast(before, [Seen("new", ""), Seen("old 3", "")], SPAN, 20)
    assert [m.name for m in after] == [
        "new",
        "old 3",
        *(f"old {i}" for i in range(19, 1, -1) if i != 3),
        "old 1",
    ]


def test_a_former_name_that_nobody_had_is_not_believed():
    (one,) = running_cast((), [Seen("Paul", "", "the king")], SPAN, 20)
    assert one.formerly == ()


def test_two_of_one_name_count_once_and_a_name_is_not_its_own_former_name():
    before = (member("Eve", descriptor="red hair"),)
    assert running_cast(before, [Seen("Eve", "", "eve"), Seen("eve", "other")], SPAN, 20) == (
        member("Eve", descriptor="red hair", last=90),
    )
