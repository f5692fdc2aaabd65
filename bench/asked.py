"""Describers that ask an engine without any decoding, for benches of scheduling and of a whole library.

What is shown is one tiny array per frame; the engine is told the size that it stands for. All else is real.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal
from unittest.mock import patch

import numpy as np
from pydantic import ValidationError

from evicat.catalog import seeing
from evicat.catalog.describers.base import Describer, Description, Reads, WindowInput
from evicat.catalog.describers.loaders import DESCRIBERS
from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Engine, Picture
from evicat.catalog.engines.simulated import SimulatedEngine
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Wanted
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.errors import AnswerError, RefusedError, TruncatedError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Recipe, parse_toml
from evicat.schemas.records import LocalRecord, NarrativeRecord
from evicat.schemas.span import US, Span

MODEL = ModelRef(name="bench-model")
SHOWN = 448, 252
"""Pixels that every frame stands for."""
LOCAL_S, NARRATIVE_S = 10, 60
RECIPE = f"""
name = "bench"
[[scales]]
kind = "local"
window_seconds = {LOCAL_S}
describer = "ask-local"
frames = {{ per_window = 8, max_width = 448 }}
[[scales]]
kind = "narrative"
window_seconds = {NARRATIVE_S}
describer = "ask-narrative"
frames = {{ per_window = 16, max_width = 448 }}
"""
ON_ANSWER: list[Callable[[WindowInput, str, ChatAnswer], None]] = []
"""Called with every answer: window, kind of the describer, answer."""
ENGINES: list[Engine] = []
"""Every engine that a describer was given."""


class Chains:
    """Adds up how long the narratives of each film took in their slots; stands in ``ON_ANSWER``."""

    def __init__(self) -> None:
        self._answers: dict[int, list[ChatAnswer]] = {}
        self._lock = threading.Lock()

    def __call__(self, window: WindowInput, kind: str, answer: ChatAnswer) -> None:
        if kind == "narrative":
            film_of = window.frames[0].pts - window.frames[0].time_us  # see tiny_frames
            with self._lock:
                self._answers.setdefault(film_of, []).append(answer)

    def longest(self, engine: SimulatedEngine) -> float:
        """Seconds of the longest chain, on the clock of the engine."""
        return max(sum(map(engine.seconds, answers)) for answers in self._answers.values())


class NoOptions(Model):
    """None."""


class AskLocal(Describer[NoOptions]):
    """Asks for a record of one window."""

    component = "ask-local"
    version = 1
    kind: ClassVar[Literal["local", "narrative"]] = "local"
    reads: frozenset[Reads] = frozenset({"frames"})
    options_class = NoOptions
    record: ClassVar[type[LocalRecord | NarrativeRecord]] = LocalRecord

    @property
    def model(self) -> ModelRef:
        return MODEL

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        self.engine = engines(MODEL)
        ENGINES.append(self.engine)

    @property
    def served_by(self) -> object:
        return self.engine

    @property
    def slots(self) -> int:
        return self.engine.slots

    def describe(self, window: WindowInput) -> Description:
        times = [frame.time_us for frame in window.frames]
        past = window.past.narrative if window.past else ""
        answer = self.engine.submit(request(self.kind, window.span, times, past)).result()
        for told in ON_ANSWER:
            told(window, self.kind, answer)
        return self._description(answer)

    def _description(self, answer: ChatAnswer) -> Description:
        prompt, completion = answer.prompt_tokens, answer.completion_tokens
        facts: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
        if answer.finish_reason == "refused":
            raise RefusedError("the model declined", **facts)
        if answer.finish_reason == "length":
            raise TruncatedError("the answer was cut", raw=answer.text, **facts)
        try:
            record = self.record.model_validate_json(answer.text)
        except ValidationError:
            raise AnswerError("the answer is no record", raw=answer.text, **facts) from None
        return Description(record, text_of(record), **facts)


class AskNarrative(AskLocal):
    """Asks for a narrative, telling the one before it."""

    component = "ask-narrative"
    kind = "narrative"
    reads: frozenset[Reads] = frozenset({"frames", "past"})
    record = NarrativeRecord


def text_of(record: LocalRecord | NarrativeRecord) -> str:
    """The text of an entry, more or less."""
    if isinstance(record, NarrativeRecord):
        return record.narrative
    return ". ".join([record.scene, *record.actions, *record.objects, *record.screen_text])


SCHEMAS = {"local": LocalRecord.model_json_schema(), "narrative": NarrativeRecord.model_json_schema()}


def request(kind: str, span: Span, times_us: Sequence[int], past: str) -> ChatRequest:
    """The question about one window."""
    pictures = [Picture(time_us.to_bytes(8, "big"), *SHOWN) for time_us in times_us]
    texts = [f"{span.start_us / US:.1f} s to {span.end_us / US:.1f} s", *([past] if past else [])]
    return ChatRequest(f"{kind}: say what you see.", (*texts, *pictures), 4_000, schema=SCHEMAS[kind])


def recipe() -> Recipe:
    return parse_toml(Recipe, RECIPE, "bench.toml")


@contextmanager
def asking() -> Iterator[None]:
    """The describers are known, and the pass over the pictures brings tiny frames without any file."""
    names = {"ask-local": f"{__name__}:AskLocal", "ask-narrative": f"{__name__}:AskNarrative"}
    with patch.dict(DESCRIBERS, names), patch.object(seeing, "read_windows", tiny_frames):
        yield


def tiny_frames(
    _pool: object, _path: Path, asset: Asset, wanted: Sequence[Wanted], **_: Any
) -> Iterator[tuple[int, tuple[Frame, ...]]]:
    """In place of ``read_windows``: windows in the order in which they end, frames at the wanted times."""
    image = np.zeros((2, 2, 3), np.uint8)
    own = int(asset.asset_id[:6], 16)  # so that no two films are shown the same
    for index in sorted(range(len(wanted)), key=lambda each: (wanted[each].span.end_us, each)):
        yield index, tuple(Frame(time + own, time, image) for time in wanted[index].times_us)


def film(name: str, seconds: float) -> Asset:
    """The facts of a film without a file."""
    asset_id = hashlib.sha256(name.encode()).hexdigest()[:32]
    video = VideoFacts(
        stream_index=0,
        codec="h264",
        width=640,
        height=360,
        time_base="1/1000000",
        origin_pts=0,
        frame_count=int(seconds * 25),
        average_rate=25.0,
    )
    return Asset(
        asset_id=asset_id,
        source_id=asset_id,
        size_bytes=1,
        container="mov,mp4",
        duration_us=round(seconds) * US,
        origin_us=0,
        video=video,
        audio=None,
    )
