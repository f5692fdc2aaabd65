"""All describers by the name that a recipe calls them. A new one gets one line here."""

from __future__ import annotations

from typing import Any

from evicat.catalog.registry import check_options, find_class
from evicat.schemas.errors import RecipeError
from evicat.schemas.recipe import Profile, Scale

from .base import Describer

DESCRIBERS: dict[str, str] = {
    "sight": "evicat.catalog.describers.sight:Sight",
    "digest": "evicat.catalog.describers.digest:Digest",
    "vlm-local": "evicat.catalog.describers.vlm_local:VlmLocal",
    "vlm-narrative": "evicat.catalog.describers.vlm_narrative:VlmNarrative",
    "detector": "evicat.catalog.describers.detector:ObjectDetector",
}
"""Name -> ``module:class``; the module is imported when the describer is first asked for."""


def describer_class(name: str) -> type[Describer[Any]]:
    """The class behind a name.

    Raises:
        UnknownNameError: no describer has this name.
    """
    found: type[Describer[Any]] = find_class("describer", name, DESCRIBERS)
    return found


def load_describer(scale: Scale, profile: Profile) -> Describer[Any]:
    """The describer that a scale of a recipe asks for, with its options checked. Loads no weights.

    Raises:
        UnknownNameError: no describer has this name.
        RecipeError: the describer makes another kind of entry, needs frames and gets none or the other way
            round, or does not take these options.
    """
    found = describer_class(scale.describer)
    where = f"scale {scale.name}, describer {scale.describer!r}"
    if found.kind != scale.kind:
        raise RecipeError(f"{where}: it makes kind = {found.kind!r}, got kind = {scale.kind!r}")
    if scale.policy == "shots" and "frames" not in found.reads:
        raise RecipeError(
            f"{where}: shots are found by the pictures, and it reads none; write window_seconds, not policy"
        )
    if "frames" in found.reads and scale.frames is None:
        raise RecipeError(f"{where}: it needs frames; write frames = {{ per_window = 8, max_width = 640 }}")
    if "frames" not in found.reads and scale.frames is not None:
        raise RecipeError(f"{where}: it reads no frames; remove frames")
    options = check_options(where, found.options_class, scale.options)
    made: Describer[Any] = found(options, profile)
    made.frames_per_window = scale.frames.per_window if scale.frames else 0
    return made
