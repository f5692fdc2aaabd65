"""Snapshots: named, kept heads. What a snapshot names can be opened until it is deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from evicat.schemas.errors import BusyError, CatalogError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.model import Model, content_hash

from .commit import drain, move_head
from .content import content_hash_of
from .files import sync_folder, write_durably
from .head import Head, earlier_heads
from .indexes import refresh
from .layout import SCHEMA, Layout
from .locks import commit_right
from .reader import Reader
from .rows import producer_from_row
from .staging import StagingArea
from .transact import Tables

NAME = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a snapshot may be called: only digits would read as the number of a head."""


class Active(Model):
    """The producer that a view shows for a kind and scale."""

    view: str
    kind: str
    scale: str
    producer_id: str


class Snapshot(Model):
    """A named head, and what it held when it was named."""

    format: Literal["evicat-snapshot"] = "evicat-snapshot"
    name: str
    created: str
    """When, as ISO 8601 in UTC."""
    note: str = ""
    recipes: tuple[str, ...] = ()
    """What it was made with, as far as whoever created it said so."""
    evicat: str
    """Version of the package that wrote it."""
    catalog_schema: int
    """Number of the catalog layout and table schemas."""
    head: Head
    view: tuple[Active, ...]
    producers: dict[str, Producer]
    """By ``producer_id``."""
    rows: dict[str, int]
    """How many rows every table has."""
    content_hash: str
    """Equal for two catalogs built alike, on whichever machine; see ``storage.content``."""


def snapshots(layout: Layout) -> list[Snapshot]:
    """Every snapshot of a catalog, by name.

    Raises:
        IntegrityError: a manifest is broken or was edited; what it kept is not known then.
    """
    return [_read(path) for path in _manifests(layout)]


def readable_snapshots(layout: Layout) -> tuple[list[Snapshot], list[IntegrityError]]:
    """As :func:`snapshots`, but beside those that can be read returns what is wrong with the others."""
    found, errors = [], []
    for path in _manifests(layout):
        try:
            found.append(_read(path))
        except IntegrityError as error:
            errors.append(error)
    return found, errors


def has_snapshot(layout: Layout, name: str) -> bool:
    """Whether there is a snapshot of this name, also one whose manifest is broken."""
    return name in [path.stem for path in _manifests(layout)]


def find_snapshot(layout: Layout, name: str) -> Snapshot:
    """The snapshot of this name.

    Raises:
        UnknownNameError: there is none; names those that there are.
        IntegrityError: its manifest is broken or was edited.
    """
    return _read(_manifest(layout, name))


def head_at(layout: Layout, at: str) -> Head:
    """The head that ``at`` means: the name of a snapshot, or the number of a head.

    Raises:
        UnknownNameError: there is none such; names those that there are.
        IntegrityError: the manifest of the snapshot is broken or was edited.
        CatalogError: the snapshot is of another schema.
    """
    if not at.isdecimal():
        snapshot = find_snapshot(layout, at)
        check_schema(snapshot)
        return snapshot.head
    heads = {head.number: head for head in earlier_heads(layout)}
    if int(at) not in heads:
        raise UnknownNameError("head", at, [str(number) for number in heads])
    return heads[int(at)]


def reader_at(uri: str | Path, at: str) -> Reader:
    """A reader at a snapshot or an earlier head; raises as :func:`head_at` does.

    Raises:
        IntegrityError: table versions that the head names are gone.
    """
    layout = Layout.of(uri)
    layout.check_is_catalog()
    reader = Reader(layout, head_at(layout, at))
    check_versions(reader, f"head {at}" if at.isdecimal() else f"snapshot {at!r}")
    return reader


def create_snapshot(
    uri: str | Path,
    name: str,
    *,
    note: str = "",
    recipes: Sequence[str] = (),
    lock_timeout_s: float = 300.0,
) -> Snapshot:
    """Commit what is staged, bring the indexes up to date, and name the head that this gives.

    Raises:
        CatalogError: ``uri`` holds no catalog that this release can use.
        UsageError: the name does not fit, or there is a snapshot of this name.
        BusyError: another process was committing for ``lock_timeout_s`` on end, or a maintenance removed the
            head before it had its name.
    """
    layout = Layout.of(uri)
    layout.check_is_catalog()
    check_name(layout, name)
    right = commit_right(layout, lock_timeout_s)
    with right.held():
        check_name(layout, name)
        head = _settled_head(layout)
    # Reading it all may take minutes, in which others commit. A maintenance keeps young heads, unless it was
    # told to keep none; so it is looked at again before the name promises anything.
    snapshot = describe(Reader(layout, head), name, note=note, recipes=recipes)
    with right.held():
        check_name(layout, name)
        try:
            check_versions(Reader(layout, head), f"head {head.number}")
        except IntegrityError as error:
            raise BusyError(f"snapshot {name!r} was not made, try again: {error}") from error
        write_manifest(layout, snapshot)
    return snapshot


def _settled_head(layout: Layout) -> Head:
    """A head with everything staged in it and everything indexed: text search fails before its index."""
    drain(layout, StagingArea(layout.staged))
    tables = Tables(layout)
    refresh(tables)
    move_head(layout, tables)
    return tables.head


