"""What counts as an answer (faults B32 and B33), and which times count (B35)."""

import json
import time

import pytest

from evicat.catalog.answers import CutAnswerError, read_answer, repetition, schema_of
from evicat.catalog.describers.shown_times import ShownTimes
from evicat.catalog.describers.vlm_local import LocalAnswer
from evicat.catalog.describers.vlm_narrative import NarrativeAnswer
from evicat.schemas.errors import AnswerError
from evicat.schemas.span import US, Span

TOLD = '{"narrative": "She leaves.", "cast": []}'


@pytest.mark.parametrize(
    "text",
    [
        TOLD,
        f"\n {TOLD} \n",
        f"```json\n{TOLD}\n```",
        f"```\n{TOLD}\n```\n",
        f"<think>Is it {{her}}?</think>{TOLD}",
        f"<think>\n</think>\n\n```json\n{TOLD}\n```",
        f"She may stay.</think>{TOLD}",
        f"<think>a</think> <think>b</think>\n{TOLD}",
        f"<think>The tag <think> begins it.</think>{TOLD}",
        f"```JSON {TOLD}```",
    ],
)
def test_thoughts_and_fences_are_taken_off(text):
    assert read_answer(text, NarrativeAnswer)[0].narrative == "She leaves."


@pytest.mark.parametrize("fence", ["", "```"])
def test_the_mark_of_thoughts_inside_the_json_is_text(fence):
    told = '{"narrative": "It reads </think> on a wall.", "cast": []}'
    answer, _ = read_answer(f"{fence}{told}{fence}", NarrativeAnswer)
    assert "</think>" in answer.narrative


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 200_000,
        " " * 200_000 + "x",
        "```json\n{" + "\n" * 200_000 + "x",
        "</think>" * 50_000,
        "<think>" * 50_000,
        "`" * 200_000,
        "[" * 200_000,
        '{"a":' * 100_000,
        "{" + ",".join(f'"k{number}": 1' for number in range(20_000)) + ', "k1": 1}',
        json.dumps({"narrative": "word " * 200_000, "cast": []}),
    ],
)
def test_a_flood_is_an_error_at_once(text):
    started = time.process_time()
    with pytest.raises(AnswerError):
        read_answer(text, NarrativeAnswer)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("<think>no</think>", "empty"),
        ("null", "not a JSON object but 'null'"),
        ("[]", "not a JSON object"),
        (f"[{TOLD}]", "not a JSON object"),
        (f"{TOLD}{TOLD}", "goes on after its JSON object"),
        (f"Here it is: {TOLD}", "not JSON"),
        ('{"narrative": "a"}', "cast: Field required"),
        ('{"narrative": 3, "cast": []}', "narrative: .*valid string.*got 3"),
        ('{"narrative": "a", "cast": [], "mood": "sad"}', "mood: Extra"),
        ('{"narrative": " ", "cast": []}', "blank"),
        ('{"narrative": NaN, "cast": []}', "NaN is not a number"),
        ("[" * 100_000, "not JSON"),
        ('{"narrative": ' + "[" * 900 + "]" * 900 + "}", "nested too deeply"),
        ('{"narrative": "a", "narrative": "b", "cast": []}', "the key 'narrative' stands in it twice"),
        ('{"narrative": "...", "cast": []}', "holds no words"),
        (json.dumps({"narrative": "No. " * 60, "cast": []}), "60 sentences, of which 1 differ"),
        (
            json.dumps({"narrative": "a", "cast": [{"name": "b", "descriptor": "", "formerly": ""}] * 21}),
            "cast: ",
        ),
        (json.dumps({"narrative": "ab " * 3000, "cast": []}), "narrative: .*6000"),
    ],
)
def test_anything_else_than_one_fitting_object_is_an_error(text, message):
    with pytest.raises(AnswerError, match=message) as error:
        read_answer(text, NarrativeAnswer)
    assert not isinstance(error.value, CutAnswerError)


