"""VisualRetrieve and VisualInspect: candidates by cosine and by text, and a verdict on frames (VideoSEAL)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from evicat.catalog.answers import FILLED, Answer
from evicat.readers.base import Arguments, Range, Returned, Tool, TopK, Words
from evicat.readers.clip_search import line, listed
from evicat.readers.looking import ask_about, look, needed, references
from evicat.schemas.errors import AnswerError

if TYPE_CHECKING:
    from evicat.readers.session import Session


class Kept(Answer):
    """Numbers of the clips that fit."""

    keep: list[int]


class Verdict(Answer):
    """Whether frames suffice for an answer; ``answer`` is empty where they do not."""

    sufficient: bool
    feedback: Annotated[str, FILLED]
    answer: str


class VisualRetrieveArguments(Arguments):
    query: Words
    top_k: TopK = 16


class VisualInspectArguments(Arguments):
    question: Words
    spans: Annotated[tuple[Range, ...], Field(min_length=1)]


class VisualRetrieve(Tool[VisualRetrieveArguments]):
    """Local entries only; the model reads their texts, never frames."""

    name = "VisualRetrieve"
    description = "Find clips that look like the query, and keep those whose text fits it."
    Arguments = VisualRetrieveArguments

    def run(self, session: Session, arguments: VisualRetrieveArguments) -> Returned:
        llm = needed(session, self.name)
        found = session.catalog.search(
            arguments.query, mode="vector", limit=arguments.top_k, video=session.video, kind="local"
        )
        rows = found.sort("start_s", "end_s", "entry_id").to_dicts()
        if not rows:
            return listed(rows)
        clips = "\n".join(f"{number}. {line(row)}" for number, row in enumerate(rows, 1))
        asked = ask_about(
            llm, f"Give the numbers of the clips that fit: {arguments.query}\n{clips}", (), Kept
        )
        spent = asked.prompt_tokens, asked.completion_tokens
        unknown = [number for number in asked.answer.keep if not 1 <= number <= len(rows)]
        if unknown:
            raise AnswerError(
                f"the model kept clip {unknown[0]} of {len(rows)}",
                prompt_tokens=spent[0],
                completion_tokens=spent[1],
            )
        told = listed([rows[number - 1] for number in sorted(set(asked.answer.keep))])
        return Returned(told.text, entry_ids=told.entry_ids, spans=told.spans, tokens=spent)


class VisualInspect(Tool[VisualInspectArguments]):
    """The only one of the two that answers."""

    name = "VisualInspect"
    description = "Judge whether frames of some spans (seconds) suffice to answer a question, and answer it."
    Arguments = VisualInspectArguments

    def run(self, session: Session, arguments: VisualInspectArguments) -> Returned:
        llm = needed(session, self.name)
        spans = tuple((each.start, each.end) for each in arguments.spans)
        frames = look(session, spans, session.limits.visual_frames)
        prompt = (
            "Do these frames suffice to answer the question? Say what is missing or what decides, and answer "
            f"only if they suffice.\nQuestion: {arguments.question}"
        )
        asked = ask_about(llm, prompt, frames, Verdict)
        return Returned(
            asked.answer.model_dump_json(),
            frames,
            spans=spans,
            frames=references(frames),
            boundary="options",
            tokens=(asked.prompt_tokens, asked.completion_tokens),
        )
