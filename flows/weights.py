"""Which weights a name stands for here: where they lie, and the digest that identifies them."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape

from evicat.catalog.digests import files_of
from evicat.catalog.recipes import load_profile
from evicat.catalog.transcribers.fasterwhisper import hub_name
from evicat.catalog.weights import resolve
from evicat.schemas.model import Model


class Found(Model):
    """Weights that are here."""

    name: str
    revision: str
    folder: str
    digest: str
    files: int
    """Files that count."""
    bytes: int
    """Their size."""


def find(name: str, *, revision: str = "", profile: str | None = None) -> Found:
    """The weights that a recipe calls ``name``, fetched from the model hub where they are not here yet.

    Raises:
        UsageError, MissingExtraError: they cannot be had; says what to do.
        IntegrityError: packaged weights are not those that this release was made with.
    """
    place = load_profile(profile)
    weights = resolve(name, revision=revision, profile=place, hub_name=hub_name(name))
    folder = Path(weights.location)
    names = files_of(folder)
    return Found(
        name=name,
        revision=revision,
        folder=str(folder),
        digest=weights.ref.digest,
        files=len(names),
        bytes=sum((folder / each).stat().st_size for each in names),
    )


def print_found(console: Console, found: Found) -> None:
    """One line for each fact, so that the digest can be copied."""
    facts = {
        "name": found.name,
        "revision": found.revision,
        "folder": found.folder,
        "digest": found.digest,
        "size": f"{decimal(found.bytes)} in {found.files} file{'s' if found.files > 1 else ''}",
    }
    for fact, value in facts.items():
        if value:
            console.print(f"{fact:<9}{escape(value)}", soft_wrap=True, highlight=False)
