"""What was called over a catalog and what came back: pure values that metrics and rewards read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One call. ``valid`` says that it was well formed; where ``error`` is filled, nothing was returned."""

    index: int
    raw: str
    """The arguments as they were given."""
    tool: str
    valid: bool
    error_class: str = ""
    error: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    """As they were understood; empty for a call that is not valid."""
    entry_ids: tuple[str, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    """Seconds, half-open."""
    frames: tuple[tuple[int, float], ...] = ()
    """PTS and seconds of each frame that was shown."""
    boundary: str = "none"
    tokens: tuple[int, int] = (0, 0)
    """Of the prompt and of the completion, where a model was asked."""
    seconds: float = 0.0
    text: str = ""
    """What the caller is told: the answer, or the error."""


@dataclass(frozen=True, slots=True)
class Trace:
    """All calls of one trajectory, in their order, and the head and view that they read."""

    trace_id: str
    catalog: str
    version: int
    view: str
    video: str
    question: str
    steps: tuple[TraceStep, ...] = ()

    def to_json(self) -> str:
        """As JSON; :meth:`from_json` is the inverse."""
        return _TRACE.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """A trace as :meth:`to_json` wrote it.

        Raises:
            ValueError: it is no trace.
        """
        return _TRACE.validate_json(text)


_TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)
