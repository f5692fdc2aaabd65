"""What a user asks for, checked before anything starts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evicat.catalog.kit import Kit
from evicat.catalog.recipes import load_profile, load_recipe
from evicat.catalog.sources import Source, find, folders
from evicat.schemas.entry import RETRIES
from evicat.schemas.errors import RecipeError, UnknownNameError, UsageError
from evicat.schemas.naming import Root
from evicat.schemas.recipe import Profile, Recipe
from evicat.storage.create import check_usable
from evicat.storage.layout import Layout
from evicat.storage.store import Store


@dataclass(frozen=True, slots=True)
class Request:
    """An order to index: what, into which catalog, by which recipe, how."""

    sources: list[Source]
    problems: list[str]
    """A message for each path that means no video; the others are indexed."""
    catalog: str
    recipe: Recipe
    profile: Profile
    retry: frozenset[str] = frozenset()
    """Outcomes that are made again (``evicat.schemas.entry.RETRIES``)."""
    roots: tuple[Root, ...] = ()
    """Folders and manifests that were asked for, also those without a video."""

    @classmethod
    def read(
        cls,
        paths: list[str],
        catalog: str,
        recipe: str,
        profile: str | None,
        retry: Collection[str] = (),
    ) -> Request:
        """Find the videos, read recipe and profile, look at the catalog; nothing is made or changed.

        Raises:
            UsageError: one of them is wrong, or no video was found at all.
        """
        for name in retry:
            if name not in RETRIES:
                raise UnknownNameError("outcome to retry", name, list(RETRIES))
        order = load_recipe(recipe), load_profile(profile)
        check_usable(catalog)
        sources, problems = find(paths)
        roots = folders(paths)
        if not sources and not _knows_videos_of(roots, catalog):
            raise UsageError("; ".join(problems) or "no paths were given")
        try:
            Kit(*order).close()  # loads no weights
        except (RecipeError, UnknownNameError) as error:
            raise RecipeError(f"recipe {recipe}: {error}") from None
        return cls(sources, problems, catalog, *order, frozenset(retry), tuple(roots))


def _knows_videos_of(roots: list[Root], catalog: str) -> bool:
    """Whether the catalog has videos of these roots, whose files may be gone."""
    if not roots or not Layout.of(catalog).marker.exists():
        return False
    asked = {root.root_id for root in roots}
    return any(name.root_id in asked for name in Store.connect(catalog).names())
