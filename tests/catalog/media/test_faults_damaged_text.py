"""Subtitles and sound of which a little is broken: what is whole is used."""

from __future__ import annotations

import wave
from pathlib import Path

import av
import numpy as np
import pytest

from evicat.catalog.media.audio import read_audio
from evicat.catalog.media.cues import parse_cues
from evicat.catalog.media.encodings import decode
from evicat.catalog.media.subtitles import find_sidecars
from evicat.catalog.media.utterances import Line, utterances
from evicat.schemas.errors import AssetError


@pytest.mark.parametrize(
    "text", ["Déjà vu, café, été.\n" * 20, "Где мы были вчера?\n" * 3, "昨日は雨でした。\n" * 4]
)
def test_one_bad_byte_does_not_make_utf8_another_encoding(text) -> None:
    found = decode(text.encode() + b"\xc3\n")
    assert found is not None
    assert found[0].startswith(text)
    assert found[1] == "utf-8-sig"


def test_utf16_with_a_byte_too_many_is_read() -> None:
    text, encoding = decode("\ufeffHello there.\n".encode("utf-16-le") + b"\x0a")
    assert (text[:12], encoding) == ("Hello there.", "utf-16")


def test_western_text_is_not_taken_for_broken_unicode() -> None:
    text = "Bonjour, je voudrais un café, s'il vous plaît. Merci beaucoup, à bientôt.\n" * 3
    assert decode(text.encode("cp1252")) == (text, "cp1252")


def test_what_is_said_after_a_dash_is_no_speaker() -> None:
    (said,) = utterances([Line("- Remember this: never run.")])
    assert (said.text, said.speaker) == ("Remember this: never run.", None)
    (named,) = utterances([Line("- Anna Lee: never run.")])
    assert (named.text, named.speaker) == ("never run.", "Anna Lee")


def test_a_song_between_double_notes_is_one_sound() -> None:
    (song,) = utterances([Line("♪♪ Happy birthday to you ♪♪")])
    assert song.is_sound
    assert "Happy birthday" in song.text


ASS = """[Script Info]
ScriptType: v4.00+
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,First.
Dialogue: 0,,0:00:03.00,Default,,0,0,0,,Lost.
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,Last.
"""


def test_an_unreadable_event_of_ass_costs_itself_alone() -> None:
    texts = ["".join(line.text for line in cue.lines) for cue in parse_cues(ASS, ".ass")]
    assert texts == ["First.", "Last."]


def test_a_folder_that_cannot_be_listed_has_no_side_cars(monkeypatch, tmp_path) -> None:
    def closed(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", closed)
    assert find_sidecars(tmp_path / "film.mp4") == []


def test_a_sample_that_is_no_number_is_silence(kit, tmp_path) -> None:
    path = tmp_path / "odd.mkv"
    sound = np.full((1, 32000), 0.25, np.float32)
    sound[0, 5000], sound[0, 9000] = np.nan, np.inf
    with av.open(str(path), "w") as container:
        track = container.add_stream("pcm_f32le", rate=16000, layout="mono")
        for first in range(0, 32000, 1600):
            frame = av.AudioFrame.from_ndarray(sound[:, first : first + 1600].copy(), "flt", "mono")
            frame.sample_rate, frame.pts = 16000, first
            container.mux(track.encode(frame))
        container.mux(track.encode(None))
    samples = np.concatenate([piece.samples for piece in read_audio(path, kit.facts(path))])
    assert np.isfinite(samples).all()
    assert len(samples) == pytest.approx(32000, abs=10)


def test_sound_whose_channels_nobody_knows_is_told(kit, tmp_path) -> None:
    path = tmp_path / "many.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(20)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(np.zeros(20 * 16000, np.int16).tobytes())
    with pytest.raises(AssetError, match="cannot be made mono"):
        list(read_audio(path, kit.facts(path)))
