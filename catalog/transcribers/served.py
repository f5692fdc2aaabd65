"""Speech models behind a server that speaks OpenAI's protocol (``POST /v1/audio/transcriptions``)."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from evicat.catalog.served import Endpoint
from evicat.catalog.transcribers.base import (
    SAMPLE_RATE,
    RawSegment,
    Samples,
    Stretches,
    Transcriber,
    primary_language,
)
from evicat.catalog.transcribers.joined import TrueTimes, join
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile, SpeechOptions

_SHORTEST = SAMPLE_RATE // 10
"""Samples: OpenAI's server refuses sound of less than 0.1 s, so that silence is put after it."""
_LONGEST_CODE = 3
"""Letters: the shortest name that Whisper knows, ``lao``, is the language's ISO 639-2 code as well."""


class ServedTranscriberOptions(Model):
    """There are none: temperature 0 and the times of words are always asked for."""


class ServedTranscriber(Transcriber[ServedTranscriberOptions]):
    """Takes ``model`` and ``language`` of ``[speech]``; how it computes is the server's matter.

    The protocol gives words no probability, and a detected language none either.
    """

    component = "openai"
    version = 1
    options_class: ClassVar[type[Model]] = ServedTranscriberOptions

    def __init__(self, speech: SpeechOptions, options: ServedTranscriberOptions, profile: Profile) -> None:
        super().__init__(speech, options, profile)
        self._endpoint = Endpoint(speech.model, profile)

    @property
    def model(self) -> ModelRef:
        speech = self.speech
        return ModelRef(name=speech.model, revision=speech.revision, quantization=speech.compute_type)

    def transcribe(
        self, samples: Samples, speech: Stretches, language: str | None = None
    ) -> list[RawSegment]:
        if not speech:
            return []
        asked = language or self.speech.language
        self._endpoint.check_served()
        answer = self._ask(join(samples, speech), primary_language(asked) if asked else None)
        if answer.segments is None or answer.words is None:
            raise UsageError(
                f"the server at {self._endpoint.url} gave no times of segments and words; "
                "a server is needed that answers 'verbose_json' with word timestamps"
            )
        spoken = language_code(answer.language) if answer.language else asked
        return list(_segments(answer.segments, answer.words, TrueTimes(speech), spoken))

    def _ask(self, sound: Samples, language: str | None) -> Any:
        from openai import omit

        with self._endpoint.answering() as client:
            return client.audio.transcriptions.create(
                file=("speech.wav", _wav(sound), "audio/wav"),
                model=self.speech.model,
                language=language or omit,
                response_format="verbose_json",
                timestamp_granularities=["word", "segment"],
                temperature=0,
            )


def language_code(name: str) -> str:
    """``en`` for ``english``, as OpenAI's server says; a code, or what is neither, stays."""
    if len(name) <= _LONGEST_CODE:
        return name.lower()
    from transformers.models.whisper.tokenization_whisper import TO_LANGUAGE_CODE

    code: str = TO_LANGUAGE_CODE.get(name.lower(), name)
    return code


def _wav(sound: Samples) -> bytes:
    whole = np.pad(sound, (0, max(0, _SHORTEST - len(sound))))
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE)
        writer.writeframes((np.clip(whole, -1, 1) * 32767).round().astype("<i2").tobytes())
    return buffer.getvalue()


def _segments(
    segments: Iterable[Any], words: Sequence[Any], clock: TrueTimes, language: str | None
) -> Iterator[RawSegment]:
    left = list(words)
    for whole in segments:
        placed = [clock.word(start, end, text) for start, end, text in _words_of(whole, left)]
        if not whole.text.strip():
            continue
        if not placed:
            placed = [clock.word(whole.start, whole.end, whole.text)]
        yield RawSegment(
            start_s=placed[0].start_s,
            end_s=placed[-1].end_s,
            text=whole.text,
            words=tuple(placed),
            language=language,
            average_log_probability=whole.avg_logprob,
            no_speech_probability=whole.no_speech_prob,
        )


def _words_of(whole: Any, left: list[Any]) -> list[tuple[float, float, str]]:
    """The words of a segment: start, end, and the piece of its text that each stands for.

    The server lists words for all segments, without blanks and often without punctuation. Each is looked for
    in the text, in order; a piece runs to where the next one found begins, so that joined they are the text.
    Words are taken off ``left``; one that is not in the text is left out where its time is the segment's.
    """
    found: list[tuple[int, Any]] = []
    position = 0
    while left:
        word = left[0].word.strip()
        at = whole.text.find(word, position) if word else -1
        if at < 0 and (left[0].start + left[0].end) / 2 > whole.end:
            break
        if at >= 0:
            begin = len(whole.text[:at].rstrip()) if found else 0
            found.append((max(begin, position), left[0]))
            position = at + len(word)
        left.pop(0)
    ends = [*(begin for begin, _ in found), len(whole.text)][1:]
    return [
        (word.start, word.end, whole.text[begin:end]) for (begin, word), end in zip(found, ends, strict=True)
    ]
