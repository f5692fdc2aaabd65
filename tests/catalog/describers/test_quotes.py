from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.describers.quotes import quotes
from evicat.schemas.grid import windows
from evicat.schemas.records import SpeechSegment, Word
from evicat.schemas.span import Span

FIRST, SECOND = Span.from_seconds(0, 10), Span.from_seconds(10, 20)


def spoken(start_s, *texts, step_s=1.0, **facts):
    """A segment whose words take ``step_s`` each."""
    words = tuple(
        Word(start_s=start_s + i * step_s, end_s=start_s + (i + 1) * step_s, text=text)
        for i, text in enumerate(texts)
    )
    given_facts = {"source": "faster-whisper", "text": "".join(texts).strip(), "words": words} | facts
    return SpeechSegment(start_s=start_s, end_s=words[-1].end_s, **given_facts)


def cue(start_s, end_s, text, **facts):
    return SpeechSegment(start_s=start_s, end_s=end_s, text=text, source="subtitles:film.srt", **facts)


def texts(speech, window):
    return [quote.text for quote in quotes(speech, window)]


def test_a_sentence_across_the_border_is_divided_between_words():
    segment = spoken(7.2, " Well,", " I", ' "never"', " said", " that.")
    assert texts([segment], FIRST) == ['Well, I "never"']
    assert texts([segment], SECOND) == ["said that."]
    (first,), (second,) = quotes([segment], FIRST), quotes([segment], SECOND)
    assert str(first.span) == "0:00:07.200-0:00:10.200"
    assert str(second.span) == "0:00:10.200-0:00:12.200"


def test_a_word_on_the_border_goes_where_its_middle_is_and_is_not_cut():
    segment = spoken(9.5, " Goodbye", step_s=1.0)
    assert texts([segment], FIRST) == []
    assert texts([segment], SECOND) == ["Goodbye"]


def test_languages_without_blanks_are_divided_too():
    segment = spoken(8.0, "你好", "世界", "再见。")
    assert texts([segment], FIRST) == ["你好世界"]
    assert texts([segment], SECOND) == ["再见。"]


def test_a_cue_without_words_goes_whole_where_its_middle_is():
    early, late = cue(7, 12, "Wait\n for me!"), cue(8, 12, "Here.")
    assert texts([early, late], FIRST) == ["Wait for me!"]
    assert texts([early, late], SECOND) == ["Here."]


def test_words_that_do_not_make_the_text_divide_nothing():
    segment = spoken(7.2, " Well,", " I", " never", " said", " that.", text="Well, I have never said that.")
    assert texts([segment], FIRST) == ["Well, I have never said that."]
    assert texts([segment], SECOND) == []


@pytest.mark.parametrize("flag", ["repeated", "unsure_speech"])
def test_doubtful_speech_is_not_quoted(flag):
    assert texts([cue(1, 2, "Thank you for watching.", flags=(flag,))], FIRST) == []


def test_other_flags_do_not_silence():
    assert texts([cue(1, 2, "Hello.", flags=("word_times_estimated",))], FIRST) == ["Hello."]


def test_quotes_come_in_time_order():
    assert texts([cue(5, 6, "two"), cue(1, 2, "one")], FIRST) == ["one", "two"]


@given(
    lengths_ms=st.lists(st.integers(1, 3000), min_size=1, max_size=30),
    start_ms=st.integers(0, 5000),
    window_ms=st.integers(500, 20_000),
)
def test_every_word_is_quoted_in_exactly_one_window(lengths_ms, start_ms, window_ms):
    edges = [start_ms]
    for length in lengths_ms:
        edges.append(edges[-1] + length)
    words = tuple(
        Word(start_s=a / 1000, end_s=b / 1000, text=f" w{i}") for i, (a, b) in enumerate(pairwise(edges))
    )
    text = "".join(word.text for word in words).strip()
    segment = SpeechSegment(
        start_s=edges[0] / 1000, end_s=edges[-1] / 1000, text=text, words=words, source="stub"
    )
    found = [
        quote for window in windows(edges[-1] * 1000, window_ms * 1000) for quote in quotes([segment], window)
    ]
    assert " ".join(quote.text for quote in found) == text
    assert all(quote.text in text for quote in found)
