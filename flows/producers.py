"""Producers of a catalog: which there are, which of them are shown, and taking out what others made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.schemas.errors import UsageError
from evicat.schemas.identity import Producer
from evicat.storage.reader import Reader
from evicat.storage.retire import Moved, bring_back, retire
from evicat.storage.roster import Roster, own_id, what_it_makes
from evicat.storage.sql import sql_equals
from evicat.storage.store import Store
from evicat.storage.tables import DERIVED, EMBEDDING, PER_SOURCE, TAG, vectors_table


@dataclass(frozen=True, slots=True)
class Listed:
    """A producer of entries, or an embedder, and how much of it there is."""

    producer_id: str
    """Of an embedder: what all producers that embed with it have in common."""
    kind: str
    scale: str
    component: str
    version: int
    model: str
    reads: tuple[str, ...]
    units: int
    windows: int
    entries: int
    """Entries that it wrote; of an embedder, those that have vectors; of a tagger, its tags."""
    state: str
    """``active``, ``kept``, or ``retired`` where nothing of it is there."""


def listing(reader: Reader) -> list[Listed]:
    """All producers of entries and all embedders, by kind and scale, the active ones first."""
    roster = Roster.read(reader)
    units = reader.dataset("units").to_table(columns=["producer_id", "windows", "entries"]).to_pylist()
    sums: dict[str, list[int]] = {}
    for row in units:
        count = sums.setdefault(own_id(roster.producers[row["producer_id"]]), [0, 0, 0])
        count[0] += 1
        count[1] += row["windows"]
        count[2] += row["entries"]
    rows = [_listed(reader, roster, name, each, sums.get(name)) for name, each in roster.own.items()]
    return sorted(
        rows, key=lambda row: (row.kind in DERIVED, row.kind, row.scale, row.state, row.producer_id)
    )


def _listed(reader: Reader, roster: Roster, name: str, producer: Producer, sums: list[int] | None) -> Listed:
    count, windows, entries = sums or (0, 0, 0)
    is_embedder = producer.kind == EMBEDDING
    if producer.kind == TAG:
        entries = reader.dataset("tags").count_rows(filter=sql_equals("made_by", name))
    if is_embedder and vectors_table(name) in reader.names():
        entries = reader.dataset(vectors_table(name)).count_rows(filter="part = 0")
    is_active = roster.view.get((producer.kind, producer.scale)) == name
    return Listed(
        producer_id=name,
        kind=producer.kind,
        scale=producer.scale,
        component=producer.component,
        version=producer.version,
        model=producer.model.name if producer.model else "",
        reads=() if producer.kind in PER_SOURCE else producer.reads,
        units=count,
        windows=windows,
        entries=entries,
        state="active" if is_active else "kept" if sums else "retired",
    )


def print_listing(console: Console, rows: list[Listed]) -> None:
    if not rows:
        console.print("This catalog has no producers: nothing was indexed into it.")
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for column in ("id", "kind", "scale", "component", "model"):
        table.add_column(column, overflow="fold", no_wrap=column in ("id", "kind", "scale"))
    for column in ("units", "windows", "entries"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    style = {"active": "green", "kept": "dim", "retired": "yellow"}
    for row in rows:
        table.add_row(
            row.producer_id[:8],
            row.kind,
            row.scale,
            escape(f"{row.component} v{row.version}"),
            escape(row.model.removeprefix("packaged:")),
            *(str(count) for count in (row.units, row.windows, row.entries)),
            f"[{style[row.state]}]{row.state}[/]",
        )
    console.print(table)


def print_activated(console: Console, catalog: str, beginnings: Sequence[str]) -> None:
    """Switch the default view to these producers, all in one head, and say how to switch back.

    Raises:
        UsageError: an id that is none, two of one kind and scale, or one of which nothing is there.
    """
    with Store.connect(catalog, write=True) as store:
        roster = Roster.read(store.reader())
        chosen = roster.own_ids(beginnings)
        places: dict[tuple[str, str], str] = {}
        for name in chosen:
            producer = roster.called(name)[0]
            place = (producer.kind, producer.scale)
            if place in places:
                raise UsageError(
                    f"{places[place][:8]} and {name[:8]} are both {producer.scale or producer.kind}; "
                    "one of them can be active"
                )
            if not roster.is_made(name):
                raise UsageError(
                    f"nothing of {_what(producer)} {name[:8]} is there to be shown; bring it back with: "
                    f"evicat retire --undo {name[:8]} --catalog {catalog}, or index with its recipe"
                )
            places[place] = name
        former = {place: roster.view[place] for place in places if place in roster.view}
        for name in chosen:
            store.activate(roster.called(name)[0])
        store.commit(force=True)
    changed = {place: name for place, name in places.items() if former.get(place) != name}
    for (kind, scale), name in places.items():
        what = _what(roster.called(name)[0])
        if (kind, scale) not in changed:
            console.print(f"{what} {name[:8]} is active already.", soft_wrap=True)
            continue
        before = former.get((kind, scale))
        instead = f", instead of {before[:8]}" if before else ""
        console.print(f"Active now: {what} {name[:8]}{instead}.", soft_wrap=True)
    back = [former[place][:8] for place in changed if place in former]
    if back:
        command = f"evicat activate {' '.join(back)} --catalog {catalog}"
        console.print(f"Back with: {escape(command)}", soft_wrap=True)


def print_retired(
    console: Console, catalog: str, beginnings: Sequence[str], *, undo: bool, as_json: bool
) -> None:
    """Take out what these producers made, or bring it back, and say how much that was."""
    with Store.connect(catalog, write=True) as store:
        chosen = Roster.read(store.reader()).own_ids(beginnings)
        moved = bring_back(store, chosen) if undo else retire(store, chosen)
    if as_json:
        console.print_json(data={"producers": chosen, **asdict(moved)}, indent=None)
        return
    console.print(f"{'Brought back' if undo else 'Taken out'}: {_counts(moved)}.", soft_wrap=True)
    if undo:
        heads = " and ".join(map(str, moved.from_heads))
        console.print(f"They come from head {heads}; the catalog is at head {moved.head}.")
        return
    ids = " ".join(name[:8] for name in chosen)
    console.print(
        f"Until a clean-up frees their room, they come back with: "
        f"{escape(f'evicat retire --undo {ids} --catalog {catalog}')}",
        soft_wrap=True,
    )


def _counts(moved: Moved) -> str:
    facts: dict[str, Any] = asdict(moved)
    further = [name for name in ("supports", "tags") if facts[name]]
    names = ["units", "windows", "entries", "vectors", *further]
    return ", ".join(f"{facts[name]} {name}" for name in names)


def _what(producer: Producer) -> str:
    return what_it_makes(producer.component, producer.scale)
