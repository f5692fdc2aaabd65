"""All embedders by the name that a recipe calls them. A new one gets one line here."""

from __future__ import annotations

from typing import Any

from evicat.catalog.embedders.base import Embedder
from evicat.catalog.registry import check_options, find_class
from evicat.schemas.recipe import EmbedderOptions, Profile

EMBEDDERS: dict[str, str] = {
    "openai": "evicat.catalog.embedders.served:ServedEmbedder",
    "sentence-transformers": "evicat.catalog.embedders.sentence_transformer:SentenceTransformerEmbedder",
}
"""Name -> ``module:class``; the module is imported when the embedder is first asked for."""


def embedder_class(name: str) -> type[Embedder[Any]]:
    """The class behind a name.

    Raises:
        UnknownNameError: no embedder has this name.
    """
    found: type[Embedder[Any]] = find_class("embedder", name, EMBEDDERS)
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
    options = check_options(f"embedder {name!r}", found.options_class, embedder.options)
    return found(embedder, options, profile)
