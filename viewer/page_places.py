"""Pages are handed on: what they say names no folder of the machine that made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from evicat.catalog.query import Catalog
from evicat.schemas.places import expanded, without_folders


def placeless(catalog: Catalog, folders: Sequence[str | Path] = ()) -> Callable[[str], str]:
    """Takes the folders out of paths in a text: of the catalog's roots, of ``folders``, and others.

    Raises:
        UsageError: one of ``folders`` begins with a home folder that is not there.
    """
    roots = catalog.dataset("roots").to_table(columns=["location"]).column("location").to_pylist()
    named = [str(expanded(folder).absolute()) for folder in folders]
    return partial(without_folders, locations=[*map(str, roots), *named])
