"""Making a catalog: its marker is written last, so that a crash leaves nothing that looks like one."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

from evicat.schemas.errors import CatalogError

from .files import write_durably
from .head import Head, write_head
from .layout import FORMAT, SCHEMA, Layout
from .locks import ProcessLock
from .tables import FIXED_TABLES
from .transact import create_table

_LOCK_TIMEOUT_S = 60.0


def create_catalog(uri: str | Path) -> None:
    """Make an empty catalog in ``uri``: a folder that is new or empty.

    Raises:
        CatalogError: there is a catalog already, or something else.
    """
    layout = Layout.of(uri)
    _check_place(layout)
    layout.claims.mkdir(parents=True, exist_ok=True)
    with ProcessLock(layout.commit_lock, f"the new catalog {layout.root}").held(timeout_s=_LOCK_TIMEOUT_S):
        if not layout.marker.exists():  # else another process has made it just now
            _fill(layout)


def check_usable(uri: str | Path) -> None:
    """Look whether a writer can open ``uri`` or make a catalog there; touch nothing.

    Raises:
        CatalogError: something else is there, or a catalog of another schema.
    """
    layout = Layout.of(uri)
    if layout.marker.exists():
        layout.check_is_catalog()
    else:
        _check_place(layout)


def _check_place(layout: Layout) -> None:
    root = layout.root
    if layout.marker.exists():
        raise CatalogError(f"{root} is a catalog already")
    check_not_within(root)
    if root.exists() and not root.is_dir():
        raise CatalogError(f"{root} is a file; a catalog needs a folder of its own")
    if root.is_dir() and any(root.iterdir()) and not _is_unfinished(layout):
        raise CatalogError(f"{root} is not empty and not a catalog; choose a new or empty folder")


def check_not_within(root: Path) -> None:
    """Look whether what is to be made at ``root`` would lie inside a catalog.

    Raises:
        CatalogError: it would; names that.
    """
    for folder in root.resolve().parents:
        if Layout.of(folder).marker.is_file():
            raise CatalogError(f"{root} lies inside the catalog {folder}; choose a folder outside of it")


def _is_unfinished(layout: Layout) -> bool:
    """Whether all that is here is what a creation leaves when it is interrupted.

    It makes the folder of its lock, then the lock, and all else while it holds that.
    """
    if not layout.commit_lock.is_file():
        empty_folders = (layout.work, layout.claims)
        return all(path in empty_folders and path.is_dir() for path in layout.root.rglob("*"))
    ours = {path.name for path in (layout.tables, layout.staged, layout.heads, layout.work, layout.head)}
    ours_in_work = {path.name for path in (layout.claims, layout.journals, layout.commit_lock)}
    return {path.name for path in layout.root.iterdir() if path.suffix != ".tmp"} <= ours and {
        path.name for path in layout.work.iterdir()
    } <= ours_in_work


def _fill(layout: Layout) -> None:
    for folder in (layout.tables, layout.staged, layout.heads):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
    layout.journals.mkdir(exist_ok=True)
    tables = {name: create_table(layout, name, schema).version for name, schema in FIXED_TABLES.items()}
    write_head(layout, Head.first(tables))
    write_marker(layout)


def write_marker(layout: Layout) -> None:
    """Make a folder that has all of a catalog one."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    marker = json.dumps({"format": FORMAT, "schema": SCHEMA, "created": created}) + "\n"
    write_durably(layout.marker, marker.encode())
