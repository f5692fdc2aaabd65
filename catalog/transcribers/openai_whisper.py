"""Whisper by OpenAI's own package ``openai-whisper`` (PyTorch), on the CPU or an NVIDIA GPU."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from evicat.catalog.digests import file_digest
from evicat.catalog.transcribers.base import RawSegment, Samples, Stretches, Transcriber, primary_language
from evicat.catalog.transcribers.heard import Heard, heard_at_ends
from evicat.catalog.transcribers.joined import TrueTimes, join
from evicat.catalog.weights import checkpoint
from evicat.schemas.errors import MissingExtraError, RecipeError, UnknownNameError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile, SpeechOptions

if TYPE_CHECKING:
    from whisper import Whisper

_COMPUTE_TYPES = ("float32", "float16")


class OpenAIWhisperOptions(Model):
    """How Whisper searches for words. It draws nothing at random: the temperature is 0."""

    beam_size: int = Field(default=5, ge=1, le=32)
    """The default of the package's command line."""


class OpenAIWhisper(Transcriber[OpenAIWhisperOptions]):
    """Takes ``model``, ``compute_type`` (float32 or float16) and ``language`` of ``[speech]``.

    ``model`` is the path of a checkpoint (``.pt``), or a name of the package (``tiny.en``, ``turbo``), which
    it then downloads unless ``[models]`` of the profile says where the checkpoint lies.

    Raises:
        MissingExtraError: openai-whisper is not installed.
        UnknownNameError: neither a path nor a name of the package.
        RecipeError: it does not compute in ``compute_type``.
    """

    component = "openai-whisper"
    version = 2
    options_class: ClassVar[type[Model]] = OpenAIWhisperOptions

    def __init__(self, speech: SpeechOptions, options: OpenAIWhisperOptions, profile: Profile) -> None:
        super().__init__(speech, options, profile)
        if importlib.util.find_spec("whisper") is None:
            raise MissingExtraError("openai-whisper", "whisper")
        if speech.compute_type not in _COMPUTE_TYPES:
            raise RecipeError(
                f"transcriber 'openai-whisper' computes in {' or '.join(_COMPUTE_TYPES)}, "
                f"but speech.compute_type is {speech.compute_type!r}"
            )
        if speech.revision:
            raise RecipeError(
                "transcriber 'openai-whisper' takes its checkpoints from no model hub; remove "
                f"speech.revision, got {speech.revision!r}"
            )
        self._path = checkpoint(speech.model, profile)
        digest = file_digest(self._path) if self._path else _published_digest(speech.model)
        self._ref = ModelRef(name=speech.model, digest=digest, quantization=speech.compute_type)

    @property
    def model(self) -> ModelRef:
        return self._ref

    @cached_property
    def _engine(self) -> Whisper:
        return _load(self._path, self._ref, self.profile)

    def transcribe(
        self, samples: Samples, speech: Stretches, language: str | None = None
    ) -> list[RawSegment]:
        if not speech:
            return []
        asked, sound = self._language(language or self.speech.language), join(samples, speech)
        heard = Heard(asked) if asked else _likeliest(heard_at_ends(sound, self._detected))
        found = self._found(sound, heard.language)
        clock = TrueTimes(speech)
        segments = [_restored(whole, clock, heard) for whole in found["segments"]]
        return [segment for segment in segments if segment.words]

    def _found(self, sound: Samples, language: str) -> Any:
        with _quiet():
            return self._engine.transcribe(
                sound,
                language=language,
                beam_size=self.options.beam_size,
                temperature=0.0,
                # What was said before must not decide what is heard next: one loop would run to the end.
                condition_on_previous_text=False,
                # Whisper would drop doubtful text unseen; it is kept here, and flagged by ``clean.py``.
                no_speech_threshold=None,
                word_timestamps=True,
                fp16=self._ref.quantization == "float16",
            )

    def _language(self, asked: str | None) -> str | None:
        """Whisper's code of the language, or None where it is to be detected."""
        from whisper.tokenizer import LANGUAGES

        code = primary_language(asked) if asked else None
        if not self._engine.is_multilingual:
            if code not in (None, "en"):
                raise UsageError(f"{self.speech.model!r} is English-only, but the language is {asked!r}")
            return "en"
        if code and code not in LANGUAGES:
            raise UnknownNameError("language", asked or "", list(LANGUAGES))
        return code

    def _detected(self, sound: Samples) -> Heard:
        """The most likely language of the first 30 s of ``sound``, and its probability."""
        from whisper.audio import N_FRAMES, N_SAMPLES, log_mel_spectrogram, pad_or_trim

        mel = log_mel_spectrogram(sound, self._engine.dims.n_mels, padding=N_SAMPLES)
        first = pad_or_trim(mel, N_FRAMES).to(self._engine.device)
        half = self._ref.quantization == "float16"
        with _quiet():
            _, likely = self._engine.detect_language(first.half() if half else first)
        code = max(likely, key=likely.__getitem__)
        return Heard(code, float(likely[code]))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of three known faults of the package.

    It leaves its vocabulary file open, sorts tensors with numpy, and where less than two frames (20 ms) of
    sound are left it aligns words with nothing.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"unclosed file .*\.tiktoken", category=ResourceWarning)
        warnings.filterwarnings("ignore", message="__array_wrap__ must accept", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=r"std_mean\(\): degrees of freedom")
        yield


def _likeliest(ends: list[Heard]) -> Heard:
    """One language for the block, since the package knows no change, with its probability over both ends."""
    totals: dict[str, float] = {}
    for end in ends:
        totals[end.language] = totals.get(end.language, 0.0) + (end.probability or 0.0)
    language = max(totals, key=totals.__getitem__)
    return Heard(language, totals[language] / len(ends))


def _restored(whole: Any, clock: TrueTimes, heard: Heard) -> RawSegment:
    words = tuple(
        clock.word(word["start"], word["end"], word["word"], float(np.clip(word["probability"], 0, 1)))
        for word in whole["words"]
    )
    return RawSegment(
        start_s=words[0].start_s if words else None,
        end_s=words[-1].end_s if words else None,
        text="".join(word.text for word in words),
        words=words,
        language=heard.language,
        language_probability=heard.probability,
        average_log_probability=float(whole["avg_logprob"]),
        no_speech_probability=float(whole["no_speech_prob"]),
    )


def _published_digest(name: str) -> str:
    """SHA-256 of the checkpoint that the package calls ``name``; it stands in the address."""
    import whisper

    if name not in whisper._MODELS:
        raise UnknownNameError("Whisper model", name, whisper.available_models())
    digest: str = whisper._MODELS[name].split("/")[-2]
    return digest


def _load(path: Path | None, ref: ModelRef, profile: Profile) -> Whisper:
    import torch
    import whisper

    if profile.threads:
        torch.set_num_threads(profile.threads)
    try:
        engine = whisper.load_model(str(path) if path else ref.name, device=profile.device)
    except (OSError, EOFError, RuntimeError, KeyError, TypeError, UnpicklingError) as error:
        raise UsageError(
            f"cannot load the Whisper checkpoint {ref.name!r} from {path or 'the network'} "
            f"on {profile.device}: {error}"
        ) from error
    # The package knows which heads tell the times only by its own names: a copy must give the same times.
    names = [name for name, address in whisper._MODELS.items() if ref.digest in address]
    if names:
        engine.set_alignment_heads(whisper._ALIGNMENT_HEADS[names[0]])
    return engine
