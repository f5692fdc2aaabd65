"""Reading a catalog as one head describes it. Nothing here creates or writes anything."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from evicat.schemas.errors import UnknownNameError
from evicat.schemas.identity import Producer

from .head import Head, read_head
from .layout import Layout
from .rows import DEFAULT_VIEW, producer_from_row
from .sql import sql_equals
from .tables import embedder_id, vectors_table
from .transact import open_table


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
        return cls(layout, head or read_head(layout.head))

    @property
    def version(self) -> int:
        """Number of the head."""
        return self.head.number

    def names(self) -> list[str]:
        """Names of all tables."""
        return sorted(self.head.tables)

    def dataset(self, name: str) -> Any:
        """A table as ``lance.LanceDataset``.

        Raises:
            UnknownNameError: the head lists no such table.
            IntegrityError: it does, but the table or this version of it is missing.
        """
        version = self._version_of(name)
        with self._lock:
            if name not in self._datasets:
                self._datasets[name] = open_table(self._layout, name, version)
            return self._datasets[name]

    def table(self, name: str) -> Any:
        """A table as ``lancedb.table.Table``; raises as :meth:`dataset` does."""
        import lancedb

        version = self.dataset(name).version
        with self._lock:
            if name not in self._tables:
                table = lancedb.connect(str(self._layout.tables)).open_table(name)
                table.checkout(version)
                self._tables[name] = table
            return self._tables[name]

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

    def _version_of(self, name: str) -> int:
        if name not in self.head.tables:
            raise UnknownNameError("table", name, self.names())
        return self.head.tables[name]
