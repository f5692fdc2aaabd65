"""All engines by the name that a profile calls them. A new one gets one line here."""

from __future__ import annotations

from evicat.catalog.registry import find_class
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import Profile

from .base import Engine

ENGINES: dict[str, str] = {
    "openai": "evicat.catalog.engines.served:ServedEngine",
    "scripted": "evicat.catalog.engines.scripted:ScriptedEngine",
    "simulated": "evicat.catalog.engines.simulated:SimulatedEngine",
    "transformers": "evicat.catalog.engines.transformers_engine:TransformersEngine",
    "vllm": "evicat.catalog.engines.vllm_engine:VllmEngine",
}
"""Name -> ``module:class``; the module is imported when the engine is first asked for."""


def open_engine(model: ModelRef, profile: Profile) -> Engine:
    """The engine that the profile names for a model. Loads and sends nothing.

    Raises:
        UsageError: the profile does not say how to run this model, or names no known engine.
        MissingExtraError: the engine's package is not installed.
    """
    where = profile.engines.get(model.name) or profile.engines.get("*")
    if where is None:
        raise UsageError(
            f'the profile does not say how to run {model.name!r}; write under [engines."{model.name}"]: '
            'engine = "openai" and endpoint = "http://HOST:PORT/v1", or engine = "simulated" to try the way'
        )
    found: type[Engine] = find_class("engine", where.engine, ENGINES)
    return found(model, where, profile)
