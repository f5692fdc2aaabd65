"""Producers by what people call them: their id, or the id of their embedder, or first digits of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer

from .reader import Reader
from .rows import producer_from_row
from .tables import PER_SOURCE, SUPPORT, embedder_id
from .transact import distinct


def own_id(producer: Producer) -> str:
    """What people call a producer: its id; all that embed into one table, or tag alike, are one."""
    return embedder_id(producer) if producer.kind in PER_SOURCE else producer.producer_id


def what_it_makes(component: str, scale: str) -> str:
    """A producer for people, beside its id: ``local-4s by sight``."""
    return f"{scale or 'vectors'} by {component}"


def by_beginning(known: Mapping[str, str], beginning: str) -> str:
    """The one id that has these first digits; ``known`` says of every id what it is.

    Raises:
        UsageError: no producer begins so, or several do.
    """
    found = sorted(each for each in known if beginning and each.startswith(beginning))
    if not found:
        raise UnknownNameError(
            "producer", beginning, [f"{each[:8]} ({what})" for each, what in known.items()]
        )
    if len(found) > 1:
        raise UsageError(f"{beginning!r} begins several producers: {', '.join(found)}")
    return found[0]


def _needs(producer: Producer, others: Collection[str]) -> bool:
    """Whether nothing of a producer is right where nothing of ``others`` is there."""
    if producer.kind in PER_SOURCE:
        return len(producer.reads) == 1 and producer.reads[0] in others
    return producer.kind == SUPPORT and not set(producer.reads).isdisjoint(others)


class Roster:
    """The producers of a catalog at one head, and which of them are shown."""

    def __init__(self, producers: list[Producer], made: Collection[str], view: dict[tuple[str, str], str]):
        self.producers = {producer.producer_id: producer for producer in producers}
        self.made = set(made)
        """Producers that have units."""
        self.view = view
        """The default view."""

    @classmethod
    def read(cls, reader: Reader) -> Roster:
        rows = reader.dataset("producers").to_table(columns=["facts"]).to_pylist()
        units = reader.dataset("units").to_table(columns=["producer_id"])
        return cls([producer_from_row(row) for row in rows], distinct(units["producer_id"]), reader.view())

    @property
    def own(self) -> dict[str, Producer]:
        """By what they are called; of an embedder one of its producers."""
        return {own_id(producer): producer for producer in self.producers.values()}

    def own_ids(self, beginnings: Sequence[str]) -> list[str]:
        """Full ids from first digits, each once; raises as :func:`by_beginning` does."""
        known = {key: what_it_makes(each.component, each.scale) for key, each in self.own.items()}
        return list(dict.fromkeys(by_beginning(known, beginning) for beginning in beginnings))

    def called(self, name: str) -> list[Producer]:
        """The producers that an own id means: one, or all of an embedder.

        Raises:
            UnknownNameError: none is called so.
        """
        found = [each for each in self.producers.values() if name == own_id(each)]
        if not found:
            raise UnknownNameError("producer", name, sorted(self.own))
        return found

    def with_derived(self, own_ids: Collection[str]) -> dict[str, Producer]:
        """The producers of these ids, and what cannot be without them; by producer id.

        That is what only embeds or tags what one of them writes, and supports that are made of it.
        """
        named = {each.producer_id: each for name in own_ids for each in self.called(name)}
        return named | {key: each for key, each in self.producers.items() if _needs(each, named)}

    def is_made(self, name: str) -> bool:
        return any(each.producer_id in self.made for each in self.called(name))
