"""What the faster-whisper transcriber asks of the library, and what it makes of the answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evicat.catalog.transcribers.fasterwhisper import FasterWhisper, FasterWhisperOptions
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.schemas.errors import RecipeError, UnknownNameError, UsageError
from evicat.schemas.recipe import Profile, SpeechOptions

RATE = 16_000


def speech_options(**changes) -> SpeechOptions:
    facts = {"transcriber": "faster-whisper", "model": "packaged:whisper-tiny.en"}
    return SpeechOptions.model_validate(facts | changes)


class Engine:
    """Stands for a multilingual model: notes what it gets, hears German, answers with two words."""

    supported_languages = ("de", "en")

    def __init__(self, is_multilingual: bool, words: list[tuple[float, float]]) -> None:
        self.model = SimpleNamespace(is_multilingual=is_multilingual)
        self.words = words

    def transcribe(self, audio, **asked):
        self.audio, self.asked = audio, asked
        words = [SimpleNamespace(start=a, end=b, word=" ja", probability=0.5) for a, b in self.words]
        whole = SimpleNamespace(text=" ja ja", words=words, avg_logprob=-0.25, no_speech_prob=0.125)
        return iter([whole]), None

    def detect_language(self, audio):
        self.detected = audio
        return "de", 0.75, []


def transcriber(engine: Engine, **changes) -> FasterWhisper:
    made = FasterWhisper(speech_options(**changes), FasterWhisperOptions(), Profile())
    made.__dict__["_engine"] = engine
    return made


def test_language_is_detected_on_speech_alone_and_stored_with_its_probability():
    engine = Engine(True, [(0.5, 0.75), (1.0, 1.5)])
    samples = np.zeros(60 * RATE, np.float32)
    samples[37 * RATE : 40 * RATE] = 0.5
    (segment,) = transcriber(engine).transcribe(samples, ((37 * RATE, 40 * RATE),))
    assert (engine.asked["language"], engine.asked["multilingual"]) == ("de", False)
    assert len(engine.audio) == len(engine.detected) == 3 * RATE
    assert engine.audio.min() == engine.detected.min() == 0.5
    assert (segment.language, segment.language_probability) == ("de", 0.75)
    assert (segment.start_s, segment.end_s) == (37.5, 38.5)


@pytest.mark.parametrize(("asked", "recipe"), [("de", None), (None, "de"), ("de-AT", "en")])
def test_given_language_is_not_detected(asked, recipe):
    engine = Engine(True, [(0, 1)])
    (segment,) = transcriber(engine, language=recipe).transcribe(
        np.ones(RATE, np.float32), ((0, RATE),), asked
    )
    assert engine.asked["language"] == "de"
    assert (segment.language, segment.language_probability) == ("de", None)


def test_words_take_the_time_of_the_stretch_that_holds_their_middle():
    engine = Engine(True, [(0.5, 0.9), (1.9, 2.5)])
    speech = ((1 * RATE, 3 * RATE), (10 * RATE, 12 * RATE))
    (segment,) = transcriber(engine).transcribe(np.ones(12 * RATE, np.float32), speech)
    assert [(word.start_s, word.end_s) for word in segment.words] == [(1.5, 1.9), (10.0, 10.5)]


def test_earlier_text_is_never_a_prompt():
    engine = Engine(True, [(0, 1)])
    transcriber(engine).transcribe(np.ones(RATE, np.float32), ((0, RATE),))
    assert engine.asked["condition_on_previous_text"] is False
    assert engine.asked["word_timestamps"] is True


def test_unknown_language_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="'xx'; known: de, en"):
        transcriber(Engine(True, [])).transcribe(np.ones(RATE, np.float32), ((0, RATE),), "xx")


def test_english_only_model_refuses_another_language():
    with pytest.raises(UsageError, match=r"whisper-tiny\.en' is English-only, but the language is 'fr'"):
        transcriber(Engine(False, [])).transcribe(np.ones(RATE, np.float32), ((0, RATE),), "fr")


def test_without_speech_no_weights_are_loaded():
    made = load_transcriber(speech_options(), Profile())
    assert made.transcribe(np.zeros(RATE, np.float32), ()) == []
    assert "_engine" not in made.__dict__


def test_local_weights_without_tokenizer_never_ask_the_hub(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    made = load_transcriber(speech_options(model=str(tmp_path)), Profile())
    with pytest.raises(UsageError, match=r"holds no tokenizer\.json"):
        made.transcribe(np.ones(RATE, np.float32), ((0, RATE),))


def test_broken_weights_are_named(tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "model.bin").write_bytes(b"nothing")
    made = load_transcriber(speech_options(model=str(tmp_path)), Profile())
    with pytest.raises(UsageError, match=f"Whisper weights .*{tmp_path.name}.* as int8 on cpu: "):
        made.transcribe(np.ones(RATE, np.float32), ((0, RATE),))


def test_compute_type_belongs_to_the_model():
    made = load_transcriber(speech_options(compute_type="float32"), Profile())
    assert made.model.quantization == "float32"
    assert made.model.digest


def test_unknown_transcriber_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="'wisper'; known: faster-whisper"):
        load_transcriber(speech_options(transcriber="wisper"), Profile())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size: .*got 0"),
        ({"beams": 3}, "beams: .*got 3"),
        ({"temperatures": []}, "temperatures: "),
    ],
)
def test_options_that_do_not_fit_are_named(options, message):
    with pytest.raises(RecipeError, match=f"transcriber 'faster-whisper': options do not fit:\n  {message}"):
        load_transcriber(speech_options(options=options), Profile())
