"""Recipes that ship with evicat, and how any recipe or profile is found."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.recipe import Profile, Recipe, parse_toml


def shipped() -> dict[str, Recipe]:
    """Every recipe that ships, by name."""
    folder = files(__name__)
    texts = {
        f.name.removesuffix(".toml"): f.read_text() for f in folder.iterdir() if f.name.endswith(".toml")
    }
    return {name: parse_toml(Recipe, text, f"{name}.toml") for name, text in sorted(texts.items())}


def load_recipe(name_or_file: str) -> Recipe:
    """A shipped recipe by name, or one from a TOML file.

    Raises:
        UnknownNameError: no shipped recipe has this name and no such file exists.
        RecipeError: the file does not fit; the message names file, field and value.
    """
    if name_or_file.endswith(".toml") or "/" in name_or_file:
        return parse_toml(Recipe, _read(name_or_file, "recipe"), name_or_file)
    known = shipped()
    if name_or_file not in known:
        raise UnknownNameError("recipe", name_or_file, list(known))
    return known[name_or_file]


def recipe_text(name_or_file: str) -> str:
    """The TOML text of a recipe that fits, with its comments.

    Raises:
        UnknownNameError, RecipeError: as :func:`load_recipe`.
    """
    name = load_recipe(name_or_file).name
    if name_or_file in shipped():
        return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
    return _read(name_or_file, "recipe")


def load_profile(file: str | None) -> Profile:
    """The profile in a TOML file; the defaults where ``file`` is None."""
    return parse_toml(Profile, _read(file, "profile"), file) if file else Profile()


def _read(file: str, what: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecipeError(f"cannot read {what} {file}: {reason}") from None
