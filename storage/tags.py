"""Tags into the tables: rows, ledger and registry in one change, which readers see all of or nothing.

Tags are made of what is stored, many units at a time, so they skip the journals and staged files of what is
made from media: whoever makes them hands over whole Arrow tables. A crash loses what was not handed over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from evicat.schemas.errors import BusyError, UsageError
from evicat.schemas.identity import Producer, Unit

from .factors import refresh_factors
from .ledger import UnitState, to_microseconds, unit_rows
from .locks import ProcessLock
from .roster import own_id
from .rows import DEFAULT_VIEW, producer_from_row, producer_row, view_row
from .store import Store
from .tables import COVERAGE, PRODUCERS, TAG, VIEWS, VOCABULARIES
from .transact import ROW, Tables, check_keys, join


@dataclass(frozen=True)
class Tagged:
    """What was made of some units: their windows, and the tags in these."""

    units: Sequence[tuple[Unit, int | None]]
    """Each with where its timeline ends, if these windows complete it."""
    coverage: pa.Table
    """Schema ``COVERAGE``."""
    tags: pa.Table
    """Schema ``TAGS``."""


@dataclass(frozen=True)
class Registered:
    """A version of a vocabulary, as the catalog keeps it."""

    vocabulary: str
    version: int
    digest: str
    facts: str

    @property
    def row(self) -> dict[str, Any]:
        added = datetime.now(UTC).isoformat(timespec="seconds")
        return {name: getattr(self, name) for name in ("vocabulary", "version", "digest", "facts")} | {
            "added": added
        }


@contextmanager
def tagging(store: Store) -> Iterator[None]:
    """Keep other processes from tagging the same catalog meanwhile.

    Raises:
        BusyError: one is at it; names it.
    """
    lock = ProcessLock(store.layout.claims / "tagging.lock", f"tagging of {store.layout.root}")
    lock.acquire()
    try:
        yield
    finally:
        lock.release(remove=True)


def write_tags(store: Store, tagged: Tagged, producers: Collection[Producer], *, read_at: int) -> None:
    """Commit tags with their ledger and producers. They replace those of the same windows.

    Args:
        read_at: Version of the table of entries that they were made of.

    Raises:
        BusyError: entries were written meanwhile: what was read may have changed. Make the tags again.
        IntegrityError: ids stand twice; the head stays where it was.
    """
    with store.changing() as tables:
        if tables.versions()["entries"] != read_at:
            raise BusyError("entries were written while they were tagged: tag again what was read")
        _add_producers(tables, producers)
        unit_ids = [unit.unit_id for unit, _ in tagged.units]
        known = _known(tables, unit_ids)
        before = tables.find("coverage", "unit_id", known, COVERAGE.names)
        windows = _windows(tagged.coverage)
        doomed = join(_with_start(before), windows, windows.column_names, "left semi")
        kept = join(_with_start(before), windows, windows.column_names, "left anti")
        coverage = pa.concat_tables([kept.select(COVERAGE.names).cast(COVERAGE), tagged.coverage])
        states = [UnitState(unit, "", until_us) for unit, until_us in tagged.units]
        old_tags = _stored_tags(tables, known, windows)
        old_units = tables.find("units", "unit_id", known, [])[ROW]
        for name, new, gone in (
            ("tags", tagged.tags, old_tags),
            ("coverage", tagged.coverage, doomed[ROW]),
            ("units", unit_rows(states, coverage), old_units),
        ):
            if name != "tags":  # a million of them, of which whoever made them knows that they differ
                check_keys(name, new)
            tables.replace(name, new, gone)


def finish_tagging(
    store: Store, active: Collection[Producer], vocabularies: Collection[Registered], factor_ids: set[str]
) -> int:
    """Show what these producers made, remember the vocabularies, and let the entries follow.

    Returns how many entries have other factors now.
    """
    with store.changing() as tables:
        _register(tables, vocabularies)
        made = _made(tables)  # what has no units has nothing to show
        rows = {(row["kind"], row["scale"]): row for row in map(view_row, active)}
        rows = {place: row for place, row in rows.items() if row["producer_id"] in made}
        stored = tables.find("views", "view", [DEFAULT_VIEW], VIEWS.names).to_pylist()
        doomed = [row[ROW] for row in stored if (row["kind"], row["scale"]) in rows]
        changed = any(rows[key] not in [_without_row(row) for row in stored] for key in rows)
        if changed:
            tables.replace("views", pa.Table.from_pylist(list(rows.values()), schema=VIEWS), doomed)
        return refresh_factors(tables, factor_ids)


def _made(tables: Tables) -> set[str]:
    """Taggers that have units: their ids without what they read."""
    stored = tables.dataset("producers").to_table(columns=["facts"], filter=f"kind = '{TAG}'").to_pylist()
    return {own_id(producer_from_row(row)) for row in stored}


def _without_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in VIEWS.names}


def check_registered(stored: Sequence[Mapping[str, Any]], vocabulary: Registered) -> None:
    """Look whether a version of a vocabulary still says what it said when it first tagged this catalog.

    Raises:
        UsageError: it says something else.
    """
    for row in stored:
        same = (row["vocabulary"], row["version"]) == (vocabulary.vocabulary, vocabulary.version)
        if same and row["digest"] != vocabulary.digest:
            raise UsageError(
                f"version {vocabulary.version} of vocabulary {vocabulary.vocabulary!r} tagged this catalog "
                f"on {row['added'][:10]} and said something else then; write version = "
                f"{vocabulary.version + 1} into its file, and [[migrations]] for ids that changed"
            )


def _register(tables: Tables, vocabularies: Collection[Registered]) -> None:
    stored = tables.dataset("vocabularies").to_table(columns=["vocabulary", "version"]).to_pylist()
    known = {(row["vocabulary"], row["version"]) for row in stored}
    new = [each.row for each in vocabularies if (each.vocabulary, each.version) not in known]
    tables.replace("vocabularies", pa.Table.from_pylist(new, schema=VOCABULARIES))


def _add_producers(tables: Tables, producers: Collection[Producer]) -> None:
    stored = tables.dataset("producers").to_table(columns=["producer_id"])["producer_id"].to_pylist()
    new = {each.producer_id: producer_row(each) for each in producers}
    rows = [row for key, row in new.items() if key not in set(stored)]
    tables.replace("producers", pa.Table.from_pylist(rows, schema=PRODUCERS))


def _known(tables: Tables, unit_ids: Sequence[str]) -> list[str]:
    """Those of the units that are stored."""
    stored = tables.dataset("units").to_table(columns=["unit_id"], filter=f"kind = '{TAG}'")
    return list(set(unit_ids) & set(stored["unit_id"].to_pylist()))


def _stored_tags(tables: Tables, unit_ids: Sequence[str], windows: pa.Table) -> Any:
    rows = tables.find("tags", "tag_unit_id", unit_ids, ["tag_unit_id", "window_start_us"])
    rows = rows.rename_columns({"tag_unit_id": "unit_id"})
    return join(rows, windows, windows.column_names, "left semi")[ROW]


def _windows(coverage: pa.Table) -> pa.Table:
    return _with_start(coverage).select(["unit_id", "window_start_us"])


def _with_start(coverage: pa.Table) -> pa.Table:
    return coverage.append_column("window_start_us", to_microseconds(coverage["start_s"]))


def stored_units(store: Store) -> pa.Table:
    """Units of tags: ``unit_id, asset_id, producer_id, complete`` and counts of outcomes."""
    columns = ["unit_id", "asset_id", "producer_id", "complete", "failed", "refused"]
    found: pa.Table = store.reader().dataset("units").to_table(columns=columns, filter=f"kind = '{TAG}'")
    return found
