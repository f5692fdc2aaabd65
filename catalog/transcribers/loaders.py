"""All transcribers by the name that a recipe calls them. A new one gets one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic import ValidationError

from evicat.catalog.transcribers.base import Transcriber
from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.recipe import Profile, SpeechOptions

TRANSCRIBERS: dict[str, str] = {"faster-whisper": "evicat.catalog.transcribers.fasterwhisper:FasterWhisper"}
"""Name -> ``module:class``; the module is imported when the transcriber is first asked for."""


def transcriber_class(name: str) -> type[Transcriber[Any]]:
    """The class behind a name.

    Raises:
        UnknownNameError: no transcriber has this name.
    """
    if name not in TRANSCRIBERS:
        raise UnknownNameError("transcriber", name, list(TRANSCRIBERS))
    module, _, class_name = TRANSCRIBERS[name].partition(":")
    found: type[Transcriber[Any]] = getattr(import_module(module), class_name)
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
    try:
        options = found.options_class.model_validate(speech.options)
    except ValidationError as error:
        problems = "\n".join(_problem(item) for item in error.errors())
        known = ", ".join(found.options_class.model_fields) or "none"
        raise RecipeError(
            f"transcriber {name!r}: options do not fit:\n{problems}\n  known options: {known}"
        ) from None
    return found(speech, options, profile)


def _problem(item: Any) -> str:
    field = ".".join(str(part) for part in item["loc"]) or "options"
    return f"  {field}: {item['msg']}, got {item['input']!r}"
