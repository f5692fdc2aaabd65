"""Taking all that producers made out of the tables, and bringing it back from an earlier head.

Both are one change: readers see all of it or nothing. The producers keep their rows, so that ids stay
explainable. Until old versions are cleaned up, earlier heads still hold what was taken out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evicat.schemas.errors import IntegrityError, UsageError
from evicat.schemas.identity import Producer

from .bring_back import Held, each_once, gather, newest_holding
from .claims import check_none_held
from .factors import refresh_factors
from .roster import Roster, own_id
from .rows import DEFAULT_VIEW, view_row
from .store import Store
from .tables import DERIVED, FIXED_TABLES, VECTORS, holds_derived, table_spec
from .transact import ROW, Tables, check_keys, distinct


@dataclass(frozen=True, slots=True)
class Moved:
    """What was taken out of the tables or brought back, and which head shows it."""

    units: int = 0
    windows: int = 0
    entries: int = 0
    vectors: int = 0
    supports: int = 0
    tags: int = 0
    head: int = 0
    from_heads: tuple[int, ...] = ()
    """The earlier heads that it came from, newest first; empty where nothing was brought back."""

    @classmethod
    def of(cls, rows: dict[str, int], head: int, from_heads: tuple[int, ...] = ()) -> Moved:
        vectors = sum(count for name, count in rows.items() if name.startswith(VECTORS))
        names = ("units", "coverage", "entries", "supports", "tags")
        units, windows, entries, supports, tags = (rows.get(name, 0) for name in names)
        return cls(units, windows, entries, vectors, supports, tags, head, from_heads)


def retire(store: Store, own_ids: Collection[str]) -> Moved:
    """Take entries, coverage, units, vectors, supports and tags of these producers out of the tables.

    So goes what only embeds or tags their entries, and supports that were made of them. Embedders and taggers
    go by the id that they have without what they read. Nobody may be at work on any unit: what is being
    written may be of these producers, and would come into the tables behind this.

    Raises:
        UsageError: one is active while another of its kind and scale could be, is read by one that stays,
            or has nothing to take out.
        BusyError: a run holds a unit; names it.
    """
    now = f"nothing can be retired from {store.layout.root} now"
    check_none_held(store.layout, now)
    with store.changing() as tables:
        roster = Roster.read(store.reader())
        going = roster.with_derived(own_ids)
        _check_may_go(roster, going, own_ids, str(store.layout.root))
        removed = _take_out(tables, going)
        _leave_view(tables, roster, {*own_ids, *going})
        if removed["tags"]:
            refresh_factors(tables)
        check_none_held(store.layout, now)  # a run may have begun meanwhile
    return Moved.of(removed, tables.head.number)


def bring_back(store: Store, own_ids: Collection[str]) -> Moved:
    """Add what these producers had made, each from the newest earlier head (or snapshot) that holds it.

    Units that are there are left as they are. Vectors come back where what they embed still says the same.

    Raises:
        UsageError: of one of them no head holds more than is there or nothing fits what is there, or it
            reads a producer that is not there.
        IntegrityError: ids would stand twice; the tables stay as they are.
    """
    with store.changing() as tables:
        roster = Roster.read(store.reader())
        wanted = {name: roster.with_derived([name]) for name in own_ids}
        found = newest_holding(store.layout, tables, wanted)
        catalog = str(store.layout.root)
        _check_found(found, own_ids, catalog)
        for name, held in found.items():
            _check_reads(roster, held, wanted[name], own_ids, catalog)
        units = each_once(found.values())
        rows = gather(units, tables, roster.with_derived(own_ids))
        back = distinct(rows["units"]["producer_id"])
        for name in sorted(own_ids):
            _check_fits(roster.called(name)[0], name, set(wanted[name]) & set(back), catalog)
        added = _put_in(tables, rows)
        _join_view(tables, roster, back)
        if added.get("tags"):
            refresh_factors(tables)
    return Moved.of(added, tables.head.number, tuple(held.number for held in units))


def _check_found(found: Collection[str], own_ids: Collection[str], catalog: str) -> None:
    lacking = ", ".join(name[:8] for name in sorted(set(own_ids) - set(found)))
    if not lacking:
        return
    others = " ".join(name[:8] for name in sorted(found))
    advice = "index with its recipe to make it again"
    if others:
        advice = f"leave it out: evicat retire --undo {others} --catalog {catalog}"
    raise UsageError(
        f"no earlier head or snapshot of {catalog} holds more of {lacking} than is there; {advice}"
    )


def _check_fits(producer: Producer, name: str, back: Collection[str], catalog: str) -> None:
    """Vectors come back beside the entries that they embed: of an embedder nothing may be left."""
    if not back:
        raise UsageError(
            f"nothing of {_title(producer, name)} can come back to {catalog}: what it read was retired or "
            "has changed since. Bring that back first, or index with its recipe"
        )


def _check_may_go(roster: Roster, going: dict[str, Producer], own_ids: Collection[str], catalog: str) -> None:
    for name in sorted(own_ids):
        producer = roster.called(name)[0]
        if not roster.is_made(name):
            raise UsageError(
                f"{_title(producer, name)} has nothing to take out; if it was retired, this brings it "
                f"back: evicat retire --undo {name[:8]} --catalog {catalog}"
            )
        place = (producer.kind, producer.scale)
        others = {
            own_id(each)
            for each in roster.producers.values()
            if (each.kind, each.scale) == place and each.producer_id in roster.made
        } - set(own_ids)
        if roster.view.get(place) == name and others:
            raise UsageError(
                f"{_title(producer, name)} is the active one; activate another first: "
                f"evicat activate {min(others)[:8]} --catalog {catalog}"
            )
    for reader in roster.producers.values():
        read = sorted(set(reader.reads) & set(going))
        if read and reader.producer_id in roster.made and reader.producer_id not in going:
            name = own_id(reader)
            raise UsageError(
                f"{_title(going[read[0]], read[0])} is read by {_title(reader, name)}, which stays; "
                f"retire both: evicat retire {read[0][:8]} {name[:8]} --catalog {catalog}"
            )


def _check_reads(
    roster: Roster, held: Held, coming: dict[str, Producer], asked: Collection[str], catalog: str
) -> None:
    """What is written must find what it reads; vectors of what is not there just stay away."""
    writing = (producer for producer in coming.values() if producer.kind not in DERIVED)
    for producer in writing:
        needed = [read for read in producer.reads if read in held.made]
        lacking = [read for read in needed if read not in roster.made and read not in asked]
        if lacking:
            all_of_them = " ".join(name[:8] for name in (*lacking, *sorted(asked)))
            raise UsageError(
                f"{_title(producer, own_id(producer))} reads "
                f"{_title(roster.producers[lacking[0]], lacking[0])}, which is retired too; bring back "
                f"all of them: evicat retire --undo {all_of_them} --catalog {catalog}"
            )


def _title(producer: Producer, name: str) -> str:
    return f"{producer.component} {name[:8]} ({producer.scale or producer.kind})"


def _take_out(tables: Tables, going: Collection[str]) -> dict[str, int]:
    """Rows that went, by table."""
    units = tables.find("units", "producer_id", sorted(going), ["unit_id"])
    doomed = {"units": units[ROW]}
    for name in ("coverage", "entries"):
        doomed[name] = tables.find(name, "producer_id", sorted(going), [])[ROW]
    for name in tables.names():
        if holds_derived(name):
            doomed[name] = tables.find(name, table_spec(name).lookup, distinct(units["unit_id"]), [])[ROW]
    for name, rows in doomed.items():
        tables.replace(name, tables.dataset(name).schema.empty_table(), rows)
    return {name: len(rows) for name, rows in doomed.items()}


def _put_in(tables: Tables, rows: dict[str, pa.Table]) -> dict[str, int]:
    """Append rows of units that are not there, and check all of them."""
    for name, new in rows.items():
        check_keys(name, new)
    for name, new in rows.items():
        tables.ensure(name, new.schema)
        tables.replace(name, new)
    unit_ids = distinct(rows["units"]["unit_id"])
    for name in rows:
        found = tables.check_unique(name, table_spec(name).lookup, unit_ids)
        if found.num_rows != rows[name].num_rows:
            raise IntegrityError(
                f"table {name!r} has {found.num_rows} rows of the units that were brought back, "
                f"{rows[name].num_rows} were right"
            )
    counts = Counter(rows["entries"]["unit_id"].to_pylist())
    for row in rows["units"].to_pylist():
        if counts[row["unit_id"]] != row["entries"]:
            raise IntegrityError(
                f"unit {row['unit_id']} came back with {counts[row['unit_id']]} entries, "
                f"its row says {row['entries']}"
            )
    return {name: new.num_rows for name, new in rows.items()}


def _leave_view(tables: Tables, roster: Roster, names: Collection[str]) -> None:
    """No retired producer stays active: the next one that is made of its kind and scale will be."""
    gone = [name for name in names if name in roster.view.values()]
    rows = tables.find("views", "producer_id", gone, [])
    tables.replace("views", FIXED_TABLES["views"].empty_table(), rows[ROW])


def _join_view(tables: Tables, roster: Roster, producers: Collection[str]) -> None:
    """What came back is active where nothing else is."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for producer_id in sorted(producers):
        producer = roster.producers[producer_id]
        if (producer.kind, producer.scale) not in roster.view:
            rows.setdefault((producer.kind, producer.scale), view_row(producer))
    tables.replace("views", pa.Table.from_pylist(list(rows.values()), schema=FIXED_TABLES["views"]))
    tables.check_unique("views", "view", [DEFAULT_VIEW])
