"""The catalog of a viewer at the heads and through the views that its readers ask for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evicat.catalog.embedders.base import Embedder
from evicat.catalog.query import Catalog
from evicat.schemas.errors import IntegrityError, UsageError
from evicat.schemas.recipe import Profile
from evicat.storage.layout import SCHEMA, Layout
from evicat.storage.snapshots import Snapshot, readable_snapshots
from evicat.viewer.library_page import Library

T = TypeVar("T")
MOST_OPEN = 8
"""Heads and views that are open at the same time; the one that was not asked for longest is let go."""


class Place(NamedTuple):
    """Which state of the catalog is looked at. ``at``: a snapshot or head; None: the newest head."""

    at: str | None
    view: str | None


class Opened:
    """A catalog at one head through one view, with what pages of it need again and again."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._kept: dict[str, Any] = {}

    def keep(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` gave the first time; while one thread makes it, others that want it wait for it."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            if key not in self._kept:
                self._kept[key] = make()
            kept: T = self._kept[key]
            return kept

    @cached_property
    def library(self) -> Library:
        return Library.read(self.catalog)


class Catalogs:
    """Opens a catalog when it is asked for, and anew when its head has moved. Threads may share it."""

    def __init__(
        self, uri: str, profile: Profile, default: Place, media_roots: Sequence[str | Path] = ()
    ) -> None:
        """``default``: what is looked at where a reader names nothing else."""
        self.uri = uri
        self.layout = Layout.of(uri)
        self.default = default
        self.media_roots = tuple(media_roots)
        self._profile = profile
        self._lock = threading.Lock()
        self._open: OrderedDict[Place, tuple[tuple[int, int], Opened]] = OrderedDict()
        self._snapshots: tuple[tuple[int, int], list[Snapshot]] = (0, 0), []
        self._embedding = threading.Lock()
        self._embedders: dict[str, Embedder[Any]] = {}

    def get(self, place: Place) -> Opened:
        """The catalog at a head and through a view; what ``place`` leaves open is the default.

        Raises:
            UnknownNameError: there is no such snapshot, head or view.
            CatalogError: there is no catalog any more.
        """
        place = Place(place.at or self.default.at, place.view or self.default.view)
        with self._lock:
            stamp = self._stamp(place)
            if place not in self._open or self._open[place][0] != stamp:
                catalog = Catalog.open(self.uri, self._profile, at=place.at)
                opened = Opened(catalog.view(place.view) if place.view else catalog)
                self._open[place] = stamp, opened
            self._open.move_to_end(place)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return self._open[place][1]

    def _stamp(self, place: Place) -> tuple[int, int]:
        """What changes when another head may be meant: the newest head, else the snapshots."""
        try:
            found = (self.layout.head if place.at is None else self.layout.snapshots).stat()
        except FileNotFoundError:
            if place.at is None:
                raise IntegrityError(f"{self.layout.head} is gone: this is no catalog any more") from None
            return 0, 0  # there never was a snapshot: a number of a head is meant
        return found.st_mtime_ns, found.st_ino

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that can be opened, newest first; read again where one was made or deleted."""
        stamp = self._stamp(Place("any", None))
        if stamp != self._snapshots[0]:
            found, _ = readable_snapshots(self.layout)
            found = [each for each in found if each.catalog_schema == SCHEMA]
            self._snapshots = stamp, sorted(found, key=lambda each: each.created, reverse=True)
        return self._snapshots[1]

    def warm(self) -> None:
        """Load the model that questions are embedded with, which takes seconds, before the first of them."""
        with suppress(UsageError):  # whoever asks is told
            self.query_vector(self.get(Place(None, None)), "warm")

    def query_vector(self, opened: Opened, query: str) -> npt.NDArray[np.float32] | None:
        """``query`` as a vector of the table that the view searches; None where those are several or none.

        The model is loaded once, however many heads are open.

        Raises:
            UsageError: the model that made the vectors is not here.
        """
        tables = opened.catalog.embedder_tables()
        if len(tables) != 1:
            return None
        with self._embedding:  # an embedder serves one thread at a time
            if tables[0] not in self._embedders:
                self._embedders[tables[0]] = opened.catalog.embedders()[tables[0]]
            return self._embedders[tables[0]].embed_query(query)
