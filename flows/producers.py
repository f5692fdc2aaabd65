"""Producers of a catalog: which there are, which of them are shown, and taking out what others made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.storage.reader import Reader
from evicat.storage.retire import Moved, Roster, bring_back, retire
from evicat.storage.store import Store
from evicat.storage.tables import EMBEDDING, vectors_table


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
    """Entries that it wrote; of an embedder, those that have vectors."""
    state: str
    """``active``, ``kept``, or ``retired`` where nothing of it is there."""


def listing(reader: Reader) -> list[Listed]:
    """All producers of entries and all embedders, by kind and scale, the active ones first."""
    roster = Roster.read(reader)
    units = reader.dataset("units").to_table(columns=["producer_id", "windows", "entries"]).to_pylist()
    sums: dict[str, list[int]] = {}
    for row in units:
        count = sums.setdefault(roster.own_id(roster.producers[row["producer_id"]]), [0, 0, 0])
        count[0] += 1
        count[1] += row["windows"]
        count[2] += row["entries"]
    own = {roster.own_id(each): each for each in roster.producers.values()}
    rows = [_listed(reader, roster, own_id, each, sums.get(own_id)) for own_id, each in own.items()]
    return sorted(
        rows, key=lambda row: (row.kind == EMBEDDING, row.kind, row.scale, row.state, row.producer_id)
    )


def _listed(
    reader: Reader, roster: Roster, own_id: str, producer: Producer, sums: list[int] | None
) -> Listed:
    count, windows, entries = sums or (0, 0, 0)
    is_embedder = producer.kind == EMBEDDING
    if is_embedder and vectors_table(own_id) in reader.names():
        entries = reader.dataset(vectors_table(own_id)).count_rows(filter="part = 0")
    is_active = roster.view.get((producer.kind, producer.scale)) == own_id
    return Listed(
        producer_id=own_id,
        kind=producer.kind,
        scale=producer.scale,
        component=producer.component,
        version=producer.version,
        model=producer.model.name if producer.model else "",
        reads=() if is_embedder else producer.reads,
        units=count,
        windows=windows,
        entries=entries,
        state="active" if is_active else "kept" if sums else "retired",
    )


def own_ids(roster: Roster, beginnings: Sequence[str]) -> list[str]:
    """Full ids from first digits.

    Raises:
        UsageError: no producer begins so, or several do.
    """
    known = {roster.own_id(each): each for each in roster.producers.values()}
    found = []
    for beginning in beginnings:
        fit = sorted(own_id for own_id in known if beginning and own_id.startswith(beginning))
        if not fit:
            listed = [f"{own_id[:8]} ({_what(each)})" for own_id, each in known.items()]
            raise UnknownNameError("producer", beginning, listed)
        if len(fit) > 1:
            raise UsageError(f"{beginning!r} begins several producers: {', '.join(fit)}")
        found += fit
    return list(dict.fromkeys(found))


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
        chosen = own_ids(roster, beginnings)
        places: dict[tuple[str, str], str] = {}
        for own_id in chosen:
            producer = roster.called(own_id)[0]
            place = (producer.kind, producer.scale)
            if place in places:
                raise UsageError(
                    f"{places[place][:8]} and {own_id[:8]} are both {producer.scale or producer.kind}; "
                    "one of them can be active"
                )
            if not roster.is_made(own_id):
                raise UsageError(
                    f"nothing of {_what(producer)} {own_id[:8]} is there to be shown; bring it back with: "
                    f"evicat retire --undo {own_id[:8]} --catalog {catalog}, or index with its recipe"
                )
            places[place] = own_id
        former = {place: roster.view[place] for place in places if place in roster.view}
        for own_id in chosen:
            store.activate(roster.called(own_id)[0])
        store.commit(force=True)
    changed = {place: own_id for place, own_id in places.items() if former.get(place) != own_id}
    for (kind, scale), own_id in places.items():
        what = _what(roster.called(own_id)[0])
        if (kind, scale) not in changed:
            console.print(f"{what} {own_id[:8]} is active already.", soft_wrap=True)
            continue
        before = former.get((kind, scale))
        instead = f", instead of {before[:8]}" if before else ""
        console.print(f"Active now: {what} {own_id[:8]}{instead}.", soft_wrap=True)
    back = [former[place][:8] for place in changed if place in former]
    if back:
        command = f"evicat activate {' '.join(back)} --catalog {catalog}"
        console.print(f"Back with: {escape(command)}", soft_wrap=True)


def print_retired(
    console: Console, catalog: str, beginnings: Sequence[str], *, undo: bool, as_json: bool
) -> None:
    """Take out what these producers made, or bring it back, and say how much that was."""
    with Store.connect(catalog, write=True) as store:
        chosen = own_ids(Roster.read(store.reader()), beginnings)
        moved = bring_back(store, chosen) if undo else retire(store, chosen)
    if as_json:
        console.print_json(data={"producers": chosen, **asdict(moved)}, indent=None)
        return
    console.print(f"{'Brought back' if undo else 'Taken out'}: {_counts(moved)}.", soft_wrap=True)
    if undo:
        console.print(f"They come from head {moved.from_head}; the catalog is at head {moved.head}.")
        return
    ids = " ".join(own_id[:8] for own_id in chosen)
    console.print(
        f"Until a clean-up frees their room, they come back with: "
        f"{escape(f'evicat retire --undo {ids} --catalog {catalog}')}",
        soft_wrap=True,
    )


def _counts(moved: Moved) -> str:
    facts: dict[str, Any] = asdict(moved)
    return ", ".join(f"{facts[name]} {name}" for name in ("units", "windows", "entries", "vectors"))


def _what(producer: Producer) -> str:
    return f"{producer.scale or 'vectors'} by {producer.component}"
