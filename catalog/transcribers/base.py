"""The interface of transcribers. A new one also gets a line in ``loaders.py``; the contract test runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile, SpeechOptions

SAMPLE_RATE = 16_000
"""Samples per second of all sound inside evicat: mono float32 in [-1, 1]."""

Samples = npt.NDArray[np.float32]
Stretches = tuple[tuple[int, int], ...]
"""Where there is speech: half-open ranges of samples, in order, without overlap."""
OptionsT = TypeVar("OptionsT", bound=Model)


@dataclass(frozen=True, slots=True)
class RawWord:
    """A word as the engine reports it. Words of a segment, joined as they are, give its text.

    So a word begins with a blank where its language writes one. Times are seconds from the first sample;
    None: the engine gave none.
    """

    start_s: float | None
    end_s: float | None
    text: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class RawSegment:
    """A segment as the engine reports it, plausible or not; ``clean.py`` turns it into what is stored."""

    start_s: float | None
    end_s: float | None
    text: str
    words: tuple[RawWord, ...] = ()
    language: str | None = None
    language_probability: float | None = None
    """None where the language was given, not detected."""
    average_log_probability: float | None = None
    no_speech_probability: float | None = None


class Transcriber(ABC, Generic[OptionsT]):
    """Turns a block of sound into timed segments. Required: the class facts, ``model``, ``transcribe``.

    Loaded once per process, weights at the first call; called from one thread at a time.
    """

    component: ClassVar[str]
    version: ClassVar[int]
    """Bumped by hand when the output changes by design."""
    options_class: ClassVar[type[Model]]

    def __init__(self, speech: SpeechOptions, options: OptionsT, profile: Profile) -> None:
        self.speech = speech
        self.options = options
        self.profile = profile

    @property
    @abstractmethod
    def model(self) -> ModelRef:
        """The model behind it. Must not load weights."""

    @abstractmethod
    def transcribe(
        self, samples: Samples, speech: Stretches, language: str | None = None
    ) -> list[RawSegment]:
        """Segments of ``samples`` (shape ``(n,)``, 16 kHz), times in seconds from its first sample.

        Only the stretches of ``speech`` are listened to; without any there is no call of the model. A segment
        may reach from one into another where its words carry times. The same sound gives the same segments,
        whatever was transcribed before. ``language`` None: the recipe's, else detected on the speech itself.

        Raises:
            UsageError: the model does not know ``language``, or its weights cannot be loaded.
        """


def primary_language(language: str) -> str:
    """``de`` of ``de-AT``: what models know a language by."""
    return language.split("-")[0].lower()
