"""The local describer on a vision-language model: a short window as clues (ASSEMBLE, App. A and H)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile
from evicat.schemas.records import Entity, LocalRecord

from .answers import FILLED, Answer
from .base import Reads, WindowInput
from .chat import ChatDescriber, ChatOptions, Made, Told
from .shown_times import ShownTimes
from .words import one_line, sentence, short_time

Clue = Annotated[str, Field(min_length=1, max_length=160)]
Clues = Annotated[list[Clue], Field(max_length=12)]


class VlmLocalOptions(ChatOptions):
    """Which model describes short windows, and what it is shown."""

    dialogue: bool = False
    """Whether the dialogue of the window is shown too; then other speech makes other entries."""


class SeenEntity(Answer):
    descriptor: Clue
    details: Annotated[list[Clue], Field(max_length=6)]


class SeenChange(Answer):
    t: Annotated[str, Field(max_length=20)] | float
    """As it stands before a frame, or in seconds, on the clock of the frames."""
    what: Clue


class LocalAnswer(Answer):
    """What the model is asked for, clues first."""

    objects: Clues
    colours: Clues
    place: Annotated[str, Field(max_length=160)]
    screen_text: Clues
    spoken_clues: Clues
    people: Annotated[list[SeenEntity], Field(max_length=12)]
    entities: Annotated[list[SeenEntity], Field(max_length=12)]
    actions: Clues
    interactions: Clues
    social_cues: Clues
    changes: Annotated[list[SeenChange], Field(max_length=12)]
    scene: Annotated[str, Field(min_length=1, max_length=400), FILLED]


class VlmLocal(ChatDescriber[VlmLocalOptions, LocalAnswer]):
    """Asks a vision-language model what a window shows; the answer is a record of clues."""

    component: ClassVar[str] = "vlm-local"
    version: ClassVar[int] = 1
    kind: ClassVar[Literal["local", "narrative"]] = "local"
    reads: frozenset[Reads] = frozenset({"frames"})
    options_class: ClassVar[type[Model]] = VlmLocalOptions
    answer_class = LocalAnswer
    prompt: ClassVar[str] = "local"

    def __init__(self, options: VlmLocalOptions, profile: Profile) -> None:
        super().__init__(options, profile)
        if options.dialogue:
            self.reads = self.reads | {"speech"}

    def told(self, window: WindowInput) -> Told:
        return self.dialogue(window, "") if self.options.dialogue else Told("")

    def made(self, window: WindowInput, answer: LocalAnswer, times: ShownTimes) -> Made:
        record = LocalRecord(
            scene=one_line(answer.scene),
            place=one_line(answer.place),
            people=_entities(answer.people),
            entities=_entities(answer.entities),
            actions=_phrases(answer.actions),
            interactions=_phrases(answer.interactions),
            social_cues=_phrases(answer.social_cues),
            objects=_phrases(answer.objects),
            colours=_phrases(answer.colours),
            screen_text=_phrases(answer.screen_text),
            spoken_clues=_phrases(answer.spoken_clues),
            changes=_changes(answer.changes, times),
        )
        return Made(record, local_text(record), ("nothing_visible",) if record.is_empty() else ())


def local_text(record: LocalRecord) -> str:
    """A local record as sentences: the scene, then each field that holds something under its name."""
    people, others = ([_named(each) for each in group] for group in (record.people, record.entities))
    fields: list[tuple[str, Sequence[str]]] = [
        ("Place", [record.place] if record.place else []),
        ("People", people),
        ("Also seen", others),
        ("Objects", record.objects),
        ("Colours", record.colours),
        ("Actions", record.actions),
        ("Interactions", record.interactions),
        ("Social cues", record.social_cues),
        ("On screen", [f'"{text}"' for text in record.screen_text]),
        ("Said", record.spoken_clues),
        ("Changes", record.changes),
    ]
    told = [f"{name}: {'; '.join(items).rstrip('.')}." for name, items in fields if items]
    return " ".join([sentence(record.scene), *told])


def _named(entity: Entity) -> str:
    return entity.descriptor + (f" ({', '.join(entity.details)})" if entity.details else "")


def _phrases(items: Sequence[str]) -> tuple[str, ...]:
    """Each once, on one line, without blank ones."""
    return tuple(dict.fromkeys(phrase for item in items if (phrase := one_line(item))))


def _entities(items: Sequence[SeenEntity]) -> tuple[Entity, ...]:
    found = {one_line(item.descriptor): _phrases(item.details) for item in items}
    return tuple(Entity(descriptor=name, details=details) for name, details in found.items() if name)


def _changes(items: Sequence[SeenChange], times: ShownTimes) -> tuple[str, ...]:
    """``at 2:15.3: the door opens``, in order of time; without those whose time is not of this window."""
    told = [(time_us, one_line(item.what)) for item in items if (time_us := times.read(item.t)) is not None]
    return _phrases([f"at {short_time(time_us)}: {what}" for time_us, what in sorted(told) if what])
