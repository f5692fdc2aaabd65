"""FrameInspect: frames of some ranges, and what a model sees in them (PACE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from evicat.catalog.answers import FILLED, Answer
from evicat.readers.base import Arguments, Range, Returned, Tool, Words
from evicat.readers.looking import ask_about, look, references

if TYPE_CHECKING:
    from evicat.readers.session import Session


class Observation(Answer):
    """What a model sees."""

    observation: Annotated[str, FILLED]


class FrameInspectArguments(Arguments):
    question: Words
    ranges: Annotated[tuple[Range, ...], Field(min_length=1)]


class FrameInspect(Tool[FrameInspectArguments]):
    """Without a model it returns the frames alone."""

    name = "FrameInspect"
    description = "Look at frames of one or more ranges (seconds) with a question; ranges share the frames."
    Arguments = FrameInspectArguments

    def run(self, session: Session, arguments: FrameInspectArguments) -> Returned:
        spans = tuple((each.start, each.end) for each in arguments.ranges)
        frames = look(session, spans, session.limits.inspect_frames)
        shown = references(frames)
        if session.llm is None:
            return Returned(f"{len(frames)} frames", frames, spans=spans, frames=shown)
        prompt = f"Say in a few sentences what these frames show about: {arguments.question}"
        asked = ask_about(session.llm, prompt, frames, Observation)
        return Returned(
            asked.answer.observation,
            frames,
            spans=spans,
            frames=shown,
            boundary="options",
            tokens=(asked.prompt_tokens, asked.completion_tokens),
        )
