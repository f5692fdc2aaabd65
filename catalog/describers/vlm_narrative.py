"""The narrative describer on a vision-language model: what happens in a window, told on from the one before.

After ASSEMBLE, App. A and H: frames, dialogue with times, the previous narrative and a running cast make one
paragraph. It does not read local entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from evicat.catalog.answers import FILLED, Answer
from evicat.schemas.model import Model
from evicat.schemas.records import CastMember, NarrativeRecord
from evicat.schemas.span import Span

from .base import Expected, Past, Reads, WindowInput
from .cast import Seen, running_cast
from .chat import ChatDescriber, ChatOptions, Made, Told
from .quotes import quoted
from .shown_times import ShownTimes
from .words import one_line, short_span

NARRATIVE_SHARE: Final = 0.75
"""Of an answer, what a plan takes the narrative itself to be; the rest is the cast and JSON."""
CHARACTERS_PER_TOKEN: Final = 4
CAST_NAME, CAST_DESCRIPTOR = 20, 30
"""Characters that a plan takes a name and a descriptor to have."""


class VlmNarrativeOptions(ChatOptions):
    """Which model tells longer windows, and what it is shown of what came before."""

    past_characters: int = Field(default=1500, ge=0, le=5000)
    """Characters of the previous narrative that are shown: its end, for the story goes on from there."""
    max_cast: int = Field(default=20, ge=1, le=40)
    """Members of the running cast that are kept: who is in the window, then who was seen last."""


class Appearance(Answer):
    """Somebody in the stretch."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    descriptor: Annotated[str, Field(max_length=160)]
    formerly: Annotated[str, Field(max_length=80)]


class NarrativeAnswer(Answer):
    """What the model is asked for."""

    narrative: Annotated[str, Field(min_length=1, max_length=6000), FILLED]
    cast: Annotated[list[Appearance], Field(max_length=20)]


class VlmNarrative(ChatDescriber[VlmNarrativeOptions, NarrativeAnswer]):
    """Has a vision-language model tell a window in one paragraph, with the dialogue and what came before."""

    component: ClassVar[str] = "vlm-narrative"
    version: ClassVar[int] = 1
    kind: ClassVar[Literal["local", "narrative"]] = "narrative"
    reads: frozenset[Reads] = frozenset({"frames", "speech", "past"})
    options_class: ClassVar[type[Model]] = VlmNarrativeOptions
    answer_class = NarrativeAnswer
    prompt: ClassVar[str] = "narrative"

    def expected(self, window: WindowInput) -> Expected:
        """A window behind the first one is told after a past as long as such answers are."""
        return super().expected(replace(window, past=window.past or self._likely_past(window.span)))

    def _likely_past(self, span: Span) -> Past | None:
        """A narrative of the usual length just before ``span``, and a cast of one newcomer in each window."""
        before = span.start_us // span.duration_us
        if not before:
            return None
        last = Span(span.start_us - span.duration_us, span.start_us)
        likely = CastMember(
            name="a" * CAST_NAME, descriptor="b" * CAST_DESCRIPTOR, first_seen_s=0, last_seen_s=last.end_s
        )
        text = "n" * max(1, round(NARRATIVE_SHARE * CHARACTERS_PER_TOKEN * self.answer_tokens))
        return Past(last, text, (likely,) * min(before, self.options.max_cast))

    def told(self, window: WindowInput) -> Told:
        before = self._before(window)
        dialogue = self.dialogue(window, before)
        return Told(f"{before}\n\n{dialogue.text}", dialogue.flags, dialogue.notes)

    def made(self, window: WindowInput, answer: NarrativeAnswer, times: ShownTimes) -> Made:
        text = one_line(answer.narrative)
        seen = [
            Seen(name, one_line(one.descriptor), one_line(one.formerly))
            for one in answer.cast
            if (name := one_line(one.name))
        ]
        known = window.past.cast if window.past else ()
        cast = running_cast(known, seen, window.span, self.options.max_cast)
        heard, _ = self.heard(window, self._before(window))
        rests_on = tuple(quoted(window.entries, heard))
        return Made(NarrativeRecord(narrative=text, cast=cast, rests_on=rests_on), text)

    def _before(self, window: WindowInput) -> str:
        """What is told ahead of the dialogue."""
        return f"{self._past(window)}\n\nThis stretch: {short_span(window.span)}."

    def _past(self, window: WindowInput) -> str:
        past = window.past
        if past is None:
            if window.span.start_us == 0:
                return "This is the beginning of the video; nothing came before."
            return "Nothing before this stretch was described, so nobody is known yet."
        lines = [f"What came before ({short_span(past.span)}): {self._end_of(past)}"]
        if past.span.end_us < window.span.start_us:
            gap = f"{(window.span.start_us - past.span.end_us) / 1e6:.0f}"
            lines.append(f"The {gap} seconds between that and this stretch were not described.")
        if past.cast:
            members = [f"- {m.name}: {m.descriptor}" if m.descriptor else f"- {m.name}" for m in past.cast]
            lines += ["", "Cast so far:", *members]
        return "\n".join(lines)

    def _end_of(self, past: Past) -> str:
        """The end of the previous narrative, from the start of a word on."""
        most = self.options.past_characters
        if len(past.narrative) <= most:
            return past.narrative
        end = past.narrative[len(past.narrative) - most + len("... ") :] if most > len("... ") else ""
        return "... " + end.partition(" ")[2] if " " in end else end
