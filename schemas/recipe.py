"""Recipe: what to index with; it decides results. Profile: where and how fast; it never does."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from .errors import RecipeError
from .model import Model
from .span import US

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class FrameOptions(Model):
    """Which frames of a window are shown: their number, and the width that they are scaled down to."""

    per_window: int = Field(default=8, ge=1, le=512)
    max_width: int = Field(default=448, ge=16, le=8192)


class Scale(Model):
    """One window length with its purpose and who describes it."""

    kind: Literal["local", "narrative"]
    window_seconds: float = Field(ge=0.5, le=3600)
    describer: str
    frames: FrameOptions | None = None
    """Left out: the describer shows no frames (``digest``)."""
    options: dict[str, Any] = {}
    """Options of the describer; checked by its own options class."""

    @property
    def name(self) -> str:
        """``local-10s``: the scale as it stands in ids and tables."""
        return f"{self.kind}-{self.window_seconds:g}s".replace(".", "_")

    @property
    def window_us(self) -> int:
        return round(self.window_seconds * US)


class SpeechOptions(Model):
    """Where the words come from. ``first``: subtitles, else the transcriber; ``only``; ``never``."""

    subtitles: Literal["first", "only", "never"] = "first"
    languages: tuple[str, ...] = ()
    """Preferred subtitle and audio languages (BCP 47 or ISO 639), best first; empty: the file's default."""
    transcriber: str | None = None
    model: str = ""
    compute_type: str = "int8"
    language: str | None = None
    """Spoken language, where it is known for the whole library; None: detected."""
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_source(self) -> SpeechOptions:
        if self.subtitles == "only" and self.transcriber:
            raise ValueError(
                "subtitles = 'only' takes no transcriber; remove it or write subtitles = 'first'"
            )
        if self.subtitles == "never" and not self.transcriber:
            raise ValueError("subtitles = 'never' needs a transcriber")
        return self


class EmbedderOptions(Model):
    """What turns texts into vectors."""

    name: str
    model: str
    revision: str = ""
    options: dict[str, Any] = {}


class Recipe(Model):
    """Everything that decides what a catalog says about a video."""

    name: Name
    description: str = ""
    source: str = ""
    """Where its numbers come from: a paper's section, or ``chosen``."""
    scales: tuple[Scale, ...] = ()
    speech: SpeechOptions | None = None
    embedder: EmbedderOptions | None = None

    @model_validator(mode="after")
    def _makes_something(self) -> Recipe:
        if not self.scales and not self.speech:
            raise ValueError("a recipe needs at least one of [[scales]] and [speech]")
        names = [scale.name for scale in self.scales]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(
                f"two scales are called {twice.pop()!r}; one kind and window length can stand once"
            )
        return self


class Profile(Model):
    """Where and how fast a recipe runs on this machine. Nothing here changes a result."""

    videos_at_once: int = Field(default=2, ge=1, le=256)
    device: str = "cpu"
    threads: int = Field(default=0, ge=0)
    """Threads of the models on the CPU; 0: all cores."""
    decode_timeout_seconds: float = Field(default=60, gt=0)
    """A decoder that gives no sign of progress for this long is ended."""
    work_dir: str = ""
    """Local folder for journals; empty: inside a local catalog."""
    models: dict[str, str] = {}
    """Canonical model name of a recipe -> local folder that holds its weights."""


M = TypeVar("M", Recipe, Profile)


def parse_toml(kind: type[M], text: str, where: str | Path) -> M:
    """Check TOML text against ``Recipe`` or ``Profile``.

    Raises:
        RecipeError: not TOML, or a wrong, missing or unknown field; names the file, the field and the value.
    """
    what = kind.__name__.lower()
    try:
        return kind.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{what} {where} is not valid TOML: {error}") from None
    except ValidationError as error:
        problems = [problem(item) for item in error.errors()]
        raise RecipeError(f"{what} {where} does not fit:\n" + "\n".join(problems)) from None


def problem(item: Any) -> str:
    """One line on one of pydantic's errors: field, what is wrong, value."""
    field = ".".join(str(part) for part in item["loc"]) or "(all of it)"
    shown = "" if isinstance(item["input"], dict) else f", got {item['input']!r}"
    return f"  {field}: {item['msg'].removeprefix('Value error, ')}{shown}"
