"""Maintenance: few fragments, whole indexes, and no table version that nothing needs.

The order makes a crash harmless. Tables are compacted and indexed first, and the head moves to that; readers
of earlier heads go on with the versions that they opened. Then heads that are no longer kept are forgotten,
the table versions of those that are get a tag, and only then are other versions removed: Lance never removes
a tagged version. A version may be far older than a head that names it, so age alone says nothing.

A head is kept while it is the newest, or a snapshot names it, or it was the newest within the age: readers
that opened it may still be at work.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evicat.schemas.errors import EvicatError, IntegrityError, UsageError
from evicat.schemas.model import Model

from .commit import move_head, open_tables
from .damage import OF_LANCE, check_files, reason_of
from .files import sync_folder
from .head import Head, current_head, earlier_heads, kept_path, read_head
from .indexes import broken_indexes, refresh_table
from .layout import Layout
from .locks import commit_right
from .snapshots import snapshots
from .staging import ABANDONED_S, BROKEN, StagingArea
from .transact import Tables

TAG = "evicat-kept-"
"""How the tags begin that are ours; the version follows."""

log = logging.getLogger(__name__)

Progress = Callable[[str], None]


class KeptHead(Model):
    """A head whose table versions stay, and why."""

    number: int
    written: str
    because: tuple[str, ...]


class Size(Model):
    """What a table takes."""

    fragments: int
    versions: int
    bytes: int


class TableReport(Model):
    """One table, before and after."""

    table: str
    rows: int
    before: Size
    after: Size
    kept_versions: tuple[int, ...] = ()
    """Versions that kept heads need."""
    foreign_tags: tuple[str, ...] = ()
    """Tags that somebody else made: their versions stay too."""
    rebuilt: tuple[str, ...] = ()
    """Indexes that were broken or had lost files, and were made anew."""
    error: str = ""


class Leftover(Model):
    """A file that a crash or a broken disk left."""

    path: str
    what: str
    age_days: float
    removed: bool


class Report(Model):
    """What a maintenance did."""

    catalog: str
    head: int
    keep_days: float
    tables: tuple[TableReport, ...]
    kept_heads: tuple[KeptHead, ...]
    forgotten_heads: tuple[int, ...]
    leftovers: tuple[Leftover, ...]
    wall_seconds: float

    @property
    def failed(self) -> tuple[TableReport, ...]:
        return tuple(table for table in self.tables if table.error)


@dataclass
class _Work:
    """What is found out about one table on the way."""

    rows: int
    before: Size
    kept_versions: tuple[int, ...] = ()
    foreign_tags: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    errors: list[str] = field(default_factory=list)


def maintain(
    uri: str | Path, *, keep_days: float = 7.0, lock_timeout_s: float = 300.0, tell: Progress | None = None
) -> Report:
    """Compact and index all tables of a catalog, then remove what is older than ``keep_days``.

    A table that fails stands in the report with its error, and the others go on. ``tell`` hears what is
    being done.

    Raises:
        UsageError: ``keep_days`` is negative, or ``uri`` holds no catalog that this release can use.
        BusyError: another process was committing for ``lock_timeout_s`` on end.
        IntegrityError: head and tables contradict each other, or a snapshot cannot be read, so that nobody
            knows what it keeps; nothing was removed.
    """
    if not 0 <= keep_days < 36_500:
        raise UsageError(f"days to keep must be from 0 to 36500, got {keep_days:g}")
    layout = Layout.of(uri)
    layout.check_is_catalog()
    with commit_right(layout, lock_timeout_s).held():
        return _maintain(layout, timedelta(days=keep_days), tell or (lambda _: None))


def _maintain(layout: Layout, age: timedelta, tell: Progress) -> Report:
    started = time.perf_counter()
    snapshots(layout)  # what cannot be read is said before anything is done
    tables = open_tables(layout)
    work = {name: _begin(layout, tables, name) for name in tables.names()}
    for name, each in work.items():
        tell(f"compacting {name}")
        with _noting(each):
            check_files(tables.dataset(name), layout.table(name))
            each.rebuilt = drop_broken_indexes(tables, name)
            compact(tables, name)
    move_head(layout, tables)
    kept = kept_heads(layout, age)
    forgotten = forget_heads(layout, {head.number for head, _ in kept})
    for name, each in work.items():
        if each.errors:
            continue  # nothing is removed from a table that may be damaged
        tell(f"cleaning {name}")
        with _noting(each):
            dataset = tables.dataset(name)
            each.kept_versions = tuple(sorted({head.tables[name] for head, _ in kept if name in head.tables}))
            each.foreign_tags = tag(dataset, each.kept_versions)
            clean(dataset, age)
    return Report(
        catalog=str(layout.root),
        head=tables.head.number,
        keep_days=age / timedelta(days=1),
        tables=tuple(_report(layout, tables, name, each) for name, each in work.items()),
        kept_heads=tuple(
            KeptHead(number=head.number, written=head.written, because=because) for head, because in kept
        ),
        forgotten_heads=forgotten,
        leftovers=tuple(clear_leftovers(layout, age)),
        wall_seconds=round(time.perf_counter() - started, 3),
    )


def _begin(layout: Layout, tables: Tables, name: str) -> _Work:
    return _Work(rows=tables.dataset(name).count_rows(), before=_size(layout, tables, name))


def _report(layout: Layout, tables: Tables, name: str, work: _Work) -> TableReport:
    return TableReport(
        table=name,
        rows=work.rows,
        before=work.before,
        after=_size(layout, tables, name),
        kept_versions=work.kept_versions,
        foreign_tags=work.foreign_tags,
        rebuilt=work.rebuilt,
        error="; ".join(work.errors),
    )


@contextmanager
def _noting(work: _Work) -> Iterator[None]:
    """One table that fails costs itself alone."""
    try:
        yield
    except EvicatError as error:
        work.errors.append(str(error))
    except OF_LANCE as error:
        work.errors.append(f"{type(error).__name__}: {reason_of(error)}")


def drop_broken_indexes(tables: Tables, name: str) -> tuple[str, ...]:
    """Drop the indexes of a table that cannot be read, to be made of the rows anew; returns their names."""
    dataset = tables.dataset(name)
    broken = tuple(broken_indexes(dataset))
    for index in broken:
        log.warning("table %r: index %s cannot be read and is made anew", name, index)
        dataset.drop_index(index)
    return broken


def compact(tables: Tables, name: str) -> None:
    """Merge small fragments, drop deleted rows, and index what is not; the head is left to the caller."""
    dataset = tables.dataset(name)
    dataset.optimize.compact_files()
    refresh_table(name, dataset)


def kept_heads(layout: Layout, age: timedelta) -> list[tuple[Head, tuple[str, ...]]]:
    """The heads that can be opened hereafter and why each is kept, newest first.

    Raises:
        IntegrityError: a snapshot cannot be read.
    """
    newest = current_head(layout)
    heads = {newest.number: newest}
    because = {newest.number: ["newest"]}
    replaced = datetime.now(UTC)  # when the head in hand stopped to be the newest
    for head in earlier_heads(layout):
        if head.number != newest.number and replaced > datetime.now(UTC) - age:
            heads[head.number] = head
            because.setdefault(head.number, []).append(f"newest until {replaced:%Y-%m-%d %H:%M:%S} UTC")
        replaced = datetime.fromisoformat(head.written)
    for snapshot in snapshots(layout):
        number = snapshot.head.number
        heads.setdefault(number, snapshot.head)
        because.setdefault(number, []).append(f"snapshot {snapshot.name}")
    return [(heads[number], tuple(because[number])) for number in sorted(heads, reverse=True)]


def forget_heads(layout: Layout, kept: set[int]) -> tuple[int, ...]:
    """Remove earlier heads that are not kept, so that none is listed whose versions may be gone."""
    doomed = [head.number for head in earlier_heads(layout) if head.number not in kept]
    for number in doomed:
        kept_path(layout, number).unlink(missing_ok=True)
    sync_folder(layout.heads)
    return tuple(sorted(doomed))


def tag(dataset: Any, versions: tuple[int, ...]) -> tuple[str, ...]:
    """Tag these versions, take our tags off others, and return the tags that are not ours."""
    wanted = {f"{TAG}{version}": version for version in versions}
    present = dataset.tags.list()
    for name in sorted(wanted.keys() - present.keys()):
        dataset.tags.create(name, wanted[name])
    for name in present:
        if name.startswith(TAG) and name not in wanted:
            dataset.tags.delete(name)
    return tuple(sorted(name for name in present if not name.startswith(TAG)))


def clean(dataset: Any, age: timedelta) -> None:
    """Remove versions that are older than ``age``, neither tagged nor the newest, and files only they had."""
    dataset.cleanup_old_versions(older_than=age, error_if_tagged_old_versions=False)


def clear_leftovers(layout: Layout, age: timedelta) -> list[Leftover]:
    """Find files that are of no use any more; those older than ``age`` are removed.

    Those without a name stay for an hour at least: somebody may be writing them now.
    """
    found = []
    for path, what, least_s in _leftovers(layout):
        with suppress(FileNotFoundError):  # its writer has just given it its name
            old_s = time.time() - path.stat().st_mtime
            removed = old_s >= max(least_s, age.total_seconds())
            if removed:
                path.unlink()
            days = round(max(0.0, old_s) / 86_400, 3)
            name = str(path.relative_to(layout.root))
            found.append(Leftover(path=name, what=what, age_days=days, removed=removed))
    return found


def _leftovers(layout: Layout) -> Iterator[tuple[Path, str, float]]:
    """Files, what they are, and for how many seconds they may be in use."""
    staging = StagingArea(layout.staged)
    needed = staging.lost_facts() if staging.has_chunks() else []  # chunks may wait for what they held
    for path in sorted(set(layout.staged.glob(f"*{BROKEN}")) - set(needed)):
        yield path, "a staged file that was broken", 0.0
    for path in sorted(layout.heads.glob("[0-9]*.json")):
        try:
            read_head(path)
        except IntegrityError:
            yield path, "an earlier head that cannot be read", 0.0
    for folder in (layout.root, layout.staged, layout.heads, layout.snapshots):
        for path in sorted(folder.glob(".*.tmp")):
            yield path, "a file that was never finished", ABANDONED_S


def _size(layout: Layout, tables: Tables, name: str) -> Size:
    """Counted by files: reading thousands of manifests takes long, and one of them may be broken."""
    files = [path for path in layout.table(name).rglob("*") if path.is_file()]
    return Size(
        fragments=len(tables.dataset(name).get_fragments()),
        versions=sum(path.suffix == ".manifest" for path in files),
        bytes=sum(path.stat().st_size for path in files),
    )
