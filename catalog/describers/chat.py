"""What describers on chat models share: options, budget, prompt, the call, and what the ledger is told."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import Field

from evicat.catalog.answers import Answer, schema_of
from evicat.catalog.asking import ask
from evicat.catalog.engines.base import ChatRequest, Engine, Picture
from evicat.catalog.tokens import FAMILIES, FamilyName, likely_text_tokens, text_tokens
from evicat.catalog.weights import named_model
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import content_hash
from evicat.schemas.recipe import NamedModel, Profile
from evicat.schemas.records import LocalRecord, NarrativeRecord

from .base import Describer, Description, Expected, WindowInput
from .budget import Budget, evenly
from .packed import PackedFrame
from .quotes import Quote, quotes
from .shown_times import ShownTimes
from .words import short_span, short_time

FURTHER_TOKENS: Final = 1000
"""Of the words of a prompt, for the times of frames, headings and what is added to a second try."""
ANSWER_SHARE: Final = 0.25
"""Of ``max_tokens``, what a plan takes an answer to have where nothing is known of the model's."""
Domain = Literal["", "film", "lecture", "egocentric", "surveillance", "sport"]
A = TypeVar("A", bound=Answer)
OptionsT = TypeVar("OptionsT", bound="ChatOptions")

SHORTER: Final = "shorter"
"""Prompt file of what is added where an answer was cut."""


