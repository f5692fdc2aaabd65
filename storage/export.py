"""A snapshot as a catalog of its own: fresh tables and indexes, no media, no path of the machine.

An export can be published: it opens as a catalog anywhere. An import is the same the other way. What stays
are paths relative to a root, and a model that is known by its path only (its path is its identity then).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from evicat.schemas.errors import CatalogError, EvicatError, UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.places import without_folders

from .create import check_not_within, write_marker
from .head import Head, write_head
from .indexes import refresh
from .layout import Layout
from .reader import Reader
from .rows import producer_from_row, producer_row
from .snapshots import (
    Snapshot,
    check_content,
    check_schema,
    check_versions,
    find_snapshot,
    snapshots,
    write_manifest,
)
from .tables import FILE_FORMAT
from .transact import Tables

_BATCH_ROWS = 4096


def export_snapshot(uri: str | Path, name: str, destination: str | Path) -> Snapshot:
    """Write the snapshot ``name`` as a catalog into ``destination``, a folder that is new or empty.

    Its content hash is compared with the original's before ``destination`` exists.

    Raises:
        UnknownNameError: there is no such snapshot.
        CatalogError: ``destination`` holds something or lies in a catalog, or a schema does not fit.
        IntegrityError: the snapshot is not what its manifest says.
    """
    layout = Layout.of(uri)
    layout.check_is_catalog()
    return _copy(layout, find_snapshot(layout, name), Layout.of(destination))


def import_snapshot(folder: str | Path, uri: str | Path, name: str | None = None) -> Snapshot:
    """Make a catalog in ``uri`` of a snapshot in ``folder``; without ``name``, of the only one.

    Raises:
        UsageError: ``folder`` holds no or several snapshots.
        UnknownNameError: it holds none of this name.
        CatalogError: ``folder`` is no catalog, ``uri`` holds something or lies in a catalog, or a schema does
            not fit.
        IntegrityError: the snapshot is not what its manifest says.
    """
    layout = Layout.of(folder)
    layout.check_is_catalog()
    return _copy(layout, find_snapshot(layout, name) if name else _only_snapshot(layout), Layout.of(uri))


def _only_snapshot(layout: Layout) -> Snapshot:
    found = snapshots(layout)
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{layout.root} holds no snapshot; import takes what `evicat snapshot export` wrote")
    names = ", ".join(snapshot.name for snapshot in found)
    raise UsageError(f"{layout.root} holds several snapshots: {names}; say which one with --name")


def _copy(source: Layout, snapshot: Snapshot, target: Layout) -> Snapshot:
    check_not_within(target.root)
    check_schema(snapshot)
    reader = Reader(source, snapshot.head)
    check_versions(reader, f"snapshot {snapshot.name!r}")
    with _new_folder(target.root) as unnamed:
        layout = Layout.of(unnamed)
        head = _write_tables(reader, layout)
        producers = {key: _unplaced(producer) for key, producer in snapshot.producers.items()}
        copied = snapshot.model_copy(update={"head": head, "producers": producers})
        check_content(Reader(layout, copied.head), copied)
        write_manifest(layout, copied)
        write_marker(layout)
    return copied


@contextmanager
def _new_folder(destination: Path) -> Iterator[Path]:
    """A hidden folder beside ``destination`` that takes its name when all went well, and else is removed."""
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise CatalogError(f"{destination} is not empty; choose a new or empty folder")
    destination.parent.mkdir(parents=True, exist_ok=True)
    unnamed = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=destination.parent))
    try:
        yield unnamed
        unnamed.chmod(0o755)  # a temporary folder is its maker's alone
        unnamed.rename(destination)
    except BaseException:
        shutil.rmtree(unnamed, ignore_errors=True)
        raise


def _write_tables(reader: Reader, layout: Layout) -> Head:
    """Fresh tables with indexes, and the head that names them."""
    for folder in (layout.tables, layout.heads, layout.staged):
        folder.mkdir()
    clean = _cleaners(reader)
    versions = {}
    for name in reader.names():
        versions[name] = _write_table(reader.dataset(name), clean.get(name), layout.table(name))
    write_head(layout, Head.first(versions))
    tables = Tables(layout)
    refresh(tables)
    head = Head.first(tables.versions())
    write_head(layout, head)
    return head


Clean = Callable[[pa.RecordBatch], pa.RecordBatch]


def _write_table(dataset: Any, clean: Clean | None, path: Path) -> int:
    """Write a table and return its version."""
    import lance

    failed: list[EvicatError] = []
    try:
        written = lance.write_dataset(
            _batches(dataset, clean, failed),
            str(path),
            schema=dataset.schema,
            mode="create",
            data_storage_version=FILE_FORMAT,
        )
    except OSError:
        if failed:  # Lance raises an error of its own around what reading the rows raised
            raise failed[0] from None
        raise
    return int(written.version)


def _cleaners(reader: Reader) -> dict[str, Clean]:
    """By table: what takes the paths of this machine out of its rows."""
    roots = reader.dataset("roots").to_table(columns=["location"]).to_pylist()
    locations = [str(row["location"]) for row in roots]

    def producers(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = [producer_row(_unplaced(producer_from_row(row))) for row in batch.to_pylist()]
        return pa.RecordBatch.from_pylist(rows, schema=batch.schema)

    messages = partial(_each, "message", partial(without_folders, locations=locations))
    return {
        "roots": partial(_each, "location", lambda _: ""),
        "producers": producers,
        "videos": messages,
        "coverage": messages,
    }


def _unplaced(producer: Producer) -> Producer:
    """The same producer; a path to its weights is their file name where a digest says which they are."""
    model = producer.model
    if model is None or not model.digest or not Path(model.name).is_absolute():
        return producer
    named = model.model_copy(update={"name": Path(model.name).name})
    return producer.model_copy(update={"model": named})


def _each(column: str, clean: Callable[[str], str], batch: pa.RecordBatch) -> pa.RecordBatch:
    texts = pa.array([clean(str(text)) for text in batch.column(column).to_pylist()], pa.string())
    at = batch.schema.get_field_index(column)
    return batch.set_column(at, batch.schema.field(at), texts)


def _batches(dataset: Any, clean: Clean | None, failed: list[EvicatError]) -> Iterator[pa.RecordBatch]:
    """Rows for Lance to write; an error of ours is kept in ``failed``."""
    try:
        for batch in dataset.scanner(batch_size=_BATCH_ROWS).to_batches():
            yield clean(batch) if clean else batch
    except EvicatError as error:
        failed.append(error)
        raise
