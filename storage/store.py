"""The store of one catalog: takes results durably, commits them in groups, and says what is there."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from evicat.schemas.asset import Asset
from evicat.schemas.entry import RETRIES, Outcome, WindowResult
from evicat.schemas.errors import AssetError, BusyError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import Span

from .commit import drain, move_head, open_tables
from .create import create_catalog
from .damage import check_files
from .disk import full_disk_told, tells_when_full
from .facts import Facts
from .head import Head, current_head
from .indexes import refresh
from .journal import Journal
from .layout import Layout
from .library import Video
from .locks import CommitRight, ProcessLock
from .reader import Reader
from .results import Results, unit_results
from .rows import DEFAULT_VIEW, Row, failed_video_row, producer_row, video_row, view_row
from .staging import StagingArea
from .tables import embedder_id, vectors_table
from .transact import Tables
from .units import OpenUnit, stage_journal

log = logging.getLogger(__name__)

COMMIT_ROWS = 10_000
"""So many staged rows make a group commit due."""
COMMIT_SECONDS = 30.0
"""So long after the last one, anything staged does."""


class Store:
    """A catalog opened for writing (or only to be asked). Fulfils ``evicat.schemas.sink.Sink``.

    Results are durable when ``write`` returns. ``seal`` stages them; ``commit``, called now and then by
    whoever drives the run, brings staged files into the tables; ``finish`` ends a run. As a context manager
    it finishes; after an exception it only lets go, and the next writer takes up what is staged.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        write: bool,
        run_id: str,
        lock_timeout_s: float,
        retry: frozenset[str] = frozenset(),
    ) -> None:
        self._layout = layout
        self._writes = write
        self._run_id = run_id
        self._retry = retry
        self._redo: dict[str, Results] = {}  # by unit: what is made again and not replaced so far
        self._opening = threading.Lock()  # order of locks: _opening, a unit's, _lock
        self._lock = threading.RLock()
        self._right = CommitRight(layout.commit_lock, f"the right to commit to {layout.root}", lock_timeout_s)
        self._staging = StagingArea(layout.staged)
        self._open_units: dict[str, OpenUnit] = {}
        self._dimensions: dict[str, int] = {}
        self._staged_rows = 0
        self._is_released = False
        self._last_commit = time.monotonic()
        if write:
            self._take_up()
        self._reader = Reader.latest(layout)
        self._facts = Facts(self._reader)

    @classmethod
    def connect(
        cls,
        uri: str | Path,
        *,
        write: bool = False,
        create: bool = False,
        work_dir: str | Path = "",
        run_id: str = "",
        lock_timeout_s: float = 300.0,
        retry: Collection[str] = (),
    ) -> Self:
        """Open the catalog in ``uri``; with ``create``, make it where there is none yet.

        A writer first rolls back tables that are ahead of the head, and commits what earlier runs left in
        journals and staged files. ``work_dir`` holds the journals (empty: the catalog does). ``retry`` names
        outcomes that are made again, once (``evicat.schemas.entry.RETRIES``).

        Raises:
            CatalogError: ``uri`` holds no catalog that this release can use.
            BusyError: another process was committing for ``lock_timeout_s`` on end.
            IntegrityError: head and tables contradict each other.
        """
        layout = Layout.of(uri, work_dir)
        if create and not layout.marker.exists():
            with full_disk_told(layout.root):
                create_catalog(uri)
        layout.check_is_catalog()
        for name in retry:
            if name not in RETRIES:
                raise UnknownNameError("outcome to retry", name, list(RETRIES))
        with full_disk_told(layout.root):
            return cls(
                layout, write=write, run_id=run_id, lock_timeout_s=lock_timeout_s, retry=frozenset(retry)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writes and kind is None:
            self.finish()
        self.release()

    @property
    def layout(self) -> Layout:
        """Where the parts of the catalog lie."""
        return self._layout

    @property
    def head(self) -> Head:
        """The head as it is now."""
        return current_head(self._layout)

    # What making hands over

    @property
    def retry(self) -> frozenset[str]:
        return self._retry

    def add_producer(self, producer: Producer) -> None:
        """Register a producer; the first of its kind and scale is the active one (:meth:`activate`)."""
        self._add("producers", producer_row(producer))
        row = view_row(producer)
        if (row["kind"], row["scale"]) not in self._facts.view(DEFAULT_VIEW):
            self._add("views", row)

    def view(self) -> dict[tuple[str, str], str]:
        """The active producer of each kind and scale; of ``embedding`` the embedder (without ``reads``)."""
        return self._facts.view(DEFAULT_VIEW)

    def activate(self, producer: Producer) -> None:
        """Make ``producer`` the one of its kind and scale that the default view shows."""
        self._add("views", view_row(producer))

    def add_asset(self, asset: Asset) -> None:
        self._add("videos", video_row(asset))

    def is_complete(self, unit: Unit) -> bool:
        if not self._facts.is_complete(unit):
            return False
        if not self._retry:
            return True
        redo = self._redo.get(unit.unit_id)
        return not self._may_retry(unit) if redo is None else not redo

    def has(self, asset_id: str, inputs: Mapping[str, str]) -> bool:
        return self._facts.has(asset_id, inputs)

    @tells_when_full
    def open(self, unit: Unit) -> Results:
        """Claim a unit and return its results so far, less those to be retried.

        Opening it again in this process is harmless: a window is retried once in a run.

        Raises:
            BusyError: another process holds the unit; names it.
        """
        self._need_write()
        with self._opening:
            held = self._open_units.get(unit.unit_id)
            if held and held.unit != unit:
                with held.lock:
                    self._finish_unit(held)
                held = None
            held, stored = (held, self.results(unit)) if held else self._claim(unit)
            with held.lock:
                results = stored | held.pending
                due = {at: each for at, each in results.items() if each.is_due(self._retry)}
                redo = self._redo.setdefault(unit.unit_id, due)
                return {at: each for at, each in results.items() if at not in redo}

    @tells_when_full
    def write(self, unit: Unit, result: WindowResult) -> None:
        """As ``Sink.write``.

        Raises:
            UsageError: the unit is not open here.
            IntegrityError: ids that stand twice or belong elsewhere, or vectors of another length than the
                table of their embedder; nothing was stored of ``result``.
        """
        held = self._held(unit)
        embedder = self._check_vectors(unit, result) if result.vectors else ""
        with held.lock:
            before = self._redo.get(unit.unit_id, {}).pop(result.span.start_us, None)
            if before:
                result = result.model_copy(update={"attempts": result.attempts + before.attempts})
            if held.is_only(result) and self._is_whole(unit, result.span):
                self._count(held.stage_whole(result, embedder))  # one durable file in place of two
                self._facts.note_unit(unit, complete=True)
            else:
                held.write(result, embedder)

    def _is_whole(self, unit: Unit, span: Span) -> bool:
        return (span.start_us, span.end_us) == (0, self._facts.duration_us(unit.asset_id))

    @tells_when_full
    def seal(self, unit: Unit) -> None:
        held = self._held(unit)
        with held.lock:
            self._seal(held)

    @tells_when_full
    def close(self, unit: Unit, *, complete: bool) -> None:
        """As ``Sink.close``.

        Raises:
            IntegrityError: called complete, but the results leave a gap or end early; what is there was kept.
        """
        held = self._held(unit)
        with held.lock:
            try:
                if complete:
                    self._complete(held)
            finally:
                self._finish_unit(held)

    # The library

    def add_root(self, root: Root) -> None:
        self._add("roots", root.row())

    def add_name(self, name: VideoName) -> None:
        """Register how an asset is called and where it was seen; replaces the row of that root and name."""
        self._add("names", name.row())

    def add_video_failed(self, asset_id: str, size_bytes: int, error: AssetError) -> None:
        """Remember that these bytes cannot be read, so that they are not tried again."""
        self._add("videos", failed_video_row(asset_id, size_bytes, error))

    def roots(self) -> list[Root]:
        return self._facts.roots()

    def names(self) -> list[VideoName]:
        return self._facts.names()

    def named(self) -> dict[tuple[str, str], str]:
        """The asset that each name stands for, by root and name."""
        return self._facts.named()

    def videos(self) -> list[Video]:
        return self._facts.videos()

    def known_asset_id(
        self, root_id: str, path: str, stamp: FileStamp, clip: Span | None = None
    ) -> str | None:
        """The asset of a file whose stamp is unchanged since it was hashed; None: hash it."""
        return self._facts.known_asset_id(root_id, path, stamp, clip)

    def results(self, unit: Unit) -> Results:
        """Committed and staged results of a unit, by start in microseconds, without claiming it."""
        producer = self._facts.producer(unit.producer_id)
        table = vectors_table(embedder_id(producer)) if producer else ""
        return unit_results(unit, self._staging, self._latest, table, self._facts.knows)

    def refresh(self) -> None:
        """Look at what other processes have committed since."""
        self._latest()

    def reader(self) -> Reader:
        """The tables as the head has them now."""
        return self._latest()

    def check_files(self) -> None:
        """Look whether the files of all tables are there, before a run makes what cannot be added to them.

        Raises:
            IntegrityError: some are gone or were cut; names the first.
        """
        reader = self._latest()
        for name in reader.names():
            check_files(reader.dataset(name), self._layout.table(name))

    # Commits

    @tells_when_full
    def commit(self, *, force: bool = False) -> bool:
        """Bring all staged files into the tables, if that is due or forced; whether it was done.

        An unforced commit waits for nobody: where somebody else commits, that is left to the next call.

        Raises:
            BusyError: forced, and another process kept the catalog for ``lock_timeout_s``.
            IntegrityError: staged results or tables contradict themselves; the head stays where it was.
        """
        self._need_write()
        if force:
            with self._right.held():
                self._drain()
            return True
        if not self._is_due():
            return False
        with self._right.held_if_free() as is_mine:
            if is_mine:
                self._drain()
            return is_mine

    def _drain(self) -> None:
        self._staged_rows = 0
        fresh = self._facts.fresh_count()
        drain(self._layout, self._staging)
        self._facts.settle(fresh)
        self._last_commit = time.monotonic()
        self._latest()

    @tells_when_full
    def refresh_indexes(self) -> None:
        """Bring all indexes up to date; the head moves only if there was something to index."""
        self._need_write()
        with self._right.held():
            tables = open_tables(self._layout)
            refresh(tables)
            move_head(self._layout, tables)
        self._latest()

    @contextmanager
    def changing(self) -> Iterator[Tables]:
        """The tables, for a change that no staged file holds; the head moves at the end of the block.

        What is staged is committed first. After an exception the head stays, and the next to commit rolls
        the tables back to it.
        """
        self._need_write()
        with self._right.held():
            self._drain()
            tables = open_tables(self._layout)
            yield tables
            move_head(self._layout, tables)
        self._latest()

    @tells_when_full
    def finish(self) -> None:
        """End a run: seal and commit all, refresh the indexes, let go of all units."""
        with self._lock:
            still_open = list(self._open_units.values())
        for held in still_open:
            with held.lock:
                self._finish_unit(held)
        self.commit(force=True)
        self.refresh_indexes()

    def release(self) -> None:
        """Let go of all units; what is journalled of them waits for the next writer."""
        with self._lock:
            self._is_released = True
            while self._open_units:
                self._open_units.popitem()[1].release()

    # Inside

    def _take_up(self) -> None:
        """Stage journals that nobody holds any more, then commit all that is staged."""
        for folder in (self._layout.claims, self._layout.journals, self._layout.staged):
            folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self._layout.journals.glob("*.jsonl")):
            claim = self._unit_lock(path.stem)
            try:
                claim.acquire()
            except BusyError:
                continue  # a running process writes it
            try:
                stage_journal(Journal(self._layout.journals, path.stem), self._staging)
            finally:
                claim.release(remove=True)
        with self._right.held():
            self._staging.remove_abandoned()
            drain(self._layout, self._staging)

    def _claim(self, unit: Unit) -> tuple[OpenUnit, Results]:
        """The unit as ours, and its results so far."""
        claim = self._unit_lock(unit.unit_id)
        claim.acquire()
        try:
            journal = Journal(self._layout.journals, unit.unit_id)
            for left in stage_journal(journal, self._staging):
                self._note_staged(left)
            held = OpenUnit(unit, claim, journal, self._staging, self._run_id)
            results = self.results(unit)
            held.start(results)
        except BaseException:
            claim.release(remove=True)
            raise
        with self._lock:
            self._open_units[unit.unit_id] = held
        return held, results

    def _unit_lock(self, unit_id: str) -> ProcessLock:
        return ProcessLock(self._layout.claims / f"{unit_id}.lock", f"unit {unit_id}")

    def _may_retry(self, unit: Unit) -> bool:
        """Whether the unit has outcomes that this run retries (a truncated window is among the failed)."""
        wanted = self._retry | ({Outcome.FAILED} if "truncated" in self._retry else set())
        return bool(wanted & self._facts.outcomes(unit))

    def _held(self, unit: Unit) -> OpenUnit:
        self._need_write()
        held = self._open_units.get(unit.unit_id)
        if held is None or held.unit != unit:
            raise UsageError(f"{unit.scale} of asset {unit.asset_id} (unit {unit.unit_id}) is not open here")
        return held

    def _complete(self, held: OpenUnit) -> None:
        until_us = held.tiles_until_us()
        length_us = self._facts.duration_us(held.unit.asset_id)
        if length_us is not None and until_us != length_us:
            raise IntegrityError(
                f"unit {held.unit.unit_id} ({held.unit.scale} of asset {held.unit.asset_id}) was called "
                f"complete, but its results end at {until_us} us of {length_us} us"
            )
        if held.pending or not self._facts.is_complete(held.unit):
            self._count(held.seal(until_us) + 1)
            self._facts.note_unit(held.unit, complete=True)

    def _seal(self, held: OpenUnit) -> None:
        rows = held.seal()
        if rows:
            self._count(rows)
            self._note_staged(held.unit)

    def _note_staged(self, unit: Unit) -> None:
        """Results of ``unit`` are staged: if they void a complete unit of other inputs, that is no more."""
        if not self._facts.is_complete(unit):
            self._facts.note_unit(unit, complete=False)

    def _finish_unit(self, held: OpenUnit) -> None:
        self._seal(held)
        with self._lock:
            self._open_units.pop(held.unit.unit_id, None)
        held.release()

    def _check_vectors(self, unit: Unit, result: WindowResult) -> str:
        """The embedder id of a unit whose vectors have the right length."""
        producer = self._facts.producer(unit.producer_id)
        if producer is None:
            raise IntegrityError(f"unit {unit.unit_id} has vectors of a producer that was never added")
        embedder = embedder_id(producer)
        table = vectors_table(embedder)
        for vector in result.vectors:
            if vector.vector is not None and self._dimension(table, len(vector.vector)) != len(vector.vector):
                raise IntegrityError(
                    f"embedder {producer.component} has vectors of {self._dimensions[table]} numbers "
                    f"({table}), got one of {len(vector.vector)} for {vector.entry_id}"
                )
        return embedder

    def _dimension(self, table: str, seen: int) -> int:
        """Length of the vectors of a table; the first that is seen decides where there is none yet."""
        with self._lock:
            if table not in self._dimensions and table in self._latest().head.tables:
                self._dimensions[table] = self._reader.dataset(table).schema.field("vector").type.list_size
            return self._dimensions.setdefault(table, seen)

    def _add(self, table: str, row: Row) -> None:
        self._need_write()
        if self._is_released:
            raise BusyError(f"the catalog {self._layout.root} was let go of; open it again to add to it")
        if not self._facts.holds(table, row):
            self._stage_fact(table, row)

    @tells_when_full
    def _stage_fact(self, table: str, row: Row) -> None:
        self._staging.stage_facts(table, [row])
        self._facts.add(table, row)
        self._count(1)

    def _count(self, rows: int) -> None:
        with self._lock:
            self._staged_rows += rows

    def _is_due(self) -> bool:
        waited_s = time.monotonic() - self._last_commit
        return self._staged_rows >= COMMIT_ROWS or (self._staged_rows > 0 and waited_s >= COMMIT_SECONDS)

    def _latest(self) -> Reader:
        """A reader at the head as it is now; the facts in memory follow."""
        with self._lock:
            head = current_head(self._layout)
            if head.number != self._reader.version:
                self._reader = Reader.latest(self._layout)
                self._facts.load(self._reader)
            return self._reader

    def _need_write(self) -> None:
        if not self._writes:
            raise UsageError(f"the catalog {self._layout.root} was opened for reading only")
