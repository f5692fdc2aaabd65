"""One row of the catalog, and what became of every window."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Literal, get_args

from pydantic import Field

from .model import Model
from .records import ObjectBox
from .span import Span

FLAGS = {
    "nothing_visible": "the describer saw nothing; the scene is a cautious sentence",
    "frames_dropped": "fewer frames were shown than were taken, to stay within the prompt's bounds",
    "dialogue_cut": "not all lines of the dialogue were shown, to stay within the prompt's bounds",
    "boxes_dropped": "boxes that lie outside the frame, are reversed, or at no frame's time were left out",
    "times_dropped": "events whose times lie outside the window, or are none, were left out of the answer",
    "characters_replaced": "the answer held characters that no text may hold; a replacement stands for each",
    "cue_overruns": "the subtitle cue ran past the timeline and was cut at its end",
    "repeated": "speech that repeats itself beyond what people say; kept, not embedded",
    "unsure_speech": "the transcriber itself doubts that this is speech; kept, not embedded",
    "no_voice": "speech where the detector of voices heard none; kept, not embedded",
    "crammed": "speech with more words than its time can hold; kept, not embedded",
    "unsure_language": "the spoken language was detected with a probability below one half",
    "word_times_estimated": "a word without a time took one from its neighbours",
}
"""Every flag that an entry may carry, and what it means."""

SPEECH_WITHHELD = {"repeated", "unsure_speech", "no_voice", "crammed"}
"""Flags of speech that is kept for audit but neither embedded nor shown to describers."""


Kind = Literal["local", "narrative", "speech", "sound", "objects"]
KINDS: tuple[str, ...] = get_args(Kind)
"""What an entry may be: the record of a short window, a narrative of a longer one, speech, other sound, or
which objects a window shows and where."""


class FrameRef(Model):
    """A frame that was really shown: its PTS in the stream's time base and its time on the timeline."""

    pts: int
    time_s: float


class Entry(Model):
    """Text, span and provenance of one piece of evidence. Times are seconds, half-open."""

    entry_id: str
    unit_id: str
    asset_id: str
    producer_id: str
    condition_id: str = ""
    kind: Kind
    scale: str
    span: Span
    text: Annotated[str, Field(min_length=1)]
    record: str = "{}"
    """The validated record as JSON."""
    frames: tuple[FrameRef, ...] = ()
    time_base: str = ""
    shown_width: int | None = None
    shown_height: int | None = None
    objects: tuple[ObjectBox, ...] = ()
    speaker: str | None = None
    language: str | None = None
    flags: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    boundary: Literal["none", "question", "options"] = "none"


class Vector(Model):
    """One embedded part of one entry."""

    entry_id: str
    part: int
    unit_id: str
    """Unit of the entry, not of the embedder."""
    asset_id: str
    producer_id: str
    """Producer of the entry."""
    kind: str
    scale: str
    span: Span
    vector: tuple[float, ...] | None
    """Normalised float32; None where the text could not be embedded."""


Role = Literal["observed", "quoted", "inferred"]

ROLES: dict[Role, str] = {
    "observed": "an entry says it",
    "quoted": "words of it are words of a speech entry",
    "inferred": "it concludes, or no entry says it",
}
"""What a sentence of a narrative may be, and what that means."""


class Link(Model):
    """An entry that carries a sentence, and how well: 1 is best."""

    entry_id: str
    score: float


class Support(Model):
    """One sentence of a narrative, what it is, and what it rests on: best first, nothing where it is bare."""

    entry_id: str
    """The narrative."""
    sentence: Annotated[int, Field(ge=0)]
    """Which of its sentences, from 0."""
    unit_id: str
    """Unit of the narrative."""
    asset_id: str
    producer_id: str
    """Producer of the narrative."""
    span: Span
    """Of the narrative."""
    text: Annotated[str, Field(min_length=1)]
    role: Role
    rests_on: tuple[Link, ...] = ()


class Outcome(StrEnum):
    """What became of a window; a window without one is pending."""

    DONE = "done"
    PARTIAL = "partial"
    EMPTY = "empty"
    NO_FRAMES = "no_frames"
    REFUSED = "refused"
    FAILED = "failed"
    STALE = "stale"

    @property
    def writes_entries(self) -> bool:
        return self in (Outcome.DONE, Outcome.PARTIAL)

    @property
    def may_be_stale(self) -> bool:
        """Whether it tells what the window read: others wrote nothing, or are to be made again anyhow."""
        return self in (Outcome.DONE, Outcome.PARTIAL, Outcome.EMPTY)


OUTCOME_MEANINGS = {
    Outcome.DONE: "entries (or vectors) were written",
    Outcome.PARTIAL: "entries were written from a part of the window",
    Outcome.EMPTY: "it ran, and by the rule there is nothing to write: no speech, nothing to digest",
    Outcome.NO_FRAMES: "the file has no picture in that window",
    Outcome.REFUSED: "the model declined to answer",
    Outcome.FAILED: "it did not work; the class and message of the error stand beside it",
    Outcome.STALE: "what it read has changed since, so that it is to be made again",
}
"""Every outcome, and what it means."""

RETRIES = {
    "failed": "every window that failed, and files that could not be read",
    "truncated": "windows whose answer was cut at the token limit",
    "refused": "windows that the model declined",
    "stale": "windows that read what has changed since",
}
"""What a run may be asked to make again."""
TRUNCATED = "Truncated"
"""``error_class`` of a window whose answer was cut at the token limit."""


class WindowResult(Model):
    """The outcome of one span of a unit, with the entries (or vectors, or supports) that it wrote.

    A local or narrative unit has one per window, a speech unit one per block, an embedding unit one per
    chunk of the unit that it embeds, a support unit a single one. The results of a unit tile
    ``[0, duration)`` when it is complete.
    """

    span: Span
    outcome: Outcome
    entries: tuple[Entry, ...] = ()
    vectors: tuple[Vector, ...] = ()
    supports: tuple[Support, ...] = ()
    error_class: str = ""
    message: str = ""
    raw: str = ""
    """What the model answered where no entry could be made of it; kept for audit, never shown as evidence."""
    attempts: int = 1
    further_calls: int = 0
    """Calls of models beside the attempts, such as those that check boxes. Limits of a run count them; the
    ledger holds what they took among the tokens, and not their number."""
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    context_hash: str = ""
    """Hash of what this window read beside its pixels: dialogue, other entries, the previous narrative."""

    def is_due(self, retry: Collection[str]) -> bool:
        """Whether a run that retries these (:data:`RETRIES`) makes this window again."""
        if self.outcome == Outcome.FAILED and self.error_class == TRUNCATED and "truncated" in retry:
            return True
        return self.outcome in retry
