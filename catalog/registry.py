"""Components by the names that recipes call them: found when first asked for, their options checked."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from pydantic import ValidationError

from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.model import Model
from evicat.schemas.recipe import problem

M = TypeVar("M", bound=Model)


def find_class(what: str, name: str, known: Mapping[str, str]) -> Any:
    """The class that ``known`` has under ``name``, as ``module:class``.

    Raises:
        UnknownNameError: no ``what`` has this name; lists those that are known.
    """
    if name not in known:
        raise UnknownNameError(what, name, list(known))
    module, _, class_name = known[name].partition(":")
    return getattr(import_module(module), class_name)


def check_options(where: str, options_class: type[M], given: Mapping[str, Any]) -> M:
    """``given`` as the options object of a component; ``where`` names it in the error.

    Raises:
        RecipeError: an option is unknown or does not fit; names field, value and the known options.
    """
    try:
        return options_class.model_validate(given)
    except ValidationError as error:
        problems = "\n".join(problem(item) for item in error.errors())
        known = ", ".join(options_class.model_fields) or "none"
        raise RecipeError(f"{where}: options do not fit:\n{problems}\n  known options: {known}") from None
