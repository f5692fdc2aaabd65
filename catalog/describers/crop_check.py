"""The check of boxes by what they cut out: a chat model is shown each crop, and asked whether it shows that.

As in Open-o3-Video: what the model denies is dropped, and so is a box about which it gives no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from evicat.catalog.answers import Answer, schema_of
from evicat.catalog.asking import ask
from evicat.catalog.boxes import SIDE, Dropped, Reason
from evicat.catalog.engines.base import ChatRequest, Engine, Picture
from evicat.catalog.media.frame import Frame
from evicat.catalog.tokens import FAMILIES, FamilyName
from evicat.catalog.weights import named_model
from evicat.schemas.errors import WindowError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import content_hash
from evicat.schemas.recipe import NamedModel, Profile
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import to_us

from .budget import Budget
from .chat import prompt_text

PROMPT: Final = "crop"
MAX_TOKENS: Final = 64
QUALITY: Final = 90


class CropCheckOptions(NamedModel):
    """Which model is asked about crops, and how they are cut."""

    family: FamilyName = "qwen3-vl"
    """How the model turns pictures into tokens."""
    margin: float = Field(default=0.1, ge=0, le=1)
    """Of the box's sides, what is cut out around it."""
    max_pixels: int = Field(default=262_144, ge=1024)
    """Pixels of a crop; larger ones are scaled down."""


class CropAnswer(Answer):
    shows: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """Boxes that are what they are called, what was dropped, and what asking took."""

    boxes: tuple[ObjectBox, ...]
    dropped: Dropped
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What came of the question about one box."""

    why_dropped: Reason | None
    calls: int
    prompt_tokens: int
    completion_tokens: int


class CropCheck:
    """Asks about crops; several at once, as many as the engine takes."""

    def __init__(self, options: CropCheckOptions, profile: Profile) -> None:
        self.options = options
        self.ref = named_model(options, profile)
        self._bound: Engine | None = None
        self._budget = Budget(FAMILIES[options.family], 1, options.max_pixels, 10**9)
        self._system = prompt_text(PROMPT)
        self._schema = schema_of(CropAnswer)

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        self._bound = engines(self.ref)

    @property
    def engine(self) -> Engine:
        if self._bound is None:
            raise RuntimeError("the check of crops has no engine: call bind() before it is asked")
        return self._bound

    def facts(self) -> dict[str, Any]:
        """What of it goes into the producer; where no model is run at all, that is said."""
        runs = self._bound.runs if self._bound else self.ref
        options = self.options.model_dump(mode="json", exclude=set(NamedModel.model_fields))
        hashes = {"prompt": content_hash(self._system), "schema": content_hash(self._schema)}
        return options | hashes | {"model": runs.identity()}

    def check(self) -> None:
        """Make sure that the engine takes such requests; as of :meth:`Describer.check`."""
        import numpy as np

        grey = np.full((64, 64, 3), 128, np.uint8)
        self.engine.check(self._request(Frame(0, 0, grey), "a grey picture"))

    def sift(self, boxes: Sequence[ObjectBox], frames: Mapping[int, Frame]) -> Checked:
        """Of ``boxes`` those that the model confirms. ``frames``: by time, in microseconds, as displayed.

        Raises:
            EngineDownError, UsageError: nothing more can be asked.
        """
        if not boxes:
            return Checked((), Counter())
        with ThreadPoolExecutor(min(len(boxes), self.engine.slots)) as pool:
            verdicts = list(pool.map(lambda box: self._verdict(box, frames[to_us(box.time_s)]), boxes))
        return Checked(
            boxes=tuple(box for box, one in zip(boxes, verdicts, strict=True) if one.why_dropped is None),
            dropped=Counter(one.why_dropped for one in verdicts if one.why_dropped is not None),
            calls=sum(one.calls for one in verdicts),
            prompt_tokens=sum(one.prompt_tokens for one in verdicts),
            completion_tokens=sum(one.completion_tokens for one in verdicts),
        )

    def _verdict(self, box: ObjectBox, frame: Frame) -> _Verdict:
        request = self._request(crop(frame, box, self.options.margin), box.name)
        try:
            asked = ask(self.engine, request, CropAnswer, lambda same: same)
        except WindowError as error:
            return _Verdict("unanswered", error.attempts, error.prompt_tokens, error.completion_tokens)
        why: Reason | None = None if asked.answer.shows else "refused"
        return _Verdict(why, asked.attempts, asked.prompt_tokens, asked.completion_tokens)

    def _request(self, frame: Frame, name: str) -> ChatRequest:
        (packed,) = self._budget.pack([frame], quality=QUALITY)
        picture = Picture(packed.jpeg, packed.width, packed.height)
        return ChatRequest(
            system=self._system,
            parts=(picture, f"It is said to show: {name}"),
            max_tokens=MAX_TOKENS,
            schema=self._schema,
        )


def crop(frame: Frame, box: ObjectBox, margin: float) -> Frame:
    """What lies in the box and ``margin`` of its sides around it: whole pixels, at least one."""
    across, down = margin * (box.x2 - box.x1), margin * (box.y2 - box.y1)
    left, right = _pixels(box.x1 - across, box.x2 + across, frame.width)
    top, bottom = _pixels(box.y1 - down, box.y2 + down, frame.height)
    return Frame(frame.pts, frame.time_us, frame.image[top:bottom, left:right])


def _pixels(first: float, last: float, size: int) -> tuple[int, int]:
    """The pixels of a side that an interval of 1000 touches."""
    start = min(max(0, int(first * size // SIDE)), size - 1)
    end = min(size, -int(-last * size // SIDE))
    return start, max(end, start + 1)
