"""All embedders by the name that a recipe calls them. A new one gets one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic import ValidationError

from evicat.catalog.embedders.base import Embedder
from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.recipe import EmbedderOptions, Profile

EMBEDDERS: dict[str, str] = {
    "sentence-transformers": "evicat.catalog.embedders.sentence_transformer:SentenceTransformerEmbedder"
}
"""Name -> ``module:class``; the module is imported when the embedder is first asked for."""


def embedder_class(name: str) -> type[Embedder[Any]]:
    """The class behind a name.

    Raises:
        UnknownNameError: no embedder has this name.
    """
    if name not in EMBEDDERS:
        raise UnknownNameError("embedder", name, list(EMBEDDERS))
    module, _, class_name = EMBEDDERS[name].partition(":")
    found: type[Embedder[Any]] = getattr(import_module(module), class_name)
    return found


def load_embedder(embedder: EmbedderOptions, profile: Profile) -> Embedder[Any]:
    """The embedder that ``[embedder]`` of a recipe names, with its options checked. Loads no weights.

    Raises:
        UnknownNameError: no embedder, or no packaged model, has this name.
        RecipeError: the embedder does not take these options.
        UsageError: the weights, or the package that carries them, are missing.
    """
    name = embedder.name
    found = embedder_class(name)
    try:
        options = found.options_class.model_validate(embedder.options)
    except ValidationError as error:
        problems = "\n".join(_problem(item) for item in error.errors())
        known = ", ".join(found.options_class.model_fields) or "none"
        raise RecipeError(
            f"embedder {name!r}: options do not fit:\n{problems}\n  known options: {known}"
        ) from None
    return found(embedder, options, profile)


def _problem(item: Any) -> str:
    field = ".".join(str(part) for part in item["loc"]) or "options"
    return f"  {field}: {item['msg']}, got {item['input']!r}"
