"""What the openai-whisper transcriber adds to the package, over a tiny checkpoint with random weights."""

from __future__ import annotations

import base64
import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.schemas.errors import MissingExtraError, RecipeError, UnknownNameError, UsageError
from evicat.schemas.recipe import Profile, SpeechOptions

RATE = 16_000


@pytest.fixture(scope="module", autouse=True)
def whisper():
    return pytest.importorskip(
        "whisper", reason="the transcriber 'openai-whisper' needs the package of that name"
    )


@pytest.fixture(scope="module")
def random_checkpoint(whisper, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Multilingual, one layer of 16 numbers on either side; it knows nothing, and says something."""
    import torch

    torch.manual_seed(1)
    dims = {"n_mels": 80, "n_vocab": 51865, "n_audio_ctx": 1500, "n_text_ctx": 64}
    for side in ("audio", "text"):
        dims |= {f"n_{side}_state": 16, f"n_{side}_head": 2, f"n_{side}_layer": 1}
    model = whisper.model.Whisper(whisper.model.ModelDimensions(**dims))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    path = tmp_path_factory.mktemp("random") / "random.pt"
    torch.save({"dims": dims, "model_state_dict": model.state_dict()}, path)
    return path


def load(model: object, profile: Profile | None = None, **changes):
    facts = {"transcriber": "openai-whisper", "model": str(model), "compute_type": "float32"} | changes
    return load_transcriber(SpeechOptions.model_validate(facts), profile or Profile())


@pytest.fixture(scope="module")
def transcriber(random_checkpoint):
    return load(random_checkpoint, options={"beam_size": 1})


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    return np.random.default_rng(2).normal(0, 0.1, 8 * RATE).astype(np.float32)


def test_segments_have_the_form_of_the_contract_whatever_the_weights(transcriber, noise):
    speech = ((RATE, 3 * RATE), (5 * RATE, 7 * RATE))
    found = transcriber.transcribe(noise, speech, "de")
    assert found, "random weights say something"
    for segment in found:
        assert segment.text == "".join(word.text for word in segment.words)
        assert (segment.language, segment.language_probability) == ("de", None)
        assert all(
            any(a <= word.start_s * RATE <= word.end_s * RATE <= b for a, b in speech)
            for word in segment.words
        )
    assert transcriber.transcribe(noise, speech, "de") == found


def test_a_language_that_is_not_given_is_detected_with_its_probability(transcriber, noise):
    code, probability = transcriber._detected(noise)
    (segment, *_) = transcriber.transcribe(noise, ((0, len(noise)),))
    assert (segment.language, segment.language_probability) == (code, probability)
    assert 0 < probability < 1


def test_the_digest_is_that_of_the_file(transcriber, random_checkpoint):
    assert transcriber.model.digest == hashlib.sha256(random_checkpoint.read_bytes()).hexdigest()
    assert transcriber.model.quantization == "float32"


def test_a_name_of_the_package_has_the_digest_that_it_publishes():
    digest = load("tiny.en").model.digest
    assert digest == "d3dd57d32accea0b295c96e26691aa14d8822fac7d9d27d5dc00b4ca2826dd03"


def test_the_profile_says_where_a_checkpoint_lies(random_checkpoint, transcriber):
    made = load("tiny", Profile(models={"tiny": str(random_checkpoint)}))
    assert (made.model.name, made.model.digest) == ("tiny", transcriber.model.digest)


def test_a_copy_of_published_weights_gets_their_alignment_heads(
    random_checkpoint, transcriber, whisper, monkeypatch
):
    """The package knows by name which heads tell the times; a path would get others."""
    import torch

    address = f"https://example.org/{transcriber.model.digest}/ours.pt"
    dump = base64.b85encode(gzip.compress(np.array([[False, True]]).tobytes()))
    monkeypatch.setitem(whisper._MODELS, "ours", address)
    monkeypatch.setitem(whisper._ALIGNMENT_HEADS, "ours", dump)
    heads = load(random_checkpoint)._engine.alignment_heads.to_dense()
    assert torch.equal(heads, torch.tensor([[False, True]]))
    assert transcriber._engine.alignment_heads.to_dense().all()


def test_unknown_language_lists_the_known_ones(transcriber, noise):
    with pytest.raises(UnknownNameError, match=r"unknown language 'xx'; known: .*de, "):
        transcriber.transcribe(noise, ((0, RATE),), "xx")


def test_without_speech_no_weights_are_loaded(random_checkpoint, noise):
    made = load(random_checkpoint)
    assert made.transcribe(noise, ()) == []
    assert "_engine" not in vars(made)


def test_a_compute_type_that_it_lacks_is_named(random_checkpoint):
    with pytest.raises(RecipeError, match=r"float32 or float16, but speech\.compute_type is 'int8'"):
        load(random_checkpoint, compute_type="int8")


def test_unknown_model_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown Whisper model 'huge'; known: .*tiny\.en"):
        load("huge")


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.pt', which does not exist; give the file"):
        load(tmp_path / "nothing.pt")


@pytest.mark.parametrize("content", [b"nothing", b""])
def test_a_broken_checkpoint_is_named(tmp_path, noise, content):
    path = tmp_path / "broken.pt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"cannot load the Whisper checkpoint .*broken\.pt.* on cpu: "):
        load(path).transcribe(noise, ((0, RATE),))


def test_without_the_package_its_extra_is_named(random_checkpoint, monkeypatch):
    monkeypatch.setattr(
        "evicat.catalog.transcribers.openai_whisper.importlib.util.find_spec", lambda name: None
    )
    with pytest.raises(MissingExtraError, match=r"openai-whisper is not installed; .*evicat\[whisper\]"):
        load(random_checkpoint)