def check_name(layout: Layout, name: str) -> None:
    """Whether a snapshot can get this name.

    Raises:
        UsageError: it cannot; says why.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            "the name of a snapshot has letters, digits, '.', '_' and '-', begins with a letter or digit, "
            f"and is not a number; got {name!r}"
        )
    if _path(layout, name).exists():
        raise UsageError(f"{layout.root} has a snapshot {name!r} already; delete it, or choose another name")


def describe(reader: Reader, name: str, *, note: str = "", recipes: Sequence[str] = ()) -> Snapshot:
    """The snapshot that the head of ``reader`` is; nothing is written."""
    views = reader.dataset("views").to_table().to_pylist()
    rows = reader.dataset("producers").to_table(columns=["producer_id", "facts"]).to_pylist()
    return Snapshot(
        name=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        note=note,
        recipes=tuple(recipes),
        evicat=version("evicat"),
        catalog_schema=SCHEMA,
        head=reader.head,
        view=tuple(
            Active(**row) for row in sorted(views, key=lambda row: (row["view"], row["kind"], row["scale"]))
        ),
        producers={
            row["producer_id"]: producer_from_row(row)
            for row in sorted(rows, key=lambda row: row["producer_id"])
        },
        rows={table: reader.dataset(table).count_rows() for table in reader.names()},
        content_hash=content_hash_of(reader),
    )


def write_manifest(layout: Layout, snapshot: Snapshot) -> None:
    """Write the manifest durably, with a seal by which an edit is noticed."""
    layout.snapshots.mkdir(exist_ok=True)
    sync_folder(layout.root)
    facts = snapshot.model_dump(mode="json")
    text = json.dumps(facts | {"seal": content_hash(facts)}, indent=2, ensure_ascii=False) + "\n"
    write_durably(_path(layout, snapshot.name), text.encode())


def delete_snapshot(uri: str | Path, name: str) -> None:
    """Forget a snapshot, also one whose manifest is broken; a clean-up frees what only it kept.

    Raises:
        UnknownNameError: there is none of this name; names those that there are.
    """
    layout = Layout.of(uri)
    layout.check_is_catalog()
    _manifest(layout, name).unlink()
    sync_folder(layout.snapshots)


def check_content(reader: Reader, snapshot: Snapshot) -> None:
    """Read all that a snapshot names, and compare it with what its manifest says.

    Raises:
        IntegrityError: rows or content differ, or table versions are gone.
    """
    where = f"snapshot {snapshot.name!r}"
    check_versions(reader, where)
    rows = {table: reader.dataset(table).count_rows() for table in reader.names()}
    differ = sorted(table for table in rows if rows[table] != snapshot.rows.get(table))
    if differ:
        said = ", ".join(f"{table} {rows[table]} (manifest: {snapshot.rows.get(table)})" for table in differ)
        raise IntegrityError(f"{where} does not hold the rows that its manifest counts: {said}")
    found = content_hash_of(reader)
    if found != snapshot.content_hash:
        raise IntegrityError(
            f"{where} has content hash {found}, but its manifest says {snapshot.content_hash}: "
            "its entries, outcomes, videos or names were changed. Take another copy of it"
        )


def check_versions(reader: Reader, where: str) -> None:
    """Look whether all table versions of a head are there.

    Raises:
        IntegrityError: some are not; names the first.
    """
    for table in reader.names():
        try:
            reader.dataset(table)
        except IntegrityError as error:
            raise IntegrityError(
                f"{where} cannot be opened any more: {error}. A clean-up or somebody's hand removed it"
            ) from error


def check_schema(snapshot: Snapshot) -> None:
    """Look whether this release can read a snapshot.

    Raises:
        CatalogError: it is of another catalog schema.
    """
    if snapshot.catalog_schema != SCHEMA:
        raise CatalogError(
            f"snapshot {snapshot.name!r} has catalog schema {snapshot.catalog_schema}; this evicat uses "
            f"schema {SCHEMA}. It was written by evicat {snapshot.evicat}: use that release to open it"
        )


def _manifests(layout: Layout) -> list[Path]:
    return sorted(path for path in layout.snapshots.glob("*.json") if NAME.fullmatch(path.stem))


def _path(layout: Layout, name: str) -> Path:
    return layout.snapshots / f"{name}.json"


def _manifest(layout: Layout, name: str) -> Path:
    if not has_snapshot(layout, name):
        raise UnknownNameError("snapshot", name, [path.stem for path in _manifests(layout)])
    return _path(layout, name)


def _read(path: Path) -> Snapshot:
    try:
        facts: Any = json.loads(path.read_bytes())
        seal = facts.pop("seal") if isinstance(facts, dict) else None
        snapshot = Snapshot.model_validate(facts)
    except KeyError:
        raise IntegrityError(f"{path} is not a manifest of a snapshot: it has no seal") from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"]) or "the whole file"
        raise IntegrityError(f"{path} is not a manifest of a snapshot ({field}: {problem['msg']})") from None
    except ValueError as error:
        raise IntegrityError(f"{path} is broken: not JSON ({error})") from None
    if seal != content_hash(facts):
        raise IntegrityError(
            f"{path} was edited after it was written: its seal does not fit. Restore it from a copy, or "
            f"remove it with: evicat snapshot delete {path.stem}"
        )
    if snapshot.name != path.stem:
        raise IntegrityError(
            f"{path} holds the manifest of snapshot {snapshot.name!r}; give it that name back"
        )
    return snapshot
