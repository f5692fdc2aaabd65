"""A whole life of a catalog, in a process that dies where it is told to; what is done is not done again.

    python life_child.py CATALOG REPORT [die N | tell N]

Two assets are indexed with one producer, that is kept as a snapshot, they are indexed with another producer,
the catalog is maintained, the other producer becomes the active one and the first is retired, and there is
maintenance and a snapshot again.

A point is any moment at which the process is about to change something on disk as far as Python sees it:
files opened for writing, written, synced, renamed and removed, locks taken, and calls of Lance that write.
``die N`` kills the process with SIGKILL at point number N (from 1; half of a write is written), ``tell N``
prints ``here`` there and goes on, for a parent that kills. Every durable window is printed; REPORT gets the
names of all points with their times if the process lives to its end.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import making
from lance.dataset import DatasetOptimizer, Tags

from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.storage.layout import Layout
from evicat.storage.maintain import maintain
from evicat.storage.retire import retire
from evicat.storage.roster import Roster
from evicat.storage.snapshots import create_snapshot, snapshots
from evicat.storage.store import Store

WINDOWS = 2
NAMES = ("one", "two")
FIRST = making.SIGHT
OTHER = making.SIGHT.model_copy(update={"version": 2})

LANCE = [
    (lance, "write_dataset"),
    (lance.fragment, "write_fragments"),
    (lance.fragment.LanceFragment, "delete_rows"),
    (lance.LanceDataset, "commit"),
    (lance.LanceDataset, "restore"),
    (lance.LanceDataset, "create_scalar_index"),
    (lance.LanceDataset, "cleanup_old_versions"),
    (DatasetOptimizer, "compact_files"),
    (DatasetOptimizer, "optimize_indices"),
    (Tags, "create"),
    (Tags, "delete"),
]
"""Where Python hands over to Lance, which writes by itself."""
CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
"""Audit events whose first argument is a path."""


def live(catalog: Path) -> None:
    """All of it; nothing ever waits for a lock."""
    if "first" not in _names(catalog):
        index(catalog, FIRST)
        create_snapshot(catalog, "first", lock_timeout_s=0)
    index(catalog, OTHER)
    maintain(catalog, keep_days=0, lock_timeout_s=0)
    with Store.connect(catalog, write=True, lock_timeout_s=0) as store:
        store.activate(OTHER)
    with Store.connect(catalog, write=True, lock_timeout_s=0) as store:
        if Roster.read(store.reader()).is_made(FIRST.producer_id):
            retire(store, {FIRST.producer_id})
    maintain(catalog, keep_days=0, lock_timeout_s=0)
    if "last" not in _names(catalog):
        create_snapshot(catalog, "last", lock_timeout_s=0)


def _names(catalog: Path) -> list[str]:
    return [snapshot.name for snapshot in snapshots(Layout.of(catalog))]


def index(catalog: Path, producer: Any) -> None:
    """Windows of both assets, with vectors; committed after each asset."""
    embedder = making.MINILM.model_copy(update={"reads": (producer.producer_id,)})
    with Store.connect(catalog, write=True, create=True, lock_timeout_s=0) as store:
        store.add_root(Root("r", "folder", "x"))
        store.add_producer(producer)
        store.add_producer(embedder)
        for name in NAMES:
            asset = making.asset(name, windows=WINDOWS)
            store.add_name(VideoName("r", name, asset.asset_id, name, FileStamp(1, 2, 3, 4)))
            store.add_asset(asset)
            source = making.unit(name, producer=producer)
            _fill(store, source, lambda window, of=source: making.done(of, window, f"{of.unit_id} {window}"))
            made = store.results(source)
            _fill(
                store,
                making.unit(name, producer=embedder),
                lambda window, of=made: making.embedded(window, list(of[window * making.WINDOW_US].entries)),
            )
            store.commit(force=True)


def _fill(store: Store, unit: Any, make: Callable[[int], Any]) -> None:
    if store.is_complete(unit):
        return
    known = store.open(unit)
    for window in range(WINDOWS):
        if window * making.WINDOW_US not in known:
            store.write(unit, make(window))
            print("made", unit.unit_id, window, flush=True)
    store.close(unit, complete=True)


class Points:
    """Counts the points that are passed."""

    def __init__(self, catalog: Path, fatal: int = 0, told: int = 0) -> None:
        self.passed: list[tuple[str, float]] = []
        self._catalog = str(catalog)
        self._fatal, self._told = fatal, told

    def watch(self) -> None:
        sys.addaudithook(self._on_event)
        os.fsync = self._before("fsync", os.fsync)
        os.write = self._write_half_at_most(os.write)
        for owner, name in LANCE:
            setattr(owner, name, self._before(f"lance {name}", getattr(owner, name)))

    def reach(self, name: str) -> None:
        self.passed.append((name, time.perf_counter()))
        if len(self.passed) == self._told:
            print("here", flush=True)
        if len(self.passed) == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "fcntl.flock":
            self.reach("flock")
            return
        reads = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if event in CHANGES and not reads and str(arguments[0]).startswith(self._catalog):
            self.reach(event)

    def _before(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def counted(*arguments: Any, **options: Any) -> Any:
            self.reach(name)
            return call(*arguments, **options)

        return counted

    def _write_half_at_most(self, write: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
        def counted(handle: int, data: bytes) -> int:
            if len(self.passed) + 1 == self._fatal:
                write(handle, data[: len(data) // 2])
            self.reach("write")
            return write(handle, data)

        return counted


if __name__ == "__main__":
    where, report = Path(sys.argv[1]), Path(sys.argv[2])
    order = {sys.argv[3]: int(sys.argv[4])} if len(sys.argv) > 3 else {}
    points = Points(where, fatal=order.get("die", 0), told=order.get("tell", 0))
    points.watch()
    live(where)
    passed = list(points.passed)
    report.write_text(json.dumps(passed), encoding="utf-8")
