"""Where sentences end: what is cut, what is not, and that nothing gets lost."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.sentences import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She leaves. He stays!", ["She leaves.", "He stays!"]),
        ("Does he? He does.", ["Does he?", "He does."]),
        ("Dr. Lee nods. Mr. J. R. Smith does not.", ["Dr. Lee nods.", "Mr. J. R. Smith does not."]),
        ("It costs 3.50 dollars. Page No. 5 is gone.", ["It costs 3.50 dollars.", "Page No. 5 is gone."]),
        ("0:03.2-0:04.1: a car passes. Rain falls.", ["0:03.2-0:04.1: a car passes.", "Rain falls."]),
        ("Fruits, e.g. Apples, lie there. So do nuts.", ["Fruits, e.g. Apples, lie there.", "So do nuts."]),
        ("They meet at 5 p.m. Then they eat.", ["They meet at 5 p.m.", "Then they eat."]),
        ('"Stop. Go home," she says. He goes.', ['"Stop. Go home," she says.', "He goes."]),
        ('She says "Stop." He goes.', ['She says "Stop."', "He goes."]),
        ("He said: \u201cNo. Never.\u201d Silence.", ["He said: \u201cNo. Never.\u201d", "Silence."]),
        ('A 5" screen glows. It dims.', ['A 5" screen glows.', "It dims."]),
        (
            "She waits... then runs. He waits... Nothing.",
            ["She waits... then runs.", "He waits...", "Nothing."],
        ),
        ("(A door shuts.) They sit.", ["(A door shuts.)", "They sit."]),
        (
            'A voice says: "Yes." (0:01.0) and "No." (0:03.0). (A door shuts.)',
            ['A voice says: "Yes." (0:01.0) and "No." (0:03.0).', "(A door shuts.)"],
        ),
        ("(He left.) (Nobody saw it.)", ["(He left.)", "(Nobody saw it.)"]),
        ("1. He sits. 2. She stands.", ["1. He sits.", "2. She stands."]),
        ("One line\nand another", ["One line", "and another"]),
        ("他走了。她留下。", ["他走了。", "她留下。"]),
        ("No end", ["No end"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_sentences_end_where_people_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet="aB1 .!?\"'\u201c\u201d\u3002\n(,", max_size=60))
def test_together_they_are_the_whole_text(text: str) -> None:
    found = sentences(text)
    assert re.sub(r"\s", "", "".join(found)) == re.sub(r"\s", "", text)
    assert all(each == each.strip() and each for each in found)


@pytest.mark.parametrize("text", ["." * 20_000, "?!" * 10_000 + '"' * 10_000, "a" + "." * 20_000 + "b"])
def test_a_run_of_marks_takes_no_longer_than_words_do(text: str) -> None:
    started = time.process_time()
    assert sentences(text) == [text]
    assert time.process_time() - started < 3
