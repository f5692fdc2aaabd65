"""Taking all that producers made out of the tables, and bringing it back from an earlier head.

Both are one change: readers see all of it or nothing. The producers keep their rows, so that ids stay
explainable. Until old versions are cleaned up, earlier heads still hold what was taken out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evicat.schemas.errors import IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer

from .bring_back import Held, gather, newest_holding
from .rows import DEFAULT_VIEW, producer_from_row, view_row
from .sql import sql_in
from .store import Store
from .tables import EMBEDDING, FIXED_TABLES, VECTORS, embedder_id
from .transact import ROW, Tables, check_keys, distinct


@dataclass(frozen=True, slots=True)
class Moved:
    """What was taken out of the tables or brought back, and which head shows it."""

    units: int = 0
    windows: int = 0
    entries: int = 0
    vectors: int = 0
    head: int = 0
    from_head: int | None = None
    """The earlier head that it came from; None where nothing was brought back."""

    @classmethod
    def of(cls, rows: dict[str, int], head: int, from_head: int | None = None) -> Moved:
        vectors = sum(count for name, count in rows.items() if name.startswith(VECTORS))
        units, windows, entries = (rows.get(name, 0) for name in ("units", "coverage", "entries"))
        return cls(units, windows, entries, vectors, head, from_head)


class Roster:
    """The producers of a catalog by what they are called: their id, or the id of their embedder."""

    def __init__(self, producers: list[Producer], made: Collection[str], view: dict[tuple[str, str], str]):
        self.producers = {producer.producer_id: producer for producer in producers}
        self.made = set(made)
        """Producers that have units."""
        self.view = view

    @classmethod
    def read(cls, source: Any) -> Roster:
        """From a ``Reader`` or from ``Tables``."""
        rows = source.dataset("producers").to_table(columns=["facts"]).to_pylist()
        units = source.dataset("units").to_table(columns=["producer_id"])
        views = source.dataset("views").to_table().to_pylist()
        view = {
            (row["kind"], row["scale"]): row["producer_id"] for row in views if row["view"] == DEFAULT_VIEW
        }
        return cls([producer_from_row(row) for row in rows], distinct(units["producer_id"]), view)

    def own_id(self, producer: Producer) -> str:
        """What people call it: its id; all that embed into one table are one embedder."""
        return embedder_id(producer) if producer.kind == EMBEDDING else producer.producer_id

    def called(self, own_id: str) -> list[Producer]:
        """The producers that ``own_id`` means: one, or all of an embedder.

        Raises:
            UnknownNameError: none is called so.
        """
        found = [each for each in self.producers.values() if own_id == self.own_id(each)]
        if not found:
            raise UnknownNameError("producer", own_id, sorted({*map(self.own_id, self.producers.values())}))
        return found

    def with_embedding(self, own_ids: Collection[str]) -> dict[str, Producer]:
        """The producers of these ids, and those that only embed what one of them writes; by producer id."""
        named = {each.producer_id: each for own_id in own_ids for each in self.called(own_id)}
        only_one = (
            each for each in self.producers.values() if each.kind == EMBEDDING and len(each.reads) == 1
        )
        return named | {each.producer_id: each for each in only_one if each.reads[0] in named}

    def is_made(self, own_id: str) -> bool:
        return any(each.producer_id in self.made for each in self.called(own_id))


def retire(store: Store, own_ids: Collection[str]) -> Moved:
    """Take entries, coverage, units and vectors of these producers out of the tables.

    So goes what only embeds their entries. An embedder goes by its embedder id.

    Raises:
        UsageError: one is active while another of its kind and scale could be, is read by one that stays,
            or has nothing to take out.
        BusyError: a run holds one of the units.
    """
    going = Roster.read(store.reader()).with_embedding(own_ids)
    with _claimed(store, going), store.changing() as tables:
        roster = Roster.read(tables)
        going = roster.with_embedding(own_ids)
        _check_may_go(roster, going, own_ids, str(store.layout.root))
        removed = _take_out(tables, going)
        _leave_view(tables, roster, own_ids)
    return Moved.of(removed, store.head.number)


def bring_back(store: Store, own_ids: Collection[str]) -> Moved:
    """Add what these producers had made, from the newest earlier head (or snapshot) that holds it.

    Units that are there are left as they are. Vectors come back where what they embed still says the same.

    Raises:
        UsageError: no head holds more of them than is there, or they read a producer that is not there.
        IntegrityError: ids would stand twice; the tables stay as they are.
    """
    with store.changing() as tables:
        roster = Roster.read(tables)
        coming = roster.with_embedding(own_ids)
        found = newest_holding(store.layout, tables, coming)
        if found is None:
            names = ", ".join(own_id[:8] for own_id in sorted(own_ids))
            raise UsageError(
                f"no earlier head or snapshot of {store.layout.root} holds more of {names} than is there; "
                "index with its recipe to make it again"
            )
        _check_reads(roster, found, coming, str(store.layout.root))
        added = _put_in(tables, gather(found, tables, coming))
        _join_view(tables, roster, own_ids)
    return Moved.of(added, store.head.number, found.number)


@contextmanager
def _claimed(store: Store, producers: Collection[str]) -> Iterator[None]:
    """Hold those units of these producers that a run may be at work on: they have a claim."""
    claims = {path.stem for path in store.layout.claims.glob("*.lock")}
    own = sql_in("producer_id", sorted(producers))
    units = store.reader().dataset("units").to_table(columns=["unit_id"], filter=own)
    with ExitStack() as stack:
        for unit_id in sorted(claims & set(distinct(units["unit_id"]))):
            stack.enter_context(store.claimed(unit_id))
        yield


def _check_may_go(roster: Roster, going: dict[str, Producer], own_ids: Collection[str], catalog: str) -> None:
    for own_id in sorted(own_ids):
        producer = roster.called(own_id)[0]
        if not roster.is_made(own_id):
            raise UsageError(
                f"{_title(producer, own_id)} has nothing to take out; if it was retired, this brings it "
                f"back: evicat retire --undo {own_id[:8]} --catalog {catalog}"
            )
        place = (producer.kind, producer.scale)
        others = {
            roster.own_id(each)
            for each in roster.producers.values()
            if (each.kind, each.scale) == place and each.producer_id in roster.made
        } - set(own_ids)
        if roster.view.get(place) == own_id and others:
            raise UsageError(
                f"{_title(producer, own_id)} is the active one; activate another first: "
                f"evicat activate {min(others)[:8]} --catalog {catalog}"
            )
    for reader in roster.producers.values():
        read = sorted(set(reader.reads) & set(going))
        if read and reader.producer_id in roster.made and reader.producer_id not in going:
            own_id = roster.own_id(reader)
            raise UsageError(
                f"{_title(going[read[0]], read[0])} is read by {_title(reader, own_id)}, which stays; "
                f"retire both: evicat retire {read[0][:8]} {own_id[:8]} --catalog {catalog}"
            )


def _check_reads(roster: Roster, found: Held, coming: dict[str, Producer], catalog: str) -> None:
    """What is written must find what it reads; vectors of what is not there just stay away."""
    writing = (producer for producer in coming.values() if producer.kind != EMBEDDING)
    for producer in writing:
        for read in producer.reads:
            if read in found.made and read not in roster.made and read not in coming:
                own_id = roster.own_id(producer)
                raise UsageError(
                    f"{_title(producer, own_id)} reads {_title(roster.producers[read], read)}, which is "
                    f"retired too; bring both back: evicat retire --undo {read[:8]} {own_id[:8]} "
                    f"--catalog {catalog}"
                )


def _title(producer: Producer, own_id: str) -> str:
    return f"{producer.component} {own_id[:8]} ({producer.scale or producer.kind})"


def _take_out(tables: Tables, going: Collection[str]) -> dict[str, int]:
    """Rows that went, by table."""
    units = tables.find("units", "producer_id", sorted(going), ["unit_id"])
    doomed = {"units": units[ROW]}
    for name in ("coverage", "entries"):
        doomed[name] = tables.find(name, "producer_id", sorted(going), [])[ROW]
    for name in tables.names():
        if name.startswith(VECTORS):
            doomed[name] = tables.find(name, "embed_unit_id", distinct(units["unit_id"]), [])[ROW]
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
        column = "embed_unit_id" if name.startswith(VECTORS) else "unit_id"
        found = tables.check_unique(name, column, unit_ids)
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


def _leave_view(tables: Tables, roster: Roster, own_ids: Collection[str]) -> None:
    """No retired producer stays active: the next one that is made of its kind and scale will be."""
    gone = [own_id for own_id in own_ids if own_id in roster.view.values()]
    rows = tables.find("views", "producer_id", gone, [])
    tables.replace("views", FIXED_TABLES["views"].empty_table(), rows[ROW])


def _join_view(tables: Tables, roster: Roster, own_ids: Collection[str]) -> None:
    """What comes back is active where nothing else is."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for own_id in own_ids:
        producer = roster.called(own_id)[0]
        if (producer.kind, producer.scale) not in roster.view:
            rows.setdefault((producer.kind, producer.scale), view_row(producer))
    tables.replace("views", pa.Table.from_pylist(list(rows.values()), schema=FIXED_TABLES["views"]))
    tables.check_unique("views", "view", [DEFAULT_VIEW])
