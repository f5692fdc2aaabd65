"""What every transcriber keeps to, with real weights and real speech."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog.transcribers.base import Transcriber
from evicat.catalog.transcribers.clean import transcribe_pieces
from evicat.catalog.transcribers.loaders import TRANSCRIBERS, load_transcriber
from evicat.catalog.transcribers.loops import words_of
from evicat.catalog.transcribers.vad import find_speech
from evicat.schemas.recipe import Profile, SpeechOptions

RATE = 16_000
NEEDS = {"faster-whisper": "faster_whisper", "openai": "openai", "openai-whisper": "whisper"}
"""The package that a transcriber needs; without it its tests are skipped."""
HEARD = {"jersey": (12.4, 13.9), "sheila": (14.5, 15.6), "chicago": (17.0, 18.1), "yankee": (25.9, 27.2)}
"""Words of the conversation, and between which seconds each is said for the first time."""


SLOW = {"openai-whisper"}
"""Takes half a minute for all tests here."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in sorted(TRANSCRIBERS)],
)
def made(request) -> Callable[[], Transcriber]:
    """Makes the transcriber over real weights, anew at each call."""
    name = request.param
    pytest.importorskip(NEEDS[name], reason=f"transcriber {name!r} needs the package {NEEDS[name]!r}")
    facts, profile = {"model": "packaged:whisper-tiny.en"}, Profile()
    if name == "openai":
        profile = request.getfixturevalue("serving")
    if name == "openai-whisper":
        facts = {"model": str(request.getfixturevalue("whisper_checkpoint")), "compute_type": "float32"}
        facts["options"] = {"beam_size": 1}
    return lambda: load_transcriber(SpeechOptions(transcriber=name, **facts), profile)


@pytest.fixture(scope="module")
def transcriber(made) -> Transcriber:
    return made()


@pytest.fixture(scope="module")
def conversation(evicat_samples: Path) -> np.ndarray:
    """Its first 28 seconds."""
    with wave.open(str(evicat_samples / "conversation.wav")) as reader:
        data = reader.readframes(28 * RATE)
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / 32768


@pytest.fixture(scope="module")
def report(transcriber, conversation):
    return transcriber.transcribe(conversation, find_speech(conversation))


def stored(transcriber, samples):
    return [s for _, heard in transcribe_pieces(transcriber, [(0, samples)]) for s in heard.segments]


def said(segments) -> list[tuple[str, float, float]]:
    return [(word.text, word.start_s, word.end_s) for segment in segments for word in segment.words]


def first_start(segments, wanted: str) -> float:
    return next(start for text, start, _ in said(segments) if wanted in words_of(text))


def test_every_transcriber_is_tested():
    assert set(NEEDS) == set(TRANSCRIBERS)


def test_real_words_at_real_times(report):
    for word, (earliest, latest) in HEARD.items():
        assert earliest <= first_start(report, word) <= latest, word


def test_segments_carry_words_with_times_and_probabilities(transcriber, report, conversation):
    assert report
    for segment in report:
        assert "".join(word.text for word in segment.words) == segment.text
        assert segment.words
        for word in segment.words:
            assert 0 <= word.start_s <= word.end_s <= len(conversation) / RATE
            assert word.probability is None or 0 <= word.probability <= 1
        assert (segment.words[0].probability is None) == (transcriber.component == "openai")
        assert segment.language == "en"
        assert segment.average_log_probability < 0
        assert 0 <= segment.no_speech_probability <= 1


def test_speech_placed_later_is_heard_later(transcriber, conversation):
    """The same stretch, whole frames of voice activity later: the same words, moved exactly."""
    part = conversation[14 * RATE : 22 * RATE]
    silence = np.zeros(20 * RATE, np.float32)
    near = np.concatenate([silence, part, silence])
    far = np.concatenate([np.zeros(40 * RATE, np.float32), near])
    here, there = said(stored(transcriber, near)), said(stored(transcriber, far))
    assert here
    assert [text for text, *_ in here] == [text for text, *_ in there]
    assert [start for _, start, _ in there] == pytest.approx([start + 40 for _, start, _ in here], abs=1e-5)
    assert [end for *_, end in there] == pytest.approx([end + 40 for *_, end in here], abs=1e-5)


@pytest.mark.parametrize("offset_s", [3.3, 61.77])
def test_word_times_hold_at_any_offset(transcriber, conversation, offset_s):
    part = conversation[14 * RATE : 22 * RATE]
    silence = np.zeros(round(offset_s * RATE), np.float32)
    found = stored(transcriber, np.concatenate([silence, part, silence]))
    for word, heard_s in (("sheila", 15.0), ("chicago", 17.5)):
        assert first_start(found, word) == pytest.approx(offset_s + heard_s - 14, abs=0.25)


def test_nothing_is_heard_where_nobody_speaks(transcriber):
    hiss = np.random.default_rng(3).normal(0, 0.05, 60 * RATE).astype(np.float32)
    for samples in (np.zeros(60 * RATE, np.float32), hiss):
        assert stored(transcriber, samples) == []
    assert transcriber.transcribe(hiss, ()) == []


def test_what_was_heard_before_changes_nothing(transcriber, conversation, report):
    part = conversation[20 * RATE :]
    transcriber.transcribe(part, find_speech(part))
    assert transcriber.transcribe(conversation, find_speech(conversation)) == report


def test_only_the_stretches_of_speech_are_listened_to(transcriber, conversation):
    found = transcriber.transcribe(conversation, ((round(12.5 * RATE), round(18.1 * RATE)),))
    text = words_of(" ".join(segment.text for segment in found))
    assert "chicago" in text
    assert not {"hello", "yankee"} & set(text)
    assert all(12.5 <= start <= end <= 18.1 for _, start, end in said(found))


@pytest.mark.parametrize("sample_count", [1, 200, 480])
def test_a_scrap_of_sound_is_no_error(transcriber, conversation, sample_count):
    scrap = conversation[13 * RATE : 13 * RATE + sample_count]
    found = transcriber.transcribe(scrap, ((0, sample_count),))
    assert all(end <= sample_count / RATE for _, _, end in said(found))


def test_the_model_is_known_before_weights_are_loaded(made, transcriber):
    fresh = made()
    assert fresh.model == transcriber.model
    assert fresh.model.name == fresh.speech.model
    assert bool(fresh.model.digest) == (fresh.component != "openai")
    assert "_engine" not in vars(fresh)


def test_declares_what_identifies_it(transcriber):
    assert transcriber.component == transcriber.speech.transcriber
    assert transcriber.version >= 1
    assert isinstance(transcriber.options, transcriber.options_class)
