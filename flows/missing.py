"""Files that vanished: their names are marked, and what is written about them leaves the default view."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from evicat.catalog.sources import Source
from evicat.schemas.naming import Root, VideoName, storable
from evicat.storage.store import Store


@dataclass
class Missing:
    """What was found of names without a file."""

    names: list[str] = field(default_factory=list)
    """Video names that were marked."""
    doubtful: list[str] = field(default_factory=list)
    """Why others were not: a message for each place that may only be out of reach."""


def mark_missing(store: Store, sources: Iterable[Source], asked: Iterable[Root] = ()) -> Missing:
    """Mark names whose file is gone, of the roots ``asked`` for and of ``sources``. Others are not looked at.

    A root that is out of reach has no sources, so that nothing of it is marked. Nor is a name whose folder
    is there but wholly empty: so does the place look where a disk was mounted. A name that comes back is
    marked present when it is registered again.
    """
    roots = {root.root_id: root for root in asked}
    seen: dict[tuple[str, str], Source] = {}
    for source in sources:
        root = source.own_root
        roots[root.root_id] = root
        seen[root.root_id, storable(source.name)] = source
    found, doubtful = Missing(), set()
    listed = lru_cache(maxsize=None)(_entries)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for name in store.names():
        root_of = roots.get(name.root_id)
        if root_of is None or name.missing_since:
            continue
        reason = _why_kept(root_of, name, seen.get((name.root_id, name.name)), listed)
        if reason is None:
            store.add_name(replace(name, missing_since=now))
            found.names.append(name.name)
        elif reason:
            doubtful.add(reason)
    found.doubtful = sorted(doubtful)
    return found


def _entries(folder: Path) -> dict[str, str]:
    """What is in a folder: real names by those that a catalog stores."""
    return {storable(entry.name): entry.name for entry in os.scandir(folder)}


def _why_kept(
    root: Root, name: VideoName, source: Source | None, listed: Callable[[Path], dict[str, str]]
) -> str | None:
    """None: the file is gone. Empty: it is there. Else what keeps us from saying so."""
    if source and os.path.exists(source.path):  # noqa: PTH110 (Path.exists raises in a locked folder)
        return ""
    if source is None and root.kind == "manifest":
        return None  # its rows are its videos, and this one is not among them any more
    folder = Path(root.location)
    if root.kind == "manifest":
        folder = folder.parent
    for part in Path(name.path).parts:
        if part == os.pardir:
            folder /= part
            continue
        try:
            entries = listed(folder)
        except NotADirectoryError:
            return None
        except OSError as error:
            return f"{folder} cannot be read ({error.strerror}); nothing in it is taken for missing"
        if not entries:
            return f"{folder} is empty, as if a disk were not mounted; nothing in it is taken for missing"
        if part not in entries:
            return None
        folder /= entries[part]
    return ""
