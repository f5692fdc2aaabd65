"""What describers return for a window, checked before anything is stored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .model import Model

Phrase = Annotated[str, Field(min_length=1, max_length=500)]
Phrases = tuple[Phrase, ...]
Coordinate = Annotated[float, Field(ge=0, le=1000)]


class ObjectBox(Model):
    """Where something was seen: a box in 1000 x 1000 coordinates of the displayed picture."""

    time_s: float
    """Seconds on the asset's timeline: the time of the frame that the box was seen in."""
    name: Phrase
    x1: Coordinate
    y1: Coordinate
    x2: Coordinate
    y2: Coordinate
    confidence: float | None = Field(default=None, ge=0, le=1)
    source: str = ""
    """What measured it, such as ``ocr``."""

    @model_validator(mode="after")
    def _ordered(self) -> ObjectBox:
        if self.x2 <= self.x1 or self.y2 <= self.y1:
            raise ValueError(f"box of {self.name!r} is empty: x {self.x1}..{self.x2}, y {self.y1}..{self.y2}")
        return self


class Entity(Model):
    """A person or thing under a stable descriptor, such as ``the man with the backpack``."""

    descriptor: Phrase
    details: Phrases = ()


class LocalRecord(Model):
    """What one short window shows (ASSEMBLE, App. A and H): clue-like phrases, nothing inferred."""

    scene: Phrase
    place: str = ""
    people: tuple[Entity, ...] = ()
    entities: tuple[Entity, ...] = ()
    actions: Phrases = ()
    interactions: Phrases = ()
    social_cues: Phrases = ()
    objects: Phrases = ()
    colours: Phrases = ()
    screen_text: Phrases = ()
    spoken_clues: Phrases = ()
    changes: Phrases = ()
    boxes: tuple[ObjectBox, ...] = ()

    def is_empty(self) -> bool:
        """True where the describer saw nothing: only a cautious scene is left."""
        return not any(value for name, value in self if name != "scene")


class ObjectsRecord(Model):
    """Which of the objects that were looked for one window shows, and where."""

    wanted: Phrases
    """Names of what was looked for."""
    objects: Annotated[Phrases, Field(min_length=1)]
    """Those of them that were found."""
    boxes: Annotated[tuple[ObjectBox, ...], Field(min_length=1)]


class CastMember(Model):
    """Somebody (or something that acts) whom narratives call by one name from window to window."""

    name: Phrase
    """What narratives call them: a name once it is known, else a descriptor (``the man with the bag``)."""
    descriptor: Annotated[str, Field(max_length=500)] = ""
    """How to know them again."""
    formerly: Phrases = ()
    """Names that they had in earlier windows, oldest first."""
    first_seen_s: float
    """Start of the first window that they are in, in seconds on the asset's timeline."""
    last_seen_s: float
    """End of the last window that they are in."""


class NarrativeRecord(Model):
    """One paragraph on a longer window, the running cast, and the entries that it rests on."""

    narrative: Annotated[str, Field(min_length=1, max_length=20_000)]
    cast: tuple[CastMember, ...] = ()
    """The running cast after this window: who is in it first, then who was seen before, latest first."""
    rests_on: tuple[str, ...] = ()
    """``entry_id`` of every entry that the paragraph was made from."""


class Word(Model):
    """One spoken word with its times (seconds on the asset's timeline) and probability."""

    start_s: float
    end_s: float
    text: str
    probability: float | None = None


class SpeechSegment(Model):
    """A stretch of speech, or of another sound in words: of a subtitle cue, or of a transcriber's segment."""

    kind: Literal["speech", "sound"] = "speech"
    """``sound``: what a cue or transcriber describes (``[door slams]``) or marks as music, not dialogue."""
    start_s: float
    end_s: float
    text: Annotated[str, Field(min_length=1)]
    words: tuple[Word, ...] = ()
    source: str
    """``subtitles:sidecar LANGUAGE``, ``subtitles:stream N LANGUAGE`` or the transcriber's name."""
    stream_index: int | None = None
    """The file's sound stream that the transcriber listened to."""
    language: str | None = None
    language_probability: float | None = None
    average_log_probability: float | None = None
    no_speech_probability: float | None = None
    speaker: str | None = None
    flags: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> SpeechSegment:
        if not 0 <= self.start_s < self.end_s:
            raise ValueError(
                f"need 0 <= start < end, got start={self.start_s}, end={self.end_s}: {self.text!r}"
            )
        return self
