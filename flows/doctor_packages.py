"""Packages that evicat asks for, and what its extras would add."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions, requires, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from evicat.flows.findings import Finding, attempt
from evicat.schemas.recipe import Profile, Recipe

EXTRAS = {
    "offline": "small weights for speech (Whisper tiny.en) and search (MiniLM): no download",
    "decord": "a second decoder",
    "whisper": "OpenAI's own Whisper as a transcriber",
    "openai": "chat models, transcribers and embedders behind a server that speaks OpenAI's protocol",
    "transformers": "vision-language and text models in this process",
    "vllm": "the same at full speed on a GPU, in an environment of its own",
    "mcp": "serving the tools to agents by the Model Context Protocol",
    "notebook": "other engines over the tables, in notebooks",
    "train": "reading exports for training",
    "dev": "what tests, checks and benchmarks need",
}
"""What each extra is for."""

OF_SOME_RECIPES = frozenset(
    {"faster-whisper", "onnxruntime", "rapidocr", "sentence-transformers", "torch", "transformers"}
)
"""Packages that only some recipes use; the trials of a recipe's own parts tell whether it needs them."""


def packages(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """Every package that evicat depends on: there, new enough, and importable."""
    modules = _modules()
    for asked in _requirements():
        yield attempt(
            "package",
            asked.name,
            partial(_import, asked, modules.get(canonicalize_name(asked.name), [])),
            needed=asked.name not in OF_SOME_RECIPES,
            mend=f"pip install '{asked.name}{asked.specifier}'",
        )


def extras(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """Every extra: what it is for, what of it is missing, how to install it."""
    for name in _metadata_extras():
        asked = _requirements(name)
        missing = [f"{each.name}{each.specifier}" for each in asked if not _fits(each)]
        purpose = EXTRAS.get(name, ", ".join(each.name for each in asked))
        yield Finding(
            group="extra",
            name=name,
            works=not missing,
            needed=False,
            detail=f"{purpose}; missing: {', '.join(missing)}" if missing else purpose,
            mend=f"pip install 'evicat[{name}]'" if missing else "",
        )


def _metadata_extras() -> list[str]:
    try:
        return metadata("evicat").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []


def _requirements(extra: str = "") -> list[Requirement]:
    """What evicat always needs here, or what one of its extras adds to that.

    Raises:
        ModuleNotFoundError: evicat is not installed, so that nothing says what it needs.
    """
    try:
        asked = [Requirement(text) for text in requires("evicat") or []]
    except PackageNotFoundError:
        raise ModuleNotFoundError("evicat itself is not installed: nothing says what it needs") from None
    here = [each for each in asked if each.marker is None or each.marker.evaluate({"extra": extra})]
    return [each for each in here if bool(extra) == ("extra ==" in str(each.marker))]


def _modules() -> dict[str, list[str]]:
    """Package -> the modules that it brings, its own namesake first."""
    found: dict[str, set[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            found.setdefault(canonicalize_name(name), set()).add(module)
    return {
        name: sorted(
            modules, key=lambda module: (canonicalize_name(module) != name, module.startswith("_"), module)
        )
        for name, modules in found.items()
    }


def _fits(asked: Requirement) -> str:
    """The installed version where it is one that is asked for, else nothing."""
    try:
        found = version(asked.name)
    except PackageNotFoundError:
        return ""
    return found if asked.specifier.contains(found, prereleases=True) else ""


def _import(asked: Requirement, modules: list[str]) -> str:
    """Import the package and return its version.

    Raises:
        ImportError: it is not installed, too old, or does not import.
    """
    try:
        found = version(asked.name)
    except PackageNotFoundError:
        raise ModuleNotFoundError("not installed") from None
    if not _fits(asked):
        raise ImportError(f"{found} is installed, but {asked.specifier} is needed")
    if modules:
        import_module(modules[0])
    return found
