"""Replay: the calls of a trace once more at the same head, and where the answers differ."""

from __future__ import annotations

from dataclasses import dataclass

from evicat.catalog.query import Catalog
from evicat.readers.session import LONGEST_CALL, Session
from evicat.readers.trace import Trace, TraceStep
from evicat.schemas.recipe import Profile

COMPARED = ("valid", "error_class", "error", "arguments", "entry_ids", "spans", "frames", "boundary", "text")
"""Fields of a step that must be equal; how long it took is none of them."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One step, replayed. ``differs`` names the fields that are not as they were."""

    before: TraceStep
    after: TraceStep | None
    """None: not made again, as a model had answered, or its arguments are kept cut."""
    differs: tuple[str, ...]


def replay(trace: Trace, profile: Profile | None = None, *, uri: str | None = None) -> tuple[Replayed, ...]:
    """Make the calls of a trace again without a model; what a model answered is left out.

    Args:
        uri: Where the catalog lies now; None: where it lay.

    Raises:
        UnknownNameError: its head or view is no more.
    """
    catalog = Catalog.open(uri or trace.catalog, profile, at=trace.version).view(trace.view)
    session = Session(catalog, trace.video, trace.question)
    return tuple(_again(session, step) for step in trace.steps)


def _again(session: Session, step: TraceStep) -> Replayed:
    if any(step.tokens) or len(step.raw) >= LONGEST_CALL:
        return Replayed(step, None, ())
    after = session.call(step.tool, step.raw)
    return Replayed(
        step, after, tuple(name for name in COMPARED if getattr(step, name) != getattr(after, name))
    )
