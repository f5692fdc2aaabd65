"""What every tool is: a name, a description, arguments with a schema, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from evicat.catalog.media.frame import Frame
from evicat.schemas.errors import UsageError

if TYPE_CHECKING:
    from evicat.readers.session import Session

Seconds = Annotated[float, Field(allow_inf_nan=False)]
Words = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S")]
TopK = Annotated[int, Field(ge=1, le=100)]


class CallError(UsageError):
    """The call itself is wrong: it counts as not valid."""


class Arguments(BaseModel):
    """Arguments of a tool: nothing is converted, and nothing unknown is taken."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Range(Arguments):
    """Seconds of the video, ``start`` below ``end``."""

    start: Seconds
    end: Seconds


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool gives back. ``spans`` are seconds, ``frames`` PTS and seconds, ``tokens`` in and out."""

    text: str
    pictures: tuple[Frame, ...] = ()
    entry_ids: tuple[str, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    frames: tuple[tuple[int, float], ...] = ()
    boundary: str = "none"
    tokens: tuple[int, int] = (0, 0)


A = TypeVar("A", bound=Arguments)


class Tool(ABC, Generic[A]):
    """One tool. It keeps nothing between calls."""

    name: ClassVar[str]
    description: ClassVar[str]
    Arguments: ClassVar[type[Arguments]]

    @abstractmethod
    def run(self, session: Session, arguments: A) -> Returned:
        """Answer a call whose arguments fit.

        Raises:
            CallError: the arguments do not fit this video.
            EvicatError: there is no answer, through no fault of the call.
        """
