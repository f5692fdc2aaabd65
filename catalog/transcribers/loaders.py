"""All transcribers by the name that a recipe calls them. A new one gets one line here."""

from __future__ import annotations

from typing import Any

from evicat.catalog.registry import check_options, find_class
from evicat.catalog.transcribers.base import Transcriber
from evicat.schemas.recipe import Profile, SpeechOptions

TRANSCRIBERS: dict[str, str] = {
    "faster-whisper": "evicat.catalog.transcribers.fasterwhisper:FasterWhisper",
    "openai": "evicat.catalog.transcribers.served:ServedTranscriber",
    "openai-whisper": "evicat.catalog.transcribers.openai_whisper:OpenAIWhisper",
}
"""Name -> ``module:class``; the module is imported when the transcriber is first asked for."""


def transcriber_class(name: str) -> type[Transcriber[Any]]:
    """The class behind a name.

    Raises:
        UnknownNameError: no transcriber has this name.
    """
    found: type[Transcriber[Any]] = find_class("transcriber", name, TRANSCRIBERS)
    return found


def load_transcriber(speech: SpeechOptions, profile: Profile) -> Transcriber[Any]:
    """The transcriber that ``[speech]`` of a recipe names, with its options checked. Loads no weights.

    Raises:
        UnknownNameError: no transcriber, or no packaged model, has this name.
        RecipeError: the transcriber does not take these options.
        UsageError: the weights, or the package that carries them, are missing.
    """
    name = speech.transcriber or ""
    found = transcriber_class(name)
    options = check_options(f"transcriber {name!r}", found.options_class, speech.options)
    return found(speech, options, profile)