class ChatOptions(NamedModel):
    """Which model describes, and what it is shown."""

    family: FamilyName = "qwen3-vl"
    """How the model turns pictures into tokens; Qwen3.5 counts as `qwen3-vl`."""
    domain: Domain = ""
    """A note on the kind of video that is added to the prompt; empty: none."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Randomness of the answers."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63 - 1)
    """Seed of the sampling, for engines that take one."""
    max_tokens: int = Field(default=1200, ge=64, le=32_768)
    """Tokens of an answer; one that is cut is asked for once more, with twice as many and in fewer words."""
    max_frames: int = Field(default=64, ge=1, le=512)
    """Frames that are shown; more are thinned out evenly."""
    min_frames: int = Field(default=1, ge=1, le=8)
    """Pictures that the model needs; the last frame is repeated where there are fewer, and counts once."""
    max_pixels: int = Field(default=589_824, ge=1024)
    """Pixels of a picture; larger ones are scaled down."""
    max_prompt_tokens: int = Field(default=16_384, ge=8000)
    """Tokens of a prompt: half for pictures, half for words, by the formulas of `catalog/tokens.py`."""
    jpeg_quality: int = Field(default=90, ge=1, le=100)
    """Quality of the JPEG files that are sent."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a prompt says before its pictures, and what the ledger is told of it."""

    text: str
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """What became of an answer."""

    record: LocalRecord | NarrativeRecord
    text: str
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    further_calls: int = 0
    """Further questions that it took; the tokens are those of these."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatDescriber(Describer[OptionsT], Generic[OptionsT, A]):
    """Shows a window to a chat model. Subclasses say what precedes the pictures, and what an answer means.

    The prompt is made of prompt files, times, dialogue and earlier answers only. File names, titles and
    manifests never get here.
    """

    answer_class: type[A]
    prompt: ClassVar[str]
    """Name of its prompt file."""

    def __init__(self, options: OptionsT, profile: Profile) -> None:
        super().__init__(options, profile)
        self._model = named_model(options, profile)
        self._bound: Engine | None = None
        self._is_checked = False
        self._checking = threading.Lock()
        self.budget = Budget(
            FAMILIES[options.family], options.max_frames, options.max_pixels, options.max_prompt_tokens // 2
        )
        self.schema = schema_of(self.answer_class)

    @property
    def model(self) -> ModelRef:
        """What the recipe names."""
        return self._model

    def facts(self) -> dict[str, Any]:
        options = self.options.model_dump(mode="json", exclude=set(NamedModel.model_fields))
        texts = [self.system, prompt_text(SHORTER)]
        return options | {"prompt": content_hash(texts), "schema": content_hash(self.schema)}

    @cached_property
    def system(self) -> str:
        """What is common to all windows."""
        domain = self.options.domain
        return "\n\n".join(
            prompt_text(name) for name in (self.prompt, f"domain_{domain}" if domain else "") if name
        )

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        self._bound = engines(self.model)

    @property
    def engine(self) -> Engine:
        if self._bound is None:
            raise RuntimeError(f"describer {self.component} has no engine: call bind() before it describes")
        return self._bound

    @property
    def served_by(self) -> object:
        return self._bound or self

    @property
    def slots(self) -> int:
        return self.engine.slots

    def check(self) -> None:
        with self._checking:
            if not self._is_checked:
                shown = self.budget.frames_that_fit(max(1, self.frames_per_window))
                one: list[str | Picture] = ["Frame at 0:00.0:", _tiny_picture()]
                pictures = one * max(shown, self.options.min_frames)
                self.engine.check(replace(self._request(pictures), max_tokens=64))
                self._is_checked = True

    def prepare(self, frames: tuple[Any, ...]) -> tuple[PackedFrame, ...]:
        return self.budget.pack(frames, quality=self.options.jpeg_quality)

    def expected(self, window: WindowInput) -> Expected:
        """The request that :meth:`describe` would send, counted; without frames none is sent."""
        if not window.frames:
            return Expected()
        canvases = [(frame, self.budget.canvas(*size)) for frame, size in self.budget.shown(window.frames)]
        shown = [
            PackedFrame(frame.pts, frame.time_us, b"", width=width, height=height, taken=len(window.frames))
            for frame, (width, height) in canvases
        ]
        request = self._request([part for part in (self.told(window).text, *self._pictures(shown)) if part])
        pictures = (self.budget.family.picture_tokens(each.width, each.height) for each in request.pictures)
        prompt = sum(map(likely_text_tokens, request.texts)) + sum(pictures)
        return Expected(frames=len(shown), prompt_tokens=prompt, output_tokens=self.answer_tokens)

    @cached_property
    def answer_tokens(self) -> float:
        """Tokens of an answer for a plan: what the engine can tell, else a share of ``max_tokens``."""
        told = self._bound.answer_tokens(self.schema) if self._bound else None
        return ANSWER_SHARE * self.options.max_tokens if told is None else told

    def describe(self, window: WindowInput) -> Description:
        """Ask the model about the frames of a window; without any it is not asked, and there is no record.

        Raises:
            TruncatedError, AnswerError, RefusedError, RequestError: the model gave no answer that fits.
            EngineDownError, UsageError: nothing more can be asked.
        """
        if not window.frames:
            return Description(record=None)
        packed = [frame for frame in window.frames if isinstance(frame, PackedFrame)]
        shown = tuple(packed) if len(packed) == len(window.frames) else self.prepare(window.frames)
        told = self.told(window)
        request = self._request([part for part in (told.text, *self._pictures(shown)) if part])
        asked = ask(self.engine, request, self.answer_class, _shorter, self._fewer)
        if asked.pictures < len(request.pictures):
            shown = tuple(evenly(shown, asked.pictures))
        times = ShownTimes(window.span, (frame.time_us for frame in shown))
        made = self.made(replace(window, frames=shown), asked.answer, times)
        flags, notes = _frames_note(shown)
        if times.dropped:
            flags, notes = (
                (*flags, "times_dropped"),
                (*notes, f"{times.dropped} times outside the window dropped"),
            )
        if asked.is_cleaned:
            flags = (*flags, "characters_replaced")
        again = tuple(f"asked again: {note}" for note in asked.notes)
        return Description(
            record=made.record,
            text=made.text,
            flags=(*made.flags, *told.flags, *flags),
            message="; ".join((*told.notes, *notes, *made.notes, *again)),
            shown=shown,
            attempts=asked.attempts,
            further_calls=made.further_calls,
            prompt_tokens=asked.prompt_tokens + made.prompt_tokens,
            completion_tokens=asked.completion_tokens + made.completion_tokens,
        )

    @abstractmethod
    def told(self, window: WindowInput) -> Told:
        """What the prompt says before its pictures."""

    @abstractmethod
    def made(self, window: WindowInput, answer: A, times: ShownTimes) -> Made:
        """The record and the text of an answer; the frames of ``window`` are those that were shown."""

    def dialogue(self, window: WindowInput, beside: str) -> Told:
        """What is said in the window, line by line."""
        shown, missing = self.heard(window, beside)
        if not shown and not missing:
            return Told("No dialogue is known for this stretch.")
        lines = ["Dialogue of this stretch, on the clock of the frames:", *map(_line, shown)]
        if not missing:
            return Told("\n".join(lines))
        note = f"the last {missing} of {missing + len(shown)} lines of dialogue were not shown"
        return Told("\n".join([*lines, f"({note})"]), ("dialogue_cut",), (note,))

    def heard(self, window: WindowInput, beside: str) -> tuple[list[Quote], int]:
        """The first quotes, as many as there is room for with ``beside``; and how many more there are."""
        said = quotes(window.speech, window.span)
        left = self.options.max_prompt_tokens // 2 - text_tokens(self.system + beside) - FURTHER_TOKENS
        for number, quote in enumerate(said):
            left -= text_tokens(_line(quote)) + 1
            if left < 0:
                return said[:number], len(said) - number
        return said, 0

    def _request(self, parts: Sequence[str | Picture]) -> ChatRequest:
        options = self.options
        return ChatRequest(
            system=self.system,
            parts=tuple(parts),
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            schema=self.schema,
            seed=options.seed,
        )

    def _pictures(self, shown: Sequence[PackedFrame]) -> list[str | Picture]:
        """Each frame after the time that it is from."""
        repeated = [*shown, *[shown[-1]] * (self.options.min_frames - len(shown))]
        parts: list[str | Picture] = []
        for frame in repeated:
            parts += [
                f"Frame at {short_time(frame.time_us)}:",
                Picture(frame.jpeg, frame.width, frame.height),
            ]
        return parts

    def _fewer(self, request: ChatRequest) -> ChatRequest | None:
        """Half of the pictures, evenly, each after its time; None where the model needs more than that."""
        pictures = [number for number, part in enumerate(request.parts) if isinstance(part, Picture)]
        kept = evenly(pictures, len(pictures) // 2)
        if len(kept) < self.options.min_frames:
            return None
        gone = {part for number in pictures if number not in kept for part in (number - 1, number)}
        return replace(request, parts=tuple(part for n, part in enumerate(request.parts) if n not in gone))


def _line(quote: Quote) -> str:
    return f'{short_span(quote.span)} {quote.voice}: "{quote.text}"'


def prompt_text(name: str) -> str:
    """A prompt file, without the blanks around it."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def _shorter(request: ChatRequest) -> ChatRequest:
    return replace(request, parts=(*request.parts, prompt_text(SHORTER)))


def _frames_note(shown: Sequence[PackedFrame]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flag and note where fewer frames were shown than were taken."""
    taken = shown[0].taken
    if len(shown) == taken:
        return (), ()
    size = f"{shown[0].width}x{shown[0].height}"
    return ("frames_dropped",), (f"{len(shown)} of {taken} frames were shown, at {size}",)


def _tiny_picture() -> Picture:
    """64 x 64 pixels of grey: enough to learn whether pictures are taken."""
    import cv2
    import numpy as np

    _, jpeg = cv2.imencode(".jpg", np.full((64, 64, 3), 128, np.uint8))
    return Picture(jpeg.tobytes(), 64, 64)
