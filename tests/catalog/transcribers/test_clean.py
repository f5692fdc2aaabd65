"""Rules between what a transcriber reports and what is stored, on made-up reports."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.transcribers.base import RawSegment, RawWord
from evicat.catalog.transcribers.clean import MIN_S, clean, transcribe_pieces
from evicat.schemas.span import US, Span

RATE = 16_000
BLOCK = Span(0, 30 * US)
LATER = Span(300 * US, 330 * US)


def raw(start, end, text, **facts) -> RawSegment:
    return RawSegment(start, end, text, **facts)


def spoken(text: str, *times: tuple[float | None, float | None]) -> RawSegment:
    words = tuple(RawWord(a, b, f" {w}", 0.9) for w, (a, b) in zip(text.split(), times, strict=True))
    return RawSegment(times[0][0], times[-1][1], f" {text}", words)


def rows(segments):
    return [(s.start_s, s.end_s, s.text) for s in segments]


def test_impossible_times():
    reported = [
        (29.0, 31.5, "a"),
        (12, 11, "b"),
        (5, 5, "c"),
        (None, None, "2026"),
        (20, 22, "d"),
        (18, 19, "e"),
        (40, 41, "z"),
        (-0.5, 1, "f"),
        (math.nan, 3, "g"),
    ]
    found = clean([raw(*row) for row in reported], BLOCK, "stub")
    assert rows(found.segments) == [
        (0, 1, "f"),
        (5, 5 + MIN_S, "c"),
        (5, 20, "2026"),
        (11, 12, "b"),
        (18, 19, "e"),
        (20, 22, "d"),
        (29, 30, "a"),
    ]
    assert found.rejected == {"outside the block": 1, "times not finite": 1}
    flagged = {s.text for s in found.segments if "word_times_estimated" in s.flags}
    assert flagged == {"b", "c", "2026"}


def test_times_are_moved_to_the_timeline():
    segment = spoken("good day", (1.5, 1.75), (2.0, 2.5))
    (found,) = clean([segment], LATER, "stub").segments
    assert (found.start_s, found.end_s, found.text, found.source) == (301.5, 302.5, "good day", "stub")
    assert [(w.start_s, w.end_s, w.text) for w in found.words] == [
        (301.5, 301.75, " good"),
        (302.0, 302.5, " day"),
    ]
    assert found.flags == ()


TIME = st.one_of(st.none(), st.floats(-50, 80), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 30.0]))
WORD = st.builds(RawWord, TIME, TIME, st.sampled_from([" a", " b,", " ", ""]), st.none())
SEGMENT = st.builds(
    RawSegment, TIME, TIME, st.sampled_from([" a b", "ä!", "...", " "]), st.lists(WORD, max_size=6).map(tuple)
)


@given(st.lists(SEGMENT, max_size=8))
def test_whatever_is_reported_what_is_stored_is_possible(reported):
    found = clean(reported, LATER, "stub")
    starts = [segment.start_s for segment in found.segments]
    assert starts == sorted(starts)
    for segment in found.segments:
        assert 300 <= segment.start_s < segment.end_s <= 330
        times = [time for word in segment.words for time in (word.start_s, word.end_s)]
        assert all(segment.start_s <= time <= segment.end_s for time in times)
        assert all(a.start_s <= b.start_s for a, b in itertools.pairwise(segment.words))


INSIDE = st.one_of(st.none(), st.floats(0, 29.9))


@given(st.lists(st.lists(st.tuples(INSIDE, INSIDE), min_size=1, max_size=6), max_size=8))
def test_no_word_is_lost_or_doubled_whatever_its_times(times):
    numbers = itertools.count()
    reported = [spoken(" ".join(f"w{next(numbers)}" for _ in row), *row) for row in times]
    found = clean(reported, LATER, "stub")
    assert not found.rejected
    said = [word.text for segment in found.segments for word in segment.words]
    assert sorted(said) == sorted(f" w{i}" for i in range(next(numbers)))
    for segment in found.segments:
        assert segment.text == "".join(word.text for word in segment.words).strip()


def test_words_without_times_share_what_their_neighbours_leave():
    segment = spoken("on 4 5 July", (1.0, 1.2), (None, None), (None, None), (1.8, 2.0))
    (found,) = clean([segment], BLOCK, "stub").segments
    assert [(w.start_s, w.end_s) for w in found.words] == [(1.0, 1.2), (1.2, 1.5), (1.5, 1.8), (1.8, 2.0)]
    assert found.flags == ("word_times_estimated",)


def test_words_out_of_order_keep_the_order_of_the_text():
    segment = spoken("one two three", (1.0, 1.4), (0.5, 0.6), (1.6, 2.0))
    (found,) = clean([segment], BLOCK, "stub").segments
    assert [w.text for w in found.words] == [" one", " two", " three"]
    assert [w.start_s for w in found.words] == [1.0, 1.0, 1.6]
    assert found.flags == ("word_times_estimated",)


def test_a_segment_is_divided_at_a_pause():
    segment = spoken("see you later then", (1, 1.2), (1.2, 1.5), (9, 9.4), (9.5, 9.8))
    assert rows(clean([segment], BLOCK, "stub").segments) == [
        (1, 1.5, "see you"),
        (9, 9.8, "later then"),
    ]


def test_text_without_a_word_is_rejected_and_counted():
    found = clean([raw(0, 1, " ."), raw(1, 2, "♪ ♪"), raw(2, 3, "日本語"), raw(3, 4, "42")], BLOCK, "stub")
    assert [segment.text for segment in found.segments] == ["日本語", "42"]
    assert found.rejected == {"no words": 2}


def flags_of(segments, flag):
    return [flag in segment.flags for segment in segments]


def test_a_line_that_returns_to_the_end_is_flagged():
    block = Span(0, 300 * US)
    lines = [raw(30 * i + 5, 30 * i + 7, "Thank you for watching.") for i in range(9)]
    found = clean([raw(1, 2, "Good morning."), *lines], block, "stub").segments
    assert flags_of(found, "repeated") == [False, *[True] * 9]


def test_a_chorus_sung_three_times_is_kept():
    lines = [raw(10 * i, 10 * i + 3, "We all live in a yellow submarine") for i in range(3)]
    assert not any(flags_of(clean(lines, BLOCK, "stub").segments, "repeated"))


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("you " * 200, True),
        ("Thank you for watching. " * 5, True),
        ("ありがとうございました。" * 20, True),
        ("No, no, no, no, no!", False),
        ("He said that that that is not what he had meant when he came to us in that winter.", False),
        ("Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily.", False),
    ],
)
def test_loops_inside_a_segment(text, loops):
    (found,) = clean([raw(0, 20, text)], BLOCK, "stub").segments
    assert ("repeated" in found.flags) is loops
    assert found.text == text.strip()


def test_a_loop_stays_flagged_after_its_segment_is_divided():
    starts = [0.5 * i + (2 if i >= 20 else 0) for i in range(40)]
    segment = spoken("you " * 40, *((start, start + 0.4) for start in starts))
    found = clean([segment], BLOCK, "stub").segments
    assert len(found) == 2
    assert flags_of(found, "repeated") == [True, True]


@pytest.mark.parametrize(
    ("silence", "words", "unsure"),
    [(0.9, -1.2, True), (0.9, None, True), (0.9, -0.2, False), (0.1, -1.2, False), (None, -1.2, False)],
)
def test_speech_that_the_model_doubts(silence, words, unsure):
    segment = raw(0, 1, "You", no_speech_probability=silence, average_log_probability=words)
    (found,) = clean([segment], BLOCK, "stub").segments
    assert ("unsure_speech" in found.flags) is unsure


class Stub:
    """Says when it was called, and hears one word where the first stretch of speech begins."""

    component = "stub"

    def __init__(self):
        self.calls = []

    def transcribe(self, samples, speech, language=None):
        self.calls.append((len(samples), language))
        start = speech[0][0] / RATE
        return [raw(start, start + 0.5, "word"), raw(start, start + 0.5, "...")]


@pytest.fixture
def long_sound(conversation):
    """Two blocks of speech with one of silence between them, for ``max_block_s=40``."""
    return np.concatenate([conversation, np.zeros(60 * RATE, np.float32), conversation[8 * RATE :]])


def test_blocks_become_segments_on_the_timeline(long_sound):
    stub = Stub()
    found = list(transcribe_pieces(stub, [(0, long_sound)], language="de", max_block_s=40))
    spans = [span for span, _ in found]
    assert spans[0].start_us == 0
    assert all(a.end_us == b.start_us for a, b in itertools.pairwise(spans))
    assert spans[-1].end_us == len(long_sound) * US // RATE
    assert [len(heard.segments) for _, heard in found] == [1, 0, 1]
    assert len(stub.calls) == 2
    assert {language for _, language in stub.calls} == {"de"}
    assert found[0][1].segments[0].start_s == pytest.approx(6.4, abs=0.1)
    assert found[2][1].segments[0].start_s == pytest.approx(89.6, abs=0.5)
    assert sum((heard.rejected for _, heard in found), Counter()) == {"no words": 2}


def test_blocks_that_are_there_are_not_transcribed_again(long_sound):
    whole = list(transcribe_pieces(Stub(), [(0, long_sound)], max_block_s=40))
    stub = Stub()
    skip = {whole[0][0].start_us, whole[1][0].start_us}
    rest = list(transcribe_pieces(stub, [(0, long_sound)], skip_starts=skip, max_block_s=40))
    assert rest == whole[2:]
    assert len(stub.calls) == 1
