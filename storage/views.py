"""Named views: stored beside the default one, and kept with every head and snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from evicat.schemas.errors import UnknownNameError, UsageError

from .reader import Reader
from .roster import Roster, what_it_makes
from .rows import DEFAULT_VIEW
from .store import Store
from .tables import PER_SOURCE, VIEWS
from .transact import ROW

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Places = dict[tuple[str, str], str]


def stored_views(reader: Reader) -> dict[str, Places]:
    """Every stored view: the producer of each kind and scale, of ``embedding`` the embedder's id."""
    views: dict[str, Places] = {}
    for row in reader.dataset("views").to_table().to_pylist():
        views.setdefault(row["view"], {})[row["kind"], row["scale"]] = row["producer_id"]
    return dict(sorted(views.items()))


def set_view(store: Store, name: str, beginnings: list[str]) -> Places:
    """Store a view of these producers and no others, in place of one of that name.

    Embedders and taggers that are not among them are those of the default view: what a view lacks of vectors
    cannot be searched by meaning.

    Raises:
        UsageError: a name that is none or ``default``, an id that is none, or two producers of one place.
    """
    _check_name(name)
    roster = Roster.read(store.reader())
    places: Places = {}
    for own_id in roster.own_ids(beginnings):
        producer = roster.called(own_id)[0]
        place = (producer.kind, producer.scale)
        if place in places:
            both = f"{places[place][:8]} and {own_id[:8]}"
            raise UsageError(
                f"{both} are both {what_it_makes(producer.component, producer.scale)}: choose one"
            )
        places[place] = own_id
    kept = {place: made for place, made in roster.view.items() if place[0] in PER_SOURCE}
    places = kept | places
    _put(store, name, ((kind, scale, made) for (kind, scale), made in places.items()))
    return places


def delete_view(store: Store, name: str) -> None:
    """Forget a stored view; what it showed stays.

    Raises:
        UnknownNameError: there is none of this name.
    """
    _check_name(name)
    known = [each for each in stored_views(store.reader()) if each != DEFAULT_VIEW]
    if name not in known:
        raise UnknownNameError("view", name, known)
    _put(store, name, ())


def _check_name(name: str) -> None:
    if name == DEFAULT_VIEW:
        raise UsageError("the default view is changed with: evicat activate PRODUCER...")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"a view cannot be called {name!r}: use lower-case letters, digits, '-' and '_', 64 at most"
        )


def _put(store: Store, name: str, rows: Iterable[tuple[str, str, str]]) -> None:
    new = [dict(zip(VIEWS.names, (name, *row), strict=True)) for row in rows]
    with store.changing() as tables:
        former = tables.find("views", "view", [name], ["view"])
        tables.replace("views", pa.Table.from_pylist(new, schema=VIEWS), former[ROW])
