"""Voice activity on sound whose speech is known."""

from __future__ import annotations

import numpy as np
import pytest

from evicat.catalog.transcribers.vad import FRAME, PORTION, VoiceActivity, find_speech, stretches

RATE = 16_000
FIRST_WORD_S = 6.69


def probabilities(samples: np.ndarray) -> np.ndarray:
    voice = VoiceActivity()
    return np.concatenate(
        [voice.probabilities(samples[i : i + PORTION]) for i in range(0, len(samples), PORTION)]
    )


def test_same_probabilities_as_the_library(conversation):
    from faster_whisper.vad import get_vad_model

    whole = conversation[: len(conversation) // FRAME * FRAME]
    # Speech in every portion, so that nothing is forgotten. The library blanks a part of the last frame.
    whole = whole[8 * RATE // FRAME * FRAME :]
    expected = get_vad_model()(whole.copy())[:-1]
    assert np.abs(probabilities(whole)[:-1] - expected).max() < 1e-4
    assert expected.max() > 0.5


@pytest.mark.parametrize("silence_s", [0, 1, 3.7, 10, 33.333, 200])
def test_speech_is_found_whatever_silence_is_before_it(conversation, silence_s):
    before = np.zeros(round(silence_s * RATE), np.float32)
    found = find_speech(np.concatenate([before, conversation, np.zeros(3 * RATE, np.float32)]))
    begins, ends = found[0][0] / RATE - silence_s, found[-1][1] / RATE - silence_s
    assert FIRST_WORD_S - 1 < begins < FIRST_WORD_S
    assert 29.5 < ends < 31


@pytest.mark.parametrize("kind", ["silence", "hiss", "tone"])
def test_no_speech_where_nobody_speaks(kind):
    time_s = np.arange(40 * RATE) / RATE
    sounds = {
        "silence": np.zeros(len(time_s)),
        "hiss": np.random.default_rng(1).normal(0, 0.05, len(time_s)),
        "tone": 0.3 * np.sin(2 * np.pi * 440 * time_s),
    }
    assert find_speech(sounds[kind].astype(np.float32)) == ()


def test_empty_sound_has_no_speech():
    assert find_speech(np.zeros(0, np.float32)) == ()


def test_stretches_are_two_seconds_of_silence_apart_and_padded():
    activity = np.zeros(400, np.float32)
    activity[100:150] = 0.9
    activity[180:200] = 0.9  # 30 frames (0.96 s) later: the same stretch
    activity[300:320] = 0.9  # 100 frames (3.2 s) later: another one
    pad = round(0.4 * RATE)
    assert stretches(activity, 400 * FRAME) == (
        (100 * FRAME - pad, 200 * FRAME + pad),
        (300 * FRAME - pad, 320 * FRAME + pad),
    )


def test_a_click_is_no_speech():
    activity = np.zeros(200, np.float32)
    activity[100:102] = 0.9
    assert stretches(activity, 200 * FRAME) == ()


def test_stretches_stay_inside_the_sound():
    activity = np.full(10, 0.9, np.float32)
    assert stretches(activity, 10 * FRAME - 100) == ((0, 10 * FRAME - 100),)
