"""The describer that looks for named things: boxes by a zero-shot detector, in a scale of kind ``objects``.

Names come from the recipe, or from what the local entries of the same stretch call ``objects``. In the latter
case the frames come in a second pass over the video, when those entries are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, ValidationError, model_validator

from evicat.catalog.boxes import Found, broken_flags, clean, dropped_note, keep
from evicat.catalog.engines.base import Engine
from evicat.catalog.media.frame import Frame
from evicat.catalog.weights import Weights, resolve
from evicat.schemas.entry import Entry
from evicat.schemas.errors import UsageError, WindowError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile
from evicat.schemas.records import LocalRecord, ObjectBox, ObjectsRecord
from evicat.schemas.span import to_us

from .base import Describer, Description, Reads, WindowInput
from .crop_check import Checked, CropCheck, CropCheckOptions
from .detection import Detector, load_detector
from .words import listed, one_line, short_time

SOURCE: Final = "detector"
LEAST_CONTRAST: Final = 16
"""Of 255: a frame whose darkest and brightest values differ by less shows nothing, and is not looked at."""
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"\w")]


class DetectorOptions(Model):
    """Which model looks for objects, and for which: of `names` and `names_from_local` one is needed."""

    model: str = Field(min_length=1)
    """Its model, of the kind OWLv2, OWL-ViT or Grounding DINO: a folder, or a name on the model hub."""
    revision: str = ""
    """Its revision on the model hub; empty: the newest."""
    digest: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Digest that its weights must have; empty: any."""
    names: tuple[Name, ...] = Field(default=(), max_length=64)
    """What is looked for in every window, such as `["person", "red backpack"]`. OWL models read 16 tokens:
    longer names are refused, and left out where they come from local entries."""
    names_from_local: bool = False
    """Whether what the local entries of the window call `objects` is looked for too; then other local entries
    make other boxes, and the video is decoded a second time."""
    max_local_names: int = Field(default=16, ge=1, le=64)
    """Of the names from local entries so many are looked for, the first ones."""
    confidence: float = Field(default=0.3, ge=0, lt=1)
    """Boxes must have more than this. OWLv2 needs 0.1 to 0.3, Grounding DINO 0.25 to 0.4."""
    check_crop: CropCheckOptions | None = None
    """The chat model that is shown what each box cuts out, and asked whether it is that; left out: none."""

    @model_validator(mode="after")
    def _looks_for_something(self) -> DetectorOptions:
        if not self.names and not self.names_from_local:
            raise ValueError('write what to look for, such as names = ["person"], or names_from_local = true')
        return self


