"""What is installed here, what of it works, and whether a recipe could run.

At the top only the schemas and the standard library are imported: whatever else is missing is a finding.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from evicat.catalog.recipes import load_profile, load_recipe
from evicat.flows.findings import BROKEN, Finding, Group, Report
from evicat.schemas.recipe import Profile, Recipe

Look = Callable[[Recipe, Profile], Iterator[Finding]]

LOOKS: tuple[tuple[Group, str, str], ...] = (
    ("package", "evicat.flows.doctor_packages", "packages"),
    ("extra", "evicat.flows.doctor_packages", "extras"),
    ("engine", "evicat.flows.doctor_parts", "engines"),
    ("device", "evicat.flows.doctor_parts", "devices"),
    ("model", "evicat.flows.doctor_parts", "models"),
    ("part", "evicat.flows.doctor_parts", "parts"),
    ("trial", "evicat.flows.doctor_trials", "trials"),
)
"""Group, module and function of everything that is looked at, in this order."""


def examine(recipe: str = "default", profile: str | None = None) -> Report:
    """Look at everything, and change nothing. Takes as long as the recipe's models take to load.

    Raises:
        UsageError: there is no such recipe or profile, or it does not fit its schema.
    """
    order, place = load_recipe(recipe), load_profile(profile)
    findings = tuple(finding for look in LOOKS for finding in _look(*look, order, place))
    return Report(
        evicat=_installed(),
        python=platform.python_version(),
        platform=platform.platform(),
        recipe=order.name,
        usable=all(finding.works for finding in findings if finding.needed),
        findings=findings,
    )


def _look(group: Group, module: str, function: str, recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """What one look finds; where it cannot even begin, that is the finding."""
    try:
        look = cast("Look", getattr(import_module(module), function))
        yield from look(recipe, profile)
    except BROKEN as error:
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        yield Finding(
            group=group,
            name=missing or function,
            works=False,
            needed=True,
            detail=f"cannot look at this: {type(error).__name__}: {error}",
            mend=f"pip install '{missing}'"
            if missing
            else "in the folder of evicat: pip install --editable .",
        )


def _installed() -> str:
    try:
        return version("evicat")
    except PackageNotFoundError:
        return ""
