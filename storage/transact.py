"""Transactions on the Lance tables of a catalog, for whoever holds the commit lock."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.errors import IntegrityError

from .damage import OF_LANCE, damage_told, reason_of
from .head import Head, current_head
from .layout import Layout
from .sql import Value, sql_in
from .tables import FILE_FORMAT, table_spec

log = logging.getLogger(__name__)

ROW = "_rowaddr"
"""Column with the address of a row: fragment id in the upper 32 bits, offset in the lower."""


class Tables:
    """All tables of a catalog at the versions of its head, and one transaction per table on top of them."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.head: Head = current_head(layout)
        self._datasets: dict[str, Any] = {
            name: _at_head(layout, name, version) for name, version in self.head.tables.items()
        }

    def versions(self) -> dict[str, int]:
        return {name: dataset.version for name, dataset in self._datasets.items()}

    def names(self) -> list[str]:
        return list(self._datasets)

    def dataset(self, name: str) -> Any:
        """The ``lance.LanceDataset`` of a table."""
        return self._datasets[name]

    def ensure(self, name: str, schema: pa.Schema) -> None:
        """Make a table unless the head has it. What a crash left under its name is overwritten."""
        if name not in self._datasets:
            self._datasets[name] = create_table(self._layout, name, schema)

    def find(self, name: str, column: str, values: Iterable[Value], columns: Iterable[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``: the asked columns and ``ROW``.

        Raises:
            IntegrityError: the table is damaged.
        """
        with damage_told(name):
            rows: pa.Table = self._datasets[name].to_table(
                columns=list(columns), filter=sql_in(column, values), with_row_address=True
            )
        return rows

    def replace(self, name: str, new: pa.Table, doomed: Any = ()) -> None:
        """Append ``new`` and remove the rows at the addresses ``doomed`` (uint64), in one transaction."""
        import lance
        from lance.fragment import write_fragments

        dataset = self._datasets[name]
        if not new.num_rows and not len(doomed):
            return
        rows = new.select(dataset.schema.names).cast(dataset.schema)  # a migrated table has its own order
        written = write_fragments(rows, dataset, mode="append") if new.num_rows else []
        if len(doomed):
            removed, updated = _without(dataset, np.asarray(doomed, dtype=np.uint64))
            operation = lance.LanceOperation.Update(
                removed_fragment_ids=removed, updated_fragments=updated, new_fragments=written
            )
        else:
            operation = lance.LanceOperation.Append(written)
        self._datasets[name] = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)

    def update_column(self, name: str, column: str, rows: pa.Table) -> None:
        """Set one column of the rows at ``ROW`` of ``rows``, in one transaction; no other column is touched.

        Addresses stay, and so do all indexes but those on this column.
        """
        import lance

        dataset = self._datasets[name]
        if not rows.num_rows:
            return
        fragments = rows[ROW].to_numpy() >> np.uint64(32)
        modified = {field.id() for field in dataset.lance_schema.fields() if field.name() == column}
        updated = []
        for number in np.unique(fragments).tolist():
            part = rows.filter(pa.array(fragments == number))
            fragment, fields = dataset.get_fragment(number).update_columns(part, left_on=ROW)
            updated.append(fragment)
            modified.update(fields)  # of a list these are its items alone, which no index is on
        operation = lance.LanceOperation.Update(updated_fragments=updated, fields_modified=sorted(modified))
        self._datasets[name] = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)

    def check_unique(self, name: str, column: str, values: Iterable[Value]) -> pa.Table:
        """Keys of the rows whose ``column`` is one of ``values``.

        Raises:
            IntegrityError: a key is null or stands twice.
        """
        rows = self.find(name, column, values, {*table_spec(name).key, column})
        check_keys(name, rows)
        return rows


def distinct(column: Any) -> list[Any]:
    """The different values of an Arrow column."""
    values: list[Any] = pc.unique(column).to_pylist()
    return values


def join(rows: pa.Table, others: pa.Table, on: list[str], how: Literal["left semi", "left anti"]) -> pa.Table:
    """``rows`` that have (``left semi``) or lack (``left anti``) a partner with equal ``on``."""
    if not rows.num_rows:
        return rows
    return rows.join(others.select(on), keys=on, join_type=how)


def create_table(layout: Layout, name: str, schema: pa.Schema) -> Any:
    import lance

    path = layout.table(name)
    return lance.write_dataset(
        schema.empty_table(),
        str(path),
        mode="overwrite" if path.exists() else "create",
        data_storage_version=FILE_FORMAT,
    )


def check_keys(name: str, rows: pa.Table) -> None:
    """Check the key columns of rows of table ``name``.

    Raises:
        IntegrityError: a key is null or stands twice; names the table and the key.
    """
    key = list(table_spec(name).key)
    for column in key:
        if rows[column].null_count:
            raise IntegrityError(f"table {name!r}: {rows[column].null_count} rows without {column}")
    counts = rows.select(key).group_by(key).aggregate([([], "count_all")])
    if counts.num_rows < rows.num_rows:
        twice = next(row for row in counts.to_pylist() if row["count_all"] > 1)
        count = twice.pop("count_all")
        raise IntegrityError(f"table {name!r}: {twice} stands {count} times, once is right")


def open_table(layout: Layout, name: str, version: int) -> Any:
    """The ``lance.LanceDataset`` of a table, at the version that a head names.

    Raises:
        IntegrityError: the table or this version of it is missing or broken.
    """
    import lance

    path = layout.table(name)
    if not path.is_dir():
        raise IntegrityError(f"table {name!r} is missing: the head lists it, but there is no {path}")
    try:
        return lance.dataset(str(path), version=version)
    except OF_LANCE as error:
        raise IntegrityError(
            f"table {name!r} has no usable version {version}, which the head names: {reason_of(error)}"
        ) from error


def _at_head(layout: Layout, name: str, version: int) -> Any:
    """A table whose latest version is what the head says, rolled back to it where it is ahead."""
    dataset = open_table(layout, name, version)
    latest = dataset.latest_version
    if latest != version:
        log.warning("table %r is at version %d, ahead of the head's %d: rolled back", name, latest, version)
        dataset.restore()
    return dataset


def _without(dataset: Any, doomed: Any) -> tuple[list[int], list[Any]]:
    """Ids of the fragments that vanish with ``doomed``, and metadata of those that lose some rows."""
    removed, updated = [], []
    fragments = (doomed >> np.uint64(32)).astype(np.int64)
    offsets = (doomed & np.uint64(0xFFFFFFFF)).astype(np.int64)
    for fragment_id in np.unique(fragments).tolist():
        rest = dataset.get_fragment(fragment_id).delete_rows(offsets[fragments == fragment_id].tolist())
        if rest is None:
            removed.append(fragment_id)
        else:
            updated.append(rest)
    return removed, updated