class ObjectDetector(Describer[DetectorOptions]):
    """Looks for named things with a zero-shot detector, and says in which frames they are and where."""

    component: ClassVar[str] = "detector"
    version: ClassVar[int] = 1
    kind: ClassVar[Literal["local", "narrative", "objects"]] = "objects"
    reads: frozenset[Reads] = frozenset({"frames"})
    options_class: ClassVar[type[Model]] = DetectorOptions

    def __init__(self, options: DetectorOptions, profile: Profile) -> None:
        super().__init__(options, profile)
        if options.names_from_local:
            self.reads = self.reads | {"local"}
        self.crops = CropCheck(options.check_crop, profile) if options.check_crop else None

    @cached_property
    def _weights(self) -> Weights:
        options = self.options
        return resolve(options.model, revision=options.revision, digest=options.digest, profile=self.profile)

    @property
    def model(self) -> ModelRef:
        return self._weights.ref

    def facts(self) -> dict[str, Any]:
        facts = self.options.model_dump(mode="json", exclude={"model", "revision", "digest", "check_crop"})
        return facts | ({"check_crop": self.crops.facts()} if self.crops else {})

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        if self.crops:
            self.crops.bind(engines)

    def check(self) -> None:
        """Load the model: a run that cannot use it, or its names, ends at its start."""
        long = [name for name in self.options.names if not self._detector.reads_whole(one_line(name))]
        if long:
            raise UsageError(
                f"the detector {self.options.model!r} cannot read all of {long[0]!r}: write fewer words"
            )
        if self.crops:
            self.crops.check()

    @cached_property
    def _detector(self) -> Detector:
        return load_detector(self._weights, self.profile)

    def describe(self, window: WindowInput) -> Description:
        """Look for the names in the frames of a window; where nothing is found there is no record.

        Raises:
            WindowError: the record of a local entry cannot be read, or frames of this size not be looked at.
            EngineDownError, UsageError: the model cannot be loaded or fails, or that of the check cannot be
                asked.
        """
        frames = [frame for frame in window.frames if contrast(frame) >= LEAST_CONTRAST]
        names, unread = self._names(window.entries)
        named, names = names, [name for name in names if self._detector.reads_whole(name)]
        if not frames or not names:
            why = "no frame shows anything" if window.frames and not frames else "nothing to look for"
            return Description(record=None, message=why if window.frames else "")
        boxes, dropped = clean(self._found(frames, names), SOURCE)
        best, surplus = keep(boxes)
        checked = self._checked(best, frames)
        dropped = dropped + surplus + checked.dropped
        notes = [f"{unread} more names of local entries were not looked for"] if unread else []
        notes += [f"{cut} names are longer than the model reads"] if (cut := len(named) - len(names)) else []
        notes += [note] if (note := dropped_note(dropped)) else []
        cost: dict[str, Any] = {
            "further_calls": checked.calls,
            "prompt_tokens": checked.prompt_tokens,
            "completion_tokens": checked.completion_tokens,
        }
        if not checked.boxes:
            notes.insert(0, f"none of {len(names)} names was found")
            return Description(record=None, message="; ".join(notes), **cost)
        record = objects_record(names, checked.boxes)
        return Description(
            record=record,
            text=objects_text(record),
            flags=broken_flags(dropped),
            message="; ".join(notes),
            shown=None if len(frames) == len(window.frames) else tuple(frames),
            **cost,
        )

    def _names(self, entries: Iterable[Entry]) -> tuple[list[str], int]:
        """What to look for, each once whatever its case; and how many names are beyond the bound."""
        own = {one_line(name).casefold(): one_line(name) for name in self.options.names}
        told: dict[str, str] = {}
        for name in (name for entry in entries for name in _objects(entry)):
            if name.casefold() not in own:
                told.setdefault(name.casefold(), name)
        chosen = list(told.values())[: self.options.max_local_names]
        return [*own.values(), *chosen], len(told) - len(chosen)

    def _found(self, frames: Sequence[Frame], names: Sequence[str]) -> list[Found]:
        images = [frame.image for frame in frames]
        results = self._detector.find(images, names, self.options.confidence)
        return [
            Found(frame.time_s, one.name, one.corners, one.confidence)
            for frame, found in zip(frames, results, strict=True)
            for one in found
        ]

    def _checked(self, boxes: list[ObjectBox], frames: Sequence[Frame]) -> Checked:
        if self.crops is None:
            return Checked(tuple(boxes), Counter())
        return self.crops.sift(boxes, {frame.time_us: frame for frame in frames})


def contrast(frame: Frame) -> int:
    """Brightest minus darkest value of any colour."""
    return int(frame.image.max()) - int(frame.image.min())


def _objects(entry: Entry) -> list[str]:
    try:
        record = LocalRecord.model_validate_json(entry.record)
    except ValidationError as error:
        raise WindowError(f"the record of entry {entry.entry_id} is not a local record: {error}") from None
    names = (one_line(name).rstrip(".")[:80].strip() for name in record.objects)
    return [name for name in names if any(map(str.isalnum, name))]


def objects_record(wanted: Sequence[str], boxes: Sequence[ObjectBox]) -> ObjectsRecord:
    """The record of boxes, of which there is at least one."""
    found = {box.name for box in boxes}
    names = tuple(name for name in wanted if name in found)
    return ObjectsRecord(wanted=tuple(wanted), objects=names, boxes=tuple(boxes))


def objects_text(record: ObjectsRecord) -> str:
    """``Seen: a red mug (at 0:12.4 and 0:14.0); person (at 0:12.4).``"""
    told = []
    for name in record.objects:
        times = dict.fromkeys(short_time(to_us(box.time_s)) for box in record.boxes if box.name == name)
        told.append(f"{name} (at {listed(list(times))})")
    return f"Seen: {'; '.join(told)}."
