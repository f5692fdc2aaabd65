"""Frames of ranges of a session's video, and questions to a model about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from evicat.catalog.answers import Answer, schema_of
from evicat.catalog.asking import Asked, ask
from evicat.catalog.engines.base import ChatRequest, Picture
from evicat.catalog.llm import SHORTER, TextModel
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.jpeg import jpeg
from evicat.readers.base import CallError
from evicat.schemas.errors import UsageError
from evicat.schemas.span import to_us

if TYPE_CHECKING:
    from evicat.readers.session import Session

A = TypeVar("A", bound=Answer)
MAX_TOKENS = 1024
QUALITY = 90


def check_inside(session: Session, start: float, end: float) -> None:
    """Make sure that ``0 <= start < end <= duration``, in seconds; the end of the video is legal.

    Raises:
        CallError: it does not hold.
    """
    if not (0 <= start < end <= session.duration_s and to_us(start) < to_us(end)):
        raise CallError(
            f"an interval must have 0 <= start < end <= {session.duration_s!r} (the length of the video, in "
            f"seconds); got start={start!r}, end={end!r}"
        )


def shares(lengths: Sequence[float], pool: int) -> list[int]:
    """``pool`` frames dealt out by length, at least one to each.

    Raises:
        CallError: there are more ranges than frames.
    """
    if len(lengths) > pool:
        raise CallError(f"{len(lengths)} ranges share at most {pool} frames: give fewer ranges")
    spare, whole = pool - len(lengths), sum(lengths)
    return [1 + int(spare * length / whole) for length in lengths]


def look(session: Session, ranges: Sequence[tuple[float, float]], pool: int) -> tuple[Frame, ...]:
    """At most ``pool`` frames of all ranges together, one a second of each where they suffice."""
    for start, end in ranges:
        check_inside(session, start, end)
    counts = shares([end - start for start, end in ranges], pool)
    seen: dict[int, Frame] = {}
    for (start, end), count in zip(ranges, counts, strict=True):
        n = min(count, max(1, round(end - start)))
        for frame in session.catalog.frames(
            session.video, (start, end), n=n, max_frames=n, width=session.limits.width
        ):
            seen[frame.pts] = frame
    return tuple(sorted(seen.values(), key=lambda frame: frame.time_us))


def references(frames: Sequence[Frame]) -> tuple[tuple[int, float], ...]:
    """PTS and seconds of frames."""
    return tuple((frame.pts, frame.time_s) for frame in frames)


def needed(session: Session, name: str) -> TextModel:
    """The session's model.

    Raises:
        UsageError: it has none.
    """
    if session.llm is None:
        raise UsageError(f"{name} asks a model, and this session has none: open it with llm=")
    return session.llm


def ask_about(llm: TextModel, text: str, frames: Sequence[Frame], answer: type[A]) -> Asked[A]:
    """What a model says to ``text`` about frames, each told with its time; raises as ``TextModel.ask``."""
    parts: list[str | Picture] = []
    for frame in frames:
        parts += [f"{frame.time_s:.3f} s:", Picture(jpeg(frame.image, QUALITY), frame.width, frame.height)]
    request = ChatRequest("", (*parts, text), max_tokens=MAX_TOKENS, schema=schema_of(answer))
    return ask(llm.engine, request, answer, lambda one: replace(one, parts=(*one.parts, SHORTER)))
