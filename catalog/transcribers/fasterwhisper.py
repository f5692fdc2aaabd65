"""Whisper by faster-whisper (CTranslate2), on the CPU or an NVIDIA GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from evicat.catalog.digests import CTRANSLATE2_FORMATS
from evicat.catalog.transcribers.base import RawSegment, Samples, Stretches, Transcriber, primary_language
from evicat.catalog.transcribers.heard import Heard, heard_at_ends, is_one_language
from evicat.catalog.transcribers.joined import TrueTimes, join
from evicat.catalog.weights import Weights, is_path, resolve
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile, SpeechOptions

if TYPE_CHECKING:
    from faster_whisper import WhisperModel


class FasterWhisperOptions(Model):
    """How Whisper searches for words."""

    beam_size: int = Field(default=5, ge=1, le=32)
    """Candidate texts that are followed at once; the default is Whisper's own."""
    temperatures: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(default=(0.0,), min_length=1)
    """Whisper's default tries up to 1.0 where an answer loops or is unlikely. Above 0 it draws at random, so
    that a run taken up again would differ from an unbroken one; what loops is flagged instead."""


class FasterWhisper(Transcriber[FasterWhisperOptions]):
    """Takes ``model`` (CTranslate2 weights), ``compute_type`` and ``language`` of ``[speech]``.

    A language that is not given is detected for each block, at both ends of its speech. Where the two differ,
    or one is unsure, Whisper asks anew for every 30 s, and each segment says its own language.
    """

    component = "faster-whisper"
    version = 2
    options_class: ClassVar[type[Model]] = FasterWhisperOptions

    def __init__(self, speech: SpeechOptions, options: FasterWhisperOptions, profile: Profile) -> None:
        super().__init__(speech, options, profile)
        self._weights = resolve(
            speech.model,
            revision=speech.revision,
            quantization=speech.compute_type,
            profile=profile,
            formats=CTRANSLATE2_FORMATS,
            hub_name=_hub_name_or_refuse(speech.model, profile),
        )

    @property
    def model(self) -> ModelRef:
        return self._weights.ref

    @cached_property
    def _engine(self) -> WhisperModel:
        return _load(self._weights, self.profile)

    def transcribe(
        self, samples: Samples, speech: Stretches, language: str | None = None
    ) -> list[RawSegment]:
        if not speech:
            return []
        sound, known = join(samples, speech), self._language(language or self.speech.language)
        heard = [Heard(known)] if known else heard_at_ends(sound, self._detected)
        changes = not known and not is_one_language(heard)
        found, _ = self._engine.transcribe(
            sound,
            language=heard[0].language,
            multilingual=changes,
            beam_size=self.options.beam_size,
            temperature=self.options.temperatures,
            # What was said before must not decide what is heard next: one loop would run to the end.
            condition_on_previous_text=False,
            # Whisper would drop doubtful text unseen; it is kept here, and flagged by ``clean.py``.
            no_speech_threshold=None,
            word_timestamps=True,
            vad_filter=False,
        )
        whole = min(heard, key=lambda each: each.probability or 0)
        return _restored(self._with_language(found, None if changes else whole), speech)

    def _detected(self, sound: Samples) -> Heard:
        language, probability, _ = self._engine.detect_language(sound)
        return Heard(language, float(probability))

    def _with_language(self, found: Iterable[Any], whole: Heard | None) -> Iterator[tuple[Any, Heard]]:
        """Segments with the language of the block, or else with that of the 30 s that each was heard in."""
        for segment in found:
            yield segment, whole or self._engine.heard

    def _language(self, asked: str | None) -> str | None:
        """Whisper's code of the language, or None where it is to be detected."""
        if not self._engine.model.is_multilingual:
            if asked and primary_language(asked) != "en":
                raise UsageError(f"{self.speech.model!r} is English-only, but the language is {asked!r}")
            return "en"
        if asked and primary_language(asked) not in self._engine.supported_languages:
            raise UnknownNameError("language", asked, self._engine.supported_languages)
        return primary_language(asked) if asked else None


def hub_name(name: str) -> str:
    """What the model hub calls a model that the library knows by a short name, such as ``tiny.en``."""
    if not name.strip() or "/" in name or name.startswith("packaged:"):
        return ""
    from faster_whisper.utils import _MODELS

    repository: str = _MODELS.get(name, "")
    return repository


def _hub_name_or_refuse(name: str, profile: Profile) -> str:
    if found := hub_name(name):
        return found
    if not name.strip() or "/" in name or ":" in name or name in profile.models or is_path(name):
        return ""
    from faster_whisper import available_models

    raise UnknownNameError("Whisper model", name, available_models())


def _engine_class() -> type[WhisperModel]:
    """The library's class, with the language that it has just heard, and without a fault (its issue 1342).

    ``heard`` is the language of the 30 s that the last segment came from; the library keeps it to itself.
    The fault: where a single frame (10 ms) is left at the end of the sound, text can be made up for it. To
    align such text divides by zero: an ``IndexError``, or the end of the process, depending on the platform.
    """
    from faster_whisper import WhisperModel

    class Engine(WhisperModel):  # type: ignore[misc]
        def find_alignment(
            self, tokenizer: Any, text_tokens: list[Any], encoder_output: Any, num_frames: int, *rest: Any
        ) -> Any:
            if self.model.is_multilingual:
                token, probability = self.model.detect_language(encoder_output)[0][0]
                self.heard = Heard(token[2:-2], float(probability))
            if num_frames < 2:
                return [[] for _ in text_tokens]
            return super().find_alignment(tokenizer, text_tokens, encoder_output, num_frames, *rest)

    return Engine


def _load(weights: Weights, profile: Profile) -> WhisperModel:
    if not (Path(weights.location) / "tokenizer.json").is_file():
        # The library would fetch one from the hub.
        raise UsageError(f"{weights.location} holds no tokenizer.json; convert the model with it")
    device, _, index = profile.device.partition(":")
    try:
        return _engine_class()(
            weights.location,
            device=device,
            device_index=int(index or 0),
            compute_type=weights.ref.quantization,
            cpu_threads=profile.threads or os.cpu_count() or 1,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"cannot load the Whisper weights {weights.ref.name!r} from {weights.location} as "
            f"{weights.ref.quantization} on {profile.device}: {error}"
        ) from error


def _restored(found: Iterable[tuple[Any, Heard]], speech: Stretches) -> list[RawSegment]:
    """Segments of the joined stretches at their true times."""
    clock = TrueTimes(speech)
    segments = []
    for whole, heard in found:
        words = tuple(
            clock.word(word.start, word.end, word.word, float(word.probability)) for word in whole.words
        )
        if not words:
            continue  # made up: see _engine_class
        segments.append(
            RawSegment(
                start_s=words[0].start_s,
                end_s=words[-1].end_s,
                text=whole.text,
                words=words,
                language=heard.language,
                language_probability=heard.probability,
                average_log_probability=float(whole.avg_logprob),
                no_speech_probability=float(whole.no_speech_prob),
            )
        )
    return segments
