"""Making and reading evidence catalogs. ``from evicat.catalog import Catalog`` is where notebooks begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .query import Catalog

__all__ = ["Catalog"]


def __getattr__(name: str) -> Any:
    """``Catalog``, imported only when it is asked for: what makes catalogs needs none of it."""
    if name == "Catalog":
        from .query import Catalog

        return Catalog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