@pytest.mark.parametrize(
    "text",
    [
        '{"narrative": "A man wal',
        "{" + "\n" * 8000,
        '{"narrative": "a",',
        "<think>Well",
        f"```json\n{TOLD[:-1]}",
    ],
)
def test_an_end_before_the_json_ends_is_a_cut(text):
    with pytest.raises(CutAnswerError):
        read_answer(text, NarrativeAnswer)


def test_characters_that_no_text_may_hold_are_replaced():
    answer, is_cleaned = read_answer('{"narrative": "a\\u0000b\\ud83dc", "cast": []}', NarrativeAnswer)
    assert (answer.narrative, is_cleaned) == ("a\ufffdb\ufffdc", True)
    assert read_answer(TOLD, NarrativeAnswer)[1] is False
    control, is_cleaned = read_answer(
        '{"narrative": "a\\u001b[31mb\\u009bc\\td", "cast": []}', NarrativeAnswer
    )
    assert (control.narrative, is_cleaned) == ("a\ufffd[31mb\ufffdc\td", True)
    emoji, is_cleaned = read_answer('{"narrative": "a \\ud83d\\ude00", "cast": []}', NarrativeAnswer)
    assert (emoji.narrative, is_cleaned) == ("a \U0001f600", False)


@pytest.mark.parametrize(
    "value",
    [
        {"scene": "A man walks on. " * 20},
        {"scene": "He sits down there. Then she comes. " * 4},
        {"scene": "the man and the dog and " * 30},
        {"objects": ["a mug", "a cup", "a mug", "a mug"]},
        {"people": [{"descriptor": "a man", "details": []}] * 5},
    ],
)
def test_loops_are_found(value):
    assert repetition(value)


@pytest.mark.parametrize(
    "value",
    [
        {"scene": "No, no, no, he says. She nods. He waits. She nods. He goes."},
        {
            "people": [
                {"descriptor": f"soldier {i}", "details": ["a green uniform with a cap"]} for i in range(9)
            ]
        },
        {"objects": ["a mug", "a mug"], "actions": []},
    ],
)
def test_what_people_write_is_no_loop(value):
    assert repetition(value) == ""


def test_the_schema_bounds_every_list_and_text_and_requires_every_field():
    def check(part):
        if part.get("type") == "array":
            assert part["maxItems"]
        if part.get("type") == "string":
            assert part["maxLength"]
        if part.get("type") == "object":
            assert part["required"] == list(part["properties"])
            assert part["additionalProperties"] is False
        for name, each in part.items():
            for inner in (
                each.values()
                if name in ("properties", "$defs")
                else [each, *(each if isinstance(each, list) else [])]
            ):
                if isinstance(inner, dict):
                    check(inner)

    for answer in (LocalAnswer, NarrativeAnswer):
        check(schema_of(answer))
        assert "title" not in schema_of(answer)


def test_times_are_brought_back_to_the_clock_of_the_frames():
    """B35: a window of 120 to 150 s; a frame at 135.267 s is shown as 2:15.2."""
    times = ShownTimes(Span(120 * US, 150 * US), [135_267_000])
    assert times.read("2:15.2") == 135_267_000
    assert times.read(135.2) == times.read("2:15.20") == 135_200_000
    assert times.read("02:15") == times.read("0:02:15") == times.read(135) == 135 * US
    assert times.read(119.95) == 120 * US, "printed times are cut to the tenth"
    assert times.read(150) == 150 * US - 1
    assert times.dropped == 0
    assert [times.read(t) for t in (3.0, 9999, -1, "2:75", "soon", "", 1e300, "1e3")] == [None] * 8
    assert times.dropped == 8


def test_equal_verdicts_and_scores_are_no_repetition():
    assert repetition({"visible": [True, True, True, True], "scores": [1, 1, 1, 0.5, 1]}) == ""
    assert repetition({"visible": ["a door", "a door", "a door", "a door"]})
