"""Reading a catalog as one head describes it. Nothing here creates or writes anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from evicat.schemas.errors import BusyError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer

from .damage import ReadTable, damage_told
from .head import Head, check_complete, current_head, kept_path
from .layout import Layout
from .rows import DEFAULT_VIEW, producer_from_row
from .sql import sql_equals
from .tables import FIXED_TABLES, embedder_id, vectors_table
from .transact import open_table

_TRIES = 5
"""So often a head is looked for whose versions are all there, while maintenances remove those of others."""


class Reader:
    """All tables of a catalog, pinned at the versions of one head. Threads may share it."""

    def __init__(self, layout: Layout, head: Head) -> None:
        self._layout = layout
        self.head = head
        self._lock = threading.Lock()
        self._datasets: dict[str, Any] = {}
        self._tables: dict[str, Any] = {}

    @classmethod
    def open(cls, uri: str | Path, head: Head | None = None) -> Reader:
        """Open the catalog in ``uri`` at ``head``; left out: at its latest.

        Raises:
            CatalogError: ``uri`` holds no catalog that this release can use.
            IntegrityError: its head is missing or broken.
        """
        layout = Layout.of(uri)
        layout.check_is_catalog()
        return cls(layout, head) if head else cls.latest(layout)

    @classmethod
    def latest(cls, layout: Layout) -> Self:
        """A reader at the newest head.

        A maintenance may move the head and remove the versions of this one before they are opened. So all
        are opened here, and where one is gone and the head has moved, the new head is taken. What is
        damaged else is told when it is asked for: other tables may be whole.

        Raises:
            IntegrityError: the head is missing or broken.
        """
        for _ in range(_TRIES):
            reader = cls(layout, current_head(layout))
            if reader._holds_all() or current_head(layout).number == reader.version:
                break
        return reader

    @property
    def version(self) -> int:
        """Number of the head."""
        return self.head.number

    def names(self) -> list[str]:
        """Names of all tables."""
        return sorted(self.head.tables)

    def dataset(self, name: str) -> Any:
        """A table as ``lance.LanceDataset``; its reads raise as :meth:`reading` does.

        Raises:
            UnknownNameError: there is no such table.
            IntegrityError: the head lacks a table that every catalog has, or the table or the version that it
                names is missing.
        """
        version = self._version_of(name)
        with self._lock:
            if name not in self._datasets:
                dataset = open_table(self._layout, name, version)
                self._datasets[name] = ReadTable(dataset, partial(self.reading, name))
            return self._datasets[name]

    def table(self, name: str) -> Any:
        """A table as ``lancedb.table.Table``, to be searched inside :meth:`reading`.

        Raises as :meth:`dataset` does.
        """
        import lancedb

        version = self.dataset(name).version
        with self._lock:
            if name not in self._tables:
                table = lancedb.connect(str(self._layout.tables)).open_table(name)
                table.checkout(version)
                self._tables[name] = table
            return self._tables[name]

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Around reading a table: what Lance raises becomes an error for people.

        Raises:
            IntegrityError: the table is damaged.
            BusyError: a maintenance has removed this head meanwhile.
        """
        try:
            with damage_told(name):
                yield
        except IntegrityError as error:
            if self._was_removed():
                raise BusyError(
                    f"a maintenance removed head {self.version} of {self._layout.root} while it was read; "
                    "open the catalog again, and let maintenance keep heads for longer than reading takes"
                ) from error
            raise

    def embedders(self) -> dict[str, Producer]:
        """Name of every vector table, and the producer (without ``reads``) whose vectors it holds."""
        rows = self.dataset("producers").to_table(columns=["facts"]).to_pylist()
        producers = (producer_from_row(row).model_copy(update={"reads": ()}) for row in rows)
        named = {vectors_table(embedder_id(producer)): producer for producer in producers}
        return {name: producer for name, producer in sorted(named.items()) if name in self.head.tables}

    def view(self, name: str = DEFAULT_VIEW) -> dict[tuple[str, str], str]:
        """What a view shows: the producer of each kind and scale; of ``embedding`` the embedder's id."""
        rows = self.dataset("views").to_table(filter=sql_equals("view", name)).to_pylist()
        return {(row["kind"], row["scale"]): row["producer_id"] for row in rows}

    def _holds_all(self) -> bool:
        """Open all tables; whether that went well."""
        try:
            for name in self.names():
                self.dataset(name)
        except IntegrityError:
            return False
        return True

    def _was_removed(self) -> bool:
        """Whether this was the newest head, is that no more, and is not even kept."""
        newest = current_head(self._layout).number
        return newest > self.version and not kept_path(self._layout, self.version).exists()

    def _version_of(self, name: str) -> int:
        if name not in self.head.tables:
            if name in FIXED_TABLES:
                if self.head.number < current_head(self._layout).number:
                    raise UsageError(
                        f"head {self.version} of {self._layout.root} was written before catalogs had a table "
                        f"{name!r}: open a newer head for what is in it"
                    )
                check_complete(self.head, self._layout)
            raise UnknownNameError("table", name, self.names())
        return self.head.tables[name]
