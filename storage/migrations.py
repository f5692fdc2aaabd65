"""Migrations: an older catalog becomes one of this release, when asked.

``MIGRATIONS[n]`` holds the steps from schema ``n`` to ``n + 1``. Every step may be run again, whatever was
done before it was interrupted, and the marker of the catalog is rewritten behind the last one: until then
the catalog has its old schema, and the same command finishes what was begun. The tables as they were before
stay, named by the snapshot ``before-schema-{n + 1}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from .claims import check_none_held
from .commit import drain, move_head
from .files import write_durably
from .head import current_head
from .layout import SCHEMA, Layout
from .locks import CommitRight
from .rows import DEFAULT_VIEW, Row, producer_from_row, view_row
from .snapshots import Snapshot, write_manifest
from .staging import StagingArea
from .tables import COVERAGE, NAMES, SUPPORTS, TAGS, VIEWS, VOCABULARIES
from .transact import Tables, open_table

Step = Callable[[Layout], None]


@dataclass(frozen=True, slots=True)
class Migration:
    """What :func:`migrate` did: nothing where ``before`` and ``after`` are equal."""

    before: int
    after: int
    kept: tuple[str, ...] = ()
    """Names of the snapshots of what was there before."""


def migrate(uri: str | Path, *, lock_timeout_s: float = 300.0) -> Migration:
    """Bring a catalog to the schema of this release; one that has it already is not touched.

    Raises:
        CatalogError: there is no catalog, or one of a newer schema.
        BusyError: somebody is writing to it.
        IntegrityError: head and tables contradict each other, or staged results do.
    """
    layout = Layout.of(uri)
    before = layout.schema()
    if before >= SCHEMA:
        layout.check_is_catalog()  # refuses a newer one
        return Migration(before, before)
    layout.claims.mkdir(parents=True, exist_ok=True)
    right = CommitRight(layout.commit_lock, f"the right to commit to {layout.root}", lock_timeout_s)
    with right.held():
        # a run of an older release would go on with tables that it does not know
        check_none_held(layout, f"{layout.root} cannot be migrated now")
        kept = tuple(_migrate_once(layout, schema) for schema in range(layout.schema(), SCHEMA))
    return Migration(before, SCHEMA, kept)


def _migrate_once(layout: Layout, schema: int) -> str:
    name = f"before-schema-{schema + 1}"
    keep_as_it_is(layout, schema, name)
    for step in MIGRATIONS[schema]:
        step(layout)
    write_marker(layout, schema + 1)
    return name


def keep_as_it_is(layout: Layout, schema: int, name: str) -> None:
    """Name the present head, unless an interrupted migration has done so: then it is no longer the old one.

    The manifest has no content hash: what counts in it may lie in columns that come with a later schema.
    """
    if (layout.snapshots / f"{name}.json").exists():
        return
    head = current_head(layout)
    rows = {table: open_table(layout, table, version).count_rows() for table, version in head.tables.items()}
    snapshot = Snapshot(
        name=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        note=f"The catalog of schema {schema}, before it was migrated",
        evicat=f"(schema {schema})",
        catalog_schema=schema,
        head=head,
        view=(),
        producers={},
        rows=rows,
        content_hash="",
    )
    write_manifest(layout, snapshot)


def write_marker(layout: Layout, schema: int) -> None:
    content = json.loads(layout.marker.read_text(encoding="utf-8")) | {"schema": schema}
    write_durably(layout.marker, (json.dumps(content) + "\n").encode())


# From schema 1 to 2: names may be missing, views say which producers are active, heads are kept


COLUMNS_OF_2 = {"names": [NAMES.field("missing_since")], "coverage": [COVERAGE.field("raw")]}
"""Columns by table, all of them null in what was there before."""


def make_folders(layout: Layout) -> None:
    for folder in (layout.heads, layout.snapshots, layout.staged, layout.journals):
        folder.mkdir(parents=True, exist_ok=True)


def add_columns_and_views(layout: Layout) -> None:
    """New columns, the filled table ``views``, and ``supports``, in one head: no head has a half of it."""
    tables = Tables(layout)
    for table, columns in COLUMNS_OF_2.items():
        dataset = tables.dataset(table)
        missing = [column for column in columns if column.name not in dataset.schema.names]
        if missing:
            dataset.add_columns(pa.schema(missing))
    tables.ensure("views", VIEWS)
    tables.ensure("supports", SUPPORTS)
    _ensure_tags(tables)  # what is staged is committed by the rules of this release
    _activate_missing(tables)
    move_head(layout, tables)


def commit_waiting(layout: Layout) -> None:
    """Commit what older runs left staged, and activate the producers that come with it."""
    drain(layout, StagingArea(layout.staged))
    tables = Tables(layout)
    _activate_missing(tables)
    move_head(layout, tables)


def _activate_missing(tables: Tables) -> None:
    """Add to the default view the kinds and scales that it lacks."""
    there = {
        (row["kind"], row["scale"])
        for row in tables.dataset("views").to_table().to_pylist()
        if row["view"] == DEFAULT_VIEW
    }
    missing = [row for row in latest_producers(tables) if (row["kind"], row["scale"]) not in there]
    tables.replace("views", pa.Table.from_pylist(missing, schema=VIEWS))


def latest_producers(tables: Tables) -> list[Row]:
    """View rows: of each kind and scale the producer whose units were written last.

    Of those without units, the last in ``producers``. Units stand in ``units`` in the order in which they
    were written, as replacing one moves it to the end.
    """
    written = tables.dataset("units").to_table(columns=["producer_id"])["producer_id"].to_pylist()
    place = {producer_id: at for at, producer_id in enumerate(written)}
    rows = tables.dataset("producers").to_table(columns=["producer_id", "facts"]).to_pylist()
    rows.sort(key=lambda row: place.get(row["producer_id"], -1))
    views = [view_row(producer_from_row(row)) for row in rows]
    return list({(row["kind"], row["scale"]): row for row in views}.values())


# From schema 2 to 3: factor tags, and the vocabularies that they are of


def add_tags(layout: Layout) -> None:
    """The tables ``tags`` and ``vocabularies``, without rows."""
    tables = Tables(layout)
    _ensure_tags(tables)
    move_head(layout, tables)


def _ensure_tags(tables: Tables) -> None:
    tables.ensure("tags", TAGS)
    tables.ensure("vocabularies", VOCABULARIES)


MIGRATIONS: dict[int, tuple[Step, ...]] = {
    1: (make_folders, add_columns_and_views, commit_waiting),
    2: (add_tags,),
}
