"""Re-indexing: what a catalog holds, under another recipe; only what differs is made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State

from evicat.catalog.recipes import load_profile, load_recipe
from evicat.catalog.sources import Source
from evicat.flows.ingest import run_request
from evicat.flows.limits import Limits
from evicat.flows.request import Request
from evicat.flows.summary import Summary
from evicat.schemas.errors import UsageError
from evicat.schemas.naming import storable
from evicat.storage.layout import Layout
from evicat.storage.store import Store


@flow(name="evicat-reindex", flow_run_name="reindex {catalog} by {recipe}")
def reindex(
    catalog: str,
    recipe: str,
    profile: str | None = None,
    retry: list[str] | None = None,
    limits: Limits | None = None,
) -> State[Summary]:
    """Make what ``recipe`` asks for of every video in the catalog and is not there yet.

    What other recipes made stays, and is shown until another producer is made the active one.

    Raises:
        UsageError: the recipe, profile or catalog is wrong, or none of its videos can be reached.
    """
    return run_request(catalog_request(catalog, recipe, profile, retry or []), limits or Limits())


def catalog_request(catalog: str, recipe: str, profile: str | None, retry: list[str]) -> Request:
    """A request for all videos that a catalog has names for, from where its roots lie.

    Raises:
        UsageError: the recipe, profile or catalog is wrong, or none of its videos can be reached.
    """
    load_recipe(recipe), load_profile(profile)  # said before the storage engine is imported
    Layout.of(catalog).check_is_catalog()
    store = Store.connect(catalog)
    places, wanted = _places(store)
    assets = store.named()
    if not wanted:
        raise UsageError(f"{catalog} has no videos; index some first")
    if not places:
        raise UsageError(
            f"{catalog} was imported, and knows no place of its videos; index their folder by this recipe"
        )
    request = Request.read(places, catalog, recipe, profile, retry)
    known = [source for source in request.sources if _key(source) in wanted]
    reached = {assets[_key(source)] for source in known}
    lost = Counter(place for key, place in wanted.items() if assets[key] not in reached)
    away = [f"{place or 'no place'}: {count} videos are out of reach" for place, count in lost.most_common()]
    if not known:
        raise UsageError("; ".join(away))
    return Request(known, away, catalog, request.recipe, request.profile, request.retry)


def _places(store: Store) -> tuple[list[str], dict[tuple[str, str], str]]:
    """What to look through, and ``(root, video name) -> location of the root`` of all that is present."""
    roots = {root.root_id: root for root in store.roots()}
    names = [name for name in store.names() if name.missing_since is None]
    wanted = {(name.root_id, name.name): roots[name.root_id].location for name in names}
    placed = [root for root in roots.values() if root.location]
    places = [root.location for root in placed if root.kind != "files"]
    apart = {root.root_id for root in placed if root.kind == "files"}
    single = [name for name in names if name.root_id in apart]
    places += [str(Path(roots[name.root_id].location, name.path)) for name in single]
    return places, wanted


def _key(source: Source) -> tuple[str, str]:
    return source.own_root.root_id, storable(source.name)
