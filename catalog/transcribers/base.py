"""The interface of transcribers. A new one also gets a line in ``loaders.py``; the contract test runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile, SpeechOptions
from evicat.schemas.records import SpeechSegment

SAMPLE_RATE = 16_000
"""Samples per second of all sound inside evicat: mono float32 in [-1, 1]."""

Samples = npt.NDArray[np.float32]
OptionsT = TypeVar("OptionsT", bound=Model)


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
    def transcribe(self, samples: Samples, language: str | None = None) -> list[SpeechSegment]:
        """Segments of ``samples`` (shape ``(n,)``, 16 kHz), times in seconds from its first sample.

        Segments are sorted, lie inside the samples, and carry words with times and probabilities. Text of
        an earlier block never influences a later one. ``language`` None: detected on the speech itself.
        """
