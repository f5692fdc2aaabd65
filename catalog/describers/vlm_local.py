"""The local describer on a vision-language model: a short window as clues (ASSEMBLE, App. A and H)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from evicat.catalog.answers import FILLED, Answer
from evicat.catalog.boxes import Coordinates, broken_flags, dropped_note
from evicat.catalog.engines.base import Engine
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile
from evicat.schemas.records import Entity, LocalRecord, ObjectBox
from evicat.schemas.span import to_us

from .base import Reads, WindowInput
from .chat import ChatDescriber, ChatOptions, Made, Told, prompt_text
from .crop_check import Checked, CropCheck, CropCheckOptions
from .grounding import ASKED_AS, OF_FAMILY, SeenBox, read_boxes
from .packed import PackedFrame
from .shown_times import ShownTimes
from .words import one_line, sentence, short_time

Clue = Annotated[str, Field(min_length=1, max_length=160)]
Clues = Annotated[list[Clue], Field(max_length=12)]
GROUNDING: Final = ("ground", "coordinates", "check_crop")
"""Options that are about boxes."""


class VlmLocalOptions(ChatOptions):
    """Which model describes short windows, and what it is shown."""

    dialogue: bool = False
    """Whether the dialogue of the window is shown too; then other speech makes other entries."""

    ground: bool = False
    """Whether the model is asked for boxes around what it names; needs one that was trained to give them."""
    coordinates: Literal["", "pixels", "thousand", "thousand-yx"] = ""
    """How it counts in boxes: `pixels` as Qwen2.5-VL, `thousand` as Qwen3-VL and InternVL, `thousand-yx` as
    Gemini; empty: as its family does."""
    check_crop: CropCheckOptions | None = None
    """The model that is shown what each box cuts out, and asked whether it is that; left out: none."""

    @model_validator(mode="after")
    def _grounds(self) -> VlmLocalOptions:
        needless = [name for name in ("coordinates", "check_crop") if getattr(self, name)]
        if needless and not self.ground:
            raise ValueError(f"{needless[0]} is about boxes: write ground = true, or remove it")
        return self


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


class GroundedAnswer(LocalAnswer):
    """The same, and where things are."""

    boxes: Annotated[list[SeenBox], Field(max_length=24)]


class VlmLocal(ChatDescriber[VlmLocalOptions, LocalAnswer]):
    """Asks a vision-language model what a window shows; the answer is a record of clues."""

    component: ClassVar[str] = "vlm-local"
    version: ClassVar[int] = 1
    kind: ClassVar[Literal["local", "narrative", "objects"]] = "local"
    reads: frozenset[Reads] = frozenset({"frames"})
    options_class: ClassVar[type[Model]] = VlmLocalOptions
    answer_class: type[LocalAnswer] = LocalAnswer
    prompt: ClassVar[str] = "local"

    def __init__(self, options: VlmLocalOptions, profile: Profile) -> None:
        if options.ground:
            self.answer_class = GroundedAnswer
        super().__init__(options, profile)
        if options.dialogue:
            self.reads = self.reads | {"speech"}
        self.coordinates: Coordinates = options.coordinates or OF_FAMILY[options.family]
        self.crops = CropCheck(options.check_crop, profile) if options.check_crop else None

    @cached_property
    def system(self) -> str:
        said = super().system
        if not self.options.ground:
            return said
        return f"{said}\n\n{prompt_text('ground').replace('{box}', ASKED_AS[self.coordinates])}"

    def facts(self) -> dict[str, Any]:
        """What grounds is told only where it grounds, so that other producers stay what they are."""
        facts = {name: each for name, each in super().facts().items() if name not in GROUNDING}
        if self.options.ground:
            facts |= {"ground": True, "coordinates": self.coordinates}
        return facts | ({"check_crop": self.crops.facts()} if self.crops else {})

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        super().bind(engines)
        if self.crops:
            self.crops.bind(engines)

    def check(self) -> None:
        super().check()
        if self.crops:
            self.crops.check()

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
        flags = ("nothing_visible",) if record.is_empty() else ()
        if not isinstance(answer, GroundedAnswer):
            return Made(record, local_text(record), flags)
        shown = [frame for frame in window.frames if isinstance(frame, PackedFrame)]
        boxes, dropped = read_boxes(answer.boxes, shown, times, self.budget.family, self.coordinates)
        checked = self._checked(boxes, shown)
        dropped = dropped + checked.dropped
        return Made(
            record.model_copy(update={"boxes": checked.boxes}),
            local_text(record),
            (*flags, *broken_flags(dropped)),
            notes=tuple(filter(None, [dropped_note(dropped)])),
            further_calls=checked.calls,
            prompt_tokens=checked.prompt_tokens,
            completion_tokens=checked.completion_tokens,
        )

    def _checked(self, boxes: Sequence[ObjectBox], shown: Sequence[PackedFrame]) -> Checked:
        if self.crops is None:
            return Checked(tuple(boxes), Counter())
        times_us = {to_us(box.time_s) for box in boxes}
        wanted = {frame.time_us: frame.displayed for frame in shown if frame.time_us in times_us}
        return self.crops.sift(boxes, wanted)


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
