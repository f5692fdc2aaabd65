"""What transcribers invent, and how it is told from speech: kept raw, flagged, counted, and withheld."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evicat.catalog.context import embedded_in, shown_in
from evicat.catalog.entries import spoken
from evicat.catalog.transcribers.base import RawSegment, RawWord
from evicat.catalog.transcribers.clean import CLEAN_VERSION, clean, transcribe_pieces
from evicat.catalog.transcribers.fasterwhisper import FasterWhisper, FasterWhisperOptions
from evicat.catalog.transcribers.heard import Heard
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.catalog.transcribers.loops import words_of
from evicat.catalog.transcribers.vad import find_speech
from evicat.schemas.entry import FLAGS, SPEECH_WITHHELD
from evicat.schemas.identity import Unit
from evicat.schemas.recipe import Profile, SpeechOptions
from evicat.schemas.span import US, Span

RATE = 16_000
BLOCK = Span(0, 300 * US)
UNIT = Unit(asset_id="a" * 32, producer_id="b" * 32, kind="speech", scale="speech")


def raw(start_s: float, end_s: float, text: str, **facts) -> RawSegment:
    return RawSegment(start_s, end_s, text, **facts)


def spoken_words(text: str, *times: tuple[float, float]) -> RawSegment:
    words = tuple(RawWord(a, b, f" {w}", 0.9) for w, (a, b) in zip(text.split(), times, strict=True))
    return RawSegment(times[0][0], times[-1][1], f" {text}", words)


def withheld(cleaned) -> list[str]:
    return [segment.text for segment in cleaned.segments if SPEECH_WITHHELD & set(segment.flags)]


def test_a_stock_phrase_to_the_end_of_the_file_is_kept_flagged_and_counted() -> None:
    """Sixty times in half an hour, in blocks of five minutes."""
    total = 0
    for number in range(6):
        block = Span(number * 300 * US, (number + 1) * 300 * US)
        lines = [
            raw(30 * i, 30 * i + 3, "Thank you for watching.", no_speech_probability=0.9) for i in range(10)
        ]
        found = clean(lines, block, "stub")
        assert len(found.segments) == len(withheld(found)) == 10
        assert found.segments[1].start_s == number * 300 + 30
        assert found.withheld == {"repeated": 10, "unsure_speech": 10}
        total += len(found.segments)
    assert total == 60


def test_a_loop_inside_a_segment_is_kept_whole_and_withheld() -> None:
    found = clean([raw(0, 30, "you " * 200)], BLOCK, "stub")
    assert found.segments[0].text == ("you " * 200).strip()
    assert found.withheld == {"repeated": 1}


@pytest.mark.parametrize("silence", [None, 0.05, 0.5])
def test_a_chorus_said_three_times_with_gaps_is_kept(silence) -> None:
    facts = {"no_speech_probability": silence, "average_log_probability": -0.4}
    lines = [raw(40 * i, 40 * i + 4, "We all live in a yellow submarine", **facts) for i in range(3)]
    found = clean(lines, BLOCK, "stub")
    assert len(found.segments) == 3
    assert not found.withheld


def test_a_confident_phrase_that_returns_where_the_model_hears_silence_is_withheld() -> None:
    facts = {"no_speech_probability": 0.93, "average_log_probability": -0.2}
    lines = [raw(40 * i, 40 * i + 2, "Thanks for watching!", **facts) for i in range(3)]
    others = [raw(40 * i + 20, 40 * i + 22, f"Number {i} of the list.") for i in range(3)]
    found = clean(lines + others, BLOCK, "stub")
    assert withheld(found) == ["Thanks for watching!"] * 3
    twice = clean(lines[:2] + others, BLOCK, "stub")
    assert withheld(twice) == []


def test_text_where_no_voice_is_detected_is_withheld() -> None:
    lines = [raw(1, 3, "Good morning."), raw(20, 22, "See you in the next video."), raw(4.5, 9, "So long.")]
    found = clean(lines, BLOCK, "stub", speech=((1 * RATE, 5 * RATE),))
    assert withheld(found) == ["See you in the next video."]
    assert found.withheld == {"no_voice": 1}
    unknown = clean(lines, BLOCK, "stub")
    assert not unknown.withheld


def test_words_that_take_no_time_are_withheld() -> None:
    end = (300.0, 300.0)
    crammed = spoken_words("I will see you in the next one", (299, 299.4), *[end] * 7)
    fast = spoken_words("yes of course it is", (1, 1.1), (1.1, 1.1), (1.1, 1.2), (1.2, 1.3), (1.3, 1.5))
    late = spoken_words("one two three four", (299.5, 299.9), (300.2, 300.5), (300.5, 301), (301, 302))
    found = clean([crammed, fast, late], BLOCK, "stub")
    assert set(withheld(found)) == {late.text.strip(), crammed.text.strip()}
    assert found.withheld == {"crammed": 2}
    assert all(s.end_s <= 300 for s in found.segments)


def test_withheld_speech_reaches_neither_vectors_nor_describers() -> None:
    lines = [raw(30 * i, 30 * i + 3, "Thank you.", no_speech_probability=0.9) for i in range(5)]
    lines.insert(2, raw(65, 68, "The bridge is closed today."))
    entries = spoken(UNIT, clean(lines, BLOCK, "stub").segments)
    assert len(entries) == 6
    assert [e.text for e in embedded_in(BLOCK, entries)] == ["The bridge is closed today."]
    assert [e.text for e in shown_in(BLOCK, entries, {"speech"})] == ["The bridge is closed today."]


def test_every_flag_is_documented_and_the_rules_are_versioned() -> None:
    assert set(FLAGS) >= SPEECH_WITHHELD
    assert CLEAN_VERSION >= 2


def test_a_described_sound_of_a_transcriber_is_no_dialogue() -> None:
    lines = [raw(0, 2, " [Music]"), raw(2, 4, " Good evening."), raw(4, 6, " (laughing)")]
    entries = spoken(UNIT, clean(lines, BLOCK, "stub").segments)
    assert [(e.kind, e.text) for e in entries] == [
        ("sound", "Music"),
        ("speech", "Good evening."),
        ("sound", "laughing"),
    ]
    assert [e.text for e in shown_in(BLOCK, entries, {"speech", "local"})] == ["Good evening."]


def test_speech_on_a_border_belongs_to_both_windows_and_no_word_is_cut() -> None:
    segment = spoken_words("over the bridge", (9.2, 9.6), (9.6, 10.4), (10.4, 11.0))
    entries = spoken(UNIT, clean([segment], BLOCK, "stub").segments)
    for window in (Span(0, 10 * US), Span(10 * US, 20 * US)):
        assert [e.text for e in shown_in(window, entries, {"speech"})] == ["over the bridge"]
    assert shown_in(Span(20 * US, 30 * US), entries, {"speech"}) == []


# Sounds without speech, and the real model


def chords(seconds: int) -> np.ndarray:
    """A cadence of plucked chords, one a second."""
    time_s = np.arange(RATE) / RATE
    shape = np.minimum(1, time_s / 0.02) * np.exp(-time_s / 1.5)
    cadence = [(261.6, 329.6, 392.0), (349.2, 440.0, 523.3), (392.0, 493.9, 587.3), (220.0, 261.6, 329.6)]
    bars = [
        0.1 * shape * sum(np.sin(2 * np.pi * n * f * time_s) / n for f in chord for n in (1, 2, 3))
        for chord in cadence
    ]
    return np.concatenate([bars[i % 4] for i in range(seconds)]).astype(np.float32)


def pink(seconds: int) -> np.ndarray:
    """Noise whose power falls as one over the frequency, as that of rain and traffic does."""
    spectrum = np.fft.rfft(np.random.default_rng(1).normal(size=seconds * RATE))
    sound = np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(len(spectrum)))))
    return (0.1 * sound / sound.std()).astype(np.float32)


QUIET = {"silence": np.zeros(30 * RATE, np.float32), "chords": chords(30), "pink noise": pink(30)}


@pytest.fixture(scope="module")
def whisper():
    return load_transcriber(
        SpeechOptions(transcriber="faster-whisper", model="packaged:whisper-tiny.en"), Profile()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", QUIET)
def test_where_nobody_speaks_no_word_goes_unflagged(whisper, name: str) -> None:
    """Neither by the whole way, nor where the model is made to listen to all of it."""
    sound = QUIET[name]
    segments = [s for _, heard in transcribe_pieces(whisper, [(0, sound)]) for s in heard.segments]
    assert [s.text for s in segments if not SPEECH_WITHHELD & set(s.flags)] == []
    forced = whisper.transcribe(sound, ((0, len(sound)),))
    assert forced, "the model is known to invent words here"
    block = Span(0, 30 * US)
    found = clean(forced, block, "faster-whisper", speech=find_speech(sound))
    assert len(withheld(found)) == len(found.segments)
    # The other rules catch it too, without the detector of voices.
    found = clean(forced, block, "faster-whisper")
    assert len(withheld(found)) == len(found.segments)


@pytest.mark.slow
@pytest.mark.parametrize("offset_s", [12.34, 131.07])
def test_words_of_real_speech_inside_silence_are_at_their_times_and_unflagged(
    whisper, conversation, offset_s
) -> None:
    part = conversation[14 * RATE : 22 * RATE]
    before = np.zeros(round(offset_s * RATE), np.float32)
    sound = np.concatenate([before, part, np.zeros(20 * RATE, np.float32)])
    segments = [s for _, heard in transcribe_pieces(whisper, [(0, sound)]) for s in heard.segments]
    assert not any(SPEECH_WITHHELD & set(s.flags) for s in segments)
    words = [(w.text, w.start_s) for s in segments for w in s.words]
    for word, heard_s in (("sheila", 15.0), ("chicago", 17.5)):
        start_s = next(start for text, start in words if word in words_of(text))
        assert start_s == pytest.approx(offset_s + heard_s - 14, abs=0.25)


# Languages


class Engine:
    """Stands for a multilingual model: positive sound is German, negative French, little is a guess."""

    supported_languages = ("de", "en", "fr")

    def __init__(self) -> None:
        self.model = SimpleNamespace(is_multilingual=True)
        self.detected: list[np.ndarray] = []

    def detect_language(self, audio):
        self.detected.append(audio)
        return *self.hear(audio), []

    def hear(self, audio) -> tuple[str, float]:
        level = float(np.median(audio))
        if abs(level) < 0.1:
            return "en", 0.2
        return ("de", 0.99) if level > 0 else ("fr", 0.9)

    def transcribe(self, audio, **asked):
        self.asked = asked
        return self.segments(audio), None

    def segments(self, audio):
        for first in range(0, len(audio), 30 * RATE):
            part = audio[first : first + 30 * RATE]
            self.heard = Heard(*self.hear(part))
            start_s = first / RATE
            word = SimpleNamespace(start=start_s, end=start_s + 1, word=" ja", probability=0.5)
            yield SimpleNamespace(text=" ja", words=[word], avg_logprob=-0.2, no_speech_prob=0.1)


def listening(engine: Engine, **options) -> FasterWhisper:
    speech = SpeechOptions(transcriber="faster-whisper", model="packaged:whisper-tiny.en", **options)
    made = FasterWhisper(speech, FasterWhisperOptions(), Profile())
    made.__dict__["_engine"] = engine
    return made


def heard_by(engine: Engine, levels: list[float], **options):
    """What is stored of 40 s of speech at each level, each after 10 s of silence."""
    silence = np.zeros(10 * RATE, np.float32)
    parts = [part for level in levels for part in (silence, np.full(40 * RATE, level, np.float32))]
    speech = tuple((50 * RATE * i + 10 * RATE, 50 * RATE * (i + 1)) for i in range(len(levels)))
    found = listening(engine, **options).transcribe(np.concatenate(parts), speech)
    return clean(found, BLOCK, "faster-whisper").segments


def test_the_detector_of_languages_hears_speech_alone() -> None:
    engine = Engine()
    segments = heard_by(engine, [0.5])
    assert {(s.language, s.language_probability) for s in segments} == {("de", 0.99)}
    assert all(sound.min() == 0.5 for sound in engine.detected)
    assert engine.asked["multilingual"] is False


def test_a_doubtful_language_is_stored_with_its_probability_and_flagged() -> None:
    engine = Engine()
    segments = heard_by(engine, [0.01])
    assert {(s.language, s.language_probability, s.flags) for s in segments} == {
        ("en", 0.2, ("unsure_language",))
    }
    assert engine.asked["multilingual"] is True


def test_where_the_language_changes_every_segment_says_its_own() -> None:
    segments = heard_by(Engine(), [0.5, -0.5])
    first, *_, last = segments
    assert (first.language, first.language_probability) == ("de", 0.99)
    assert (last.language, last.language_probability) == ("fr", 0.9)
    assert not any("unsure_language" in s.flags for s in segments)


def test_a_language_of_the_recipe_is_not_detected() -> None:
    engine = Engine()
    segments = heard_by(engine, [0.01, -0.5], language="fr")
    assert {(s.language, s.language_probability, s.flags) for s in segments} == {("fr", None, ())}
    assert engine.detected == []
