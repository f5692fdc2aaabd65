import pytest

from evicat.catalog.transcribers.sentences import sentences
from evicat.schemas.records import SpeechSegment, Word


def _segment(text: str, start_s: float, *, step_s: float = 0.4, **facts: object) -> SpeechSegment:
    """Words of 0.3 s, one every ``step_s``."""
    words = tuple(
        Word(start_s=start_s + i * step_s, end_s=start_s + i * step_s + 0.3, text=f" {word}")
        for i, word in enumerate(text.split())
    )
    end_s = words[-1].end_s
    return SpeechSegment(start_s=start_s, end_s=end_s, text=text, words=words, source="test", **facts)


def _texts(*segments: SpeechSegment) -> list[str]:
    return [segment.text for segment in sentences(segments)]


def test_a_sentence_cut_in_two_is_one_again_with_the_times_of_its_words() -> None:
    first, second = _segment("Okay. I heard a", 10.0), _segment("beep. This is Diane.", 11.7)
    got = sentences([first, second])
    assert [s.text for s in got] == ["Okay.", "I heard a beep.", "This is Diane."]
    assert (got[1].start_s, got[1].end_s) == (first.words[1].start_s, second.words[0].end_s)
    assert [w for s in got for w in s.words] == [*first.words, *second.words]


def test_a_pause_ends_what_no_full_stop_ends() -> None:
    assert _texts(_segment("and then", 0.0), _segment("we left", 2.0)) == ["and then", "we left"]
    assert _texts(_segment("so well then", 0.0, step_s=1.5)) == ["so", "well", "then"]


def test_a_title_ends_no_sentence_and_quotes_do_not_hide_one() -> None:
    assert _texts(_segment('Dr. Who said "Run!" Then he ran.', 0.0)) == [
        'Dr. Who said "Run!"',
        "Then he ran.",
    ]


def test_speech_without_full_stops_does_not_grow_without_bound() -> None:
    talk = [_segment("la " * 20, start * 8.0) for start in range(20)]
    got = sentences(talk)
    assert max(s.end_s - s.start_s for s in got) <= 30.0
    assert sum(len(s.words) for s in got) == 400


@pytest.mark.parametrize("facts", [{"flags": ("repeated",)}, {"language": "de"}, {"speaker": "B"}])
def test_neighbours_that_differ_in_kind_stay_apart(facts: dict[str, object]) -> None:
    assert _texts(_segment("I heard", 0.0), _segment("a beep.", 0.8, **facts)) == ["I heard", "a beep."]


def test_doubt_of_either_part_is_kept() -> None:
    first = _segment("I heard", 0.0, average_log_probability=-0.2, no_speech_probability=0.1)
    second = _segment("a beep.", 0.8, average_log_probability=-0.9, no_speech_probability=0.4)
    (got,) = sentences([first, second])
    assert (got.average_log_probability, got.no_speech_probability) == (-0.9, 0.4)


def test_segments_without_words_stay_as_they_are() -> None:
    cues = [SpeechSegment(start_s=i, end_s=i + 1, text=f"One. Two {i}", source="test") for i in range(3)]
    assert sentences(cues) == cues
