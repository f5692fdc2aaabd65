"""A unit while it is worked on: claimed, continued, and closed however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evicat.schemas.entry import Entry, WindowResult
from evicat.schemas.identity import Unit
from evicat.schemas.sink import Sink


@contextmanager
def opened(sink: Sink, unit: Unit) -> Iterator[dict[int, WindowResult]]:
    """Claim ``unit`` and give its results so far; it is complete if nothing is raised."""
    complete = False
    have = sink.open(unit)
    try:
        yield have
        complete = True
    finally:
        sink.close(unit, complete=complete)


def entries_of(sink: Sink, unit: Unit) -> list[Entry]:
    """All entries of a unit so far, by window."""
    return [entry for _, result in sorted(sink.results(unit).items()) for entry in result.entries]
