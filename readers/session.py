"""One trajectory over one video: calls are read strictly, run, counted and kept.

::

    session = Session(catalog, "film.mp4", "Who opens the door?")
    session.call("ClipSearch", {"query": "a door opens"}).text
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic import ValidationError

from evicat.catalog.llm import TextModel
from evicat.catalog.query import Catalog
from evicat.readers.base import Arguments, CallError, Returned, Tool
from evicat.readers.tool import TOOLS
from evicat.readers.trace import Trace, TraceStep
from evicat.schemas.errors import EvicatError, UnreadableMediaError, UsageError, WindowError, first_line
from evicat.schemas.span import US

LONGEST_CALL: Final = 20_000
"""Characters of the arguments of a call."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may show.

    Raises:
        UsageError: a number of frames below 1.
    """

    inspect_frames: int = 50
    """Frames of all ranges of a FrameInspect together."""
    visual_frames: int = 64
    """Frames of all spans of a VisualInspect together (VideoSEAL)."""
    crop_sampler: Literal["fps", "cap"] = "fps"
    """``fps``: 1, 2, 4 frames a second, at most 96; ``cap``: at most 8, 16, 32 (Open-o3-Video-v2)."""
    width: int = 448
    """Pixels: width at most of a frame."""

    def __post_init__(self) -> None:
        for name in ("inspect_frames", "visual_frames", "width"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.crop_sampler not in ("fps", "cap"):
            raise UsageError(f"crop_sampler must be fps or cap, got {self.crop_sampler!r}")


class Session:
    """Calls over one video of a catalog.

    Args:
        llm: Asked by tools that observe or judge; left out: these return frames, or say that they need one.

    Raises:
        UnknownNameError: the catalog has no such video.
        UnreadableMediaError: its file could not be read when it was indexed.
    """

    def __init__(
        self,
        catalog: Catalog,
        video: str,
        question: str = "",
        llm: TextModel | None = None,
        limits: Limits | None = None,
    ) -> None:
        ids = catalog.asset_ids(video)
        asset = next((found for found in map(catalog.asset, ids) if found), None)
        if asset is None:
            raise UnreadableMediaError(f"the file of {video} could not be read when it was indexed")
        self.catalog, self.video, self.question, self.llm = catalog, video, question, llm
        self.limits = limits or Limits()
        self.duration_s = asset.duration_us / US
        self.returned: Returned | None = None
        """What the last call returned, with its pictures; None where it failed."""
        self.trace_id = uuid.uuid4().hex
        self._steps: list[TraceStep] = []

    @property
    def trace(self) -> Trace:
        """All calls so far."""
        return Trace(
            trace_id=self.trace_id,
            catalog=self.catalog.uri,
            version=self.catalog.version,
            view=self.catalog.view_name,
            video=self.video,
            question=self.question,
            steps=tuple(self._steps),
        )

    def call(self, name: str, raw: str | dict[str, Any]) -> TraceStep:
        """Run one call; whatever is wrong with it is told in the step, and counts."""
        begun = time.monotonic()
        self.returned = None
        step = self._answered(TraceStep(len(self._steps), _shown(raw), str(name)[:200], valid=False), raw)
        step = replace(step, seconds=time.monotonic() - begun)
        self._steps.append(step)
        return step

    def _answered(self, step: TraceStep, raw: str | dict[str, Any]) -> TraceStep:
        try:
            tool, arguments = _understood(step.tool, raw)
        except CallError as error:
            return _failed(step, error)
        understood = replace(step, valid=True, arguments=arguments.model_dump(mode="json"))
        try:
            returned = tool.run(self, arguments)
        except CallError as error:
            return _failed(step, error)
        except EvicatError as error:
            return _failed(understood, error)
        self.returned = returned
        return replace(
            understood,
            entry_ids=returned.entry_ids,
            spans=returned.spans,
            frames=returned.frames,
            boundary=returned.boundary,
            tokens=returned.tokens,
            text=returned.text,
        )


def _failed(step: TraceStep, error: EvicatError) -> TraceStep:
    told = str(error)
    spent = (0, 0)
    if isinstance(error, WindowError):
        spent = (error.prompt_tokens, error.completion_tokens)
    return replace(step, error_class=type(error).__name__, error=told, text=told, tokens=spent)


def _shown(raw: object) -> str:
    """The arguments as a trace keeps them: at most :data:`LONGEST_CALL` characters, all of them in UTF-8."""
    try:
        text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(raw)
    return text[:LONGEST_CALL].encode("utf-8", "replace").decode()


def _understood(name: str, raw: object) -> tuple[Tool[Any], Arguments]:
    if name not in TOOLS:
        raise CallError(f"unknown tool {name!r}; known: {', '.join(sorted(TOOLS))}")
    tool = TOOLS[name]
    try:
        text = raw if isinstance(raw, str) else json.dumps(raw)
        if len(text) > LONGEST_CALL:
            raise CallError(f"{name}: {len(text)} characters of arguments; at most {LONGEST_CALL} are taken")
        json.loads(text, object_pairs_hook=_each_once)
        return tool, tool.Arguments.model_validate_json(text)
    except ValidationError as error:
        raise CallError(f"{name}: {_problems(error)}; arguments: {_known(tool)}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise CallError(
            f"{name}: not JSON ({first_line(error)}); give an object of: {_known(tool)}"
        ) from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _known(tool: Tool[Any]) -> str:
    return ", ".join(tool.Arguments.model_fields)


def _problems(error: ValidationError) -> str:
    told = error.errors(include_url=False, include_context=False)[:5]
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}, got {str(each['input'])[:80]!r}"
        for each in told
    )
