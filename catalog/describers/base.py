"""The interface of describers. A new one also gets a line in ``loaders.py``; the contract test runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from evicat.catalog.media.frame import Frame
from evicat.schemas.entry import Entry
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile
from evicat.schemas.records import CastMember, LocalRecord, NarrativeRecord, ObjectsRecord, SpeechSegment
from evicat.schemas.span import Span

if TYPE_CHECKING:
    from evicat.catalog.engines.base import Engine

Reads = Literal["frames", "speech", "local", "past"]
OptionsT = TypeVar("OptionsT", bound=Model)


@dataclass(frozen=True, slots=True)
class Past:
    """What a narrative knows of the windows before it."""

    span: Span
    """Window of the last narrative; it ends before this window begins where windows between have none."""
    narrative: str
    cast: tuple[CastMember, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowInput:
    """What a describer may know of a window; only what its ``reads`` names is filled in.

    ``frames`` are in time order and lie in ``span``; ``speech`` and ``entries`` overlap it, in time order.
    File names, titles and manifest texts are never among it.
    """

    span: Span
    frames: tuple[Frame, ...] = ()
    speech: tuple[SpeechSegment, ...] = ()
    entries: tuple[Entry, ...] = ()
    past: Past | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """A record and the text made from it; ``record`` is None where there is nothing to write."""

    record: LocalRecord | NarrativeRecord | ObjectsRecord | None
    text: str = ""
    flags: tuple[str, ...] = ()
    message: str = ""
    """What the ledger should tell of it, such as what was dropped of the answer."""
    shown: tuple[Frame, ...] | None = None
    """Frames that were really shown, as they were; None: all of the window's."""
    is_partial: bool = False
    """Whether a part of the window was not looked at."""
    attempts: int = 1
    further_calls: int = 0
    """Calls of models beside the attempts at this description, such as those that check boxes."""
    prompt_tokens: int = 0
    """Of all calls together, and so are the next."""
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Expected:
    """What describing is going to take, as told before anything is decoded or asked."""

    frames: float = 0
    """Frames that are shown."""
    prompt_tokens: float = 0
    output_tokens: float = 0


class Describer(ABC, Generic[OptionsT]):
    """Turns one window into a record. Required: the class facts and :meth:`describe`.

    A describer is loaded once per process. It is called from one thread at a time, unless it says with
    :attr:`slots` that it serves several.
    """

    component: ClassVar[str]
    version: ClassVar[int]
    """Bumped by hand when the output changes by design."""
    kind: ClassVar[Literal["local", "narrative", "objects"]]
    reads: frozenset[Reads]
    """The class says what it reads by default; options of an instance may add to it."""
    options_class: ClassVar[type[Model]]
    frames_per_window: int = 0
    """How many frames its scale takes of a window; set when it is loaded."""

    def __init__(self, options: OptionsT, profile: Profile) -> None:
        self.options = options
        self.profile = profile

    @property
    def model(self) -> ModelRef | None:
        """The model behind it; None where there is none. Must not load weights."""
        return None

    def facts(self) -> dict[str, Any]:
        """What of it goes into the producer beside component, version and model."""
        return self.options.model_dump(mode="json")

    @property
    def served_by(self) -> object:
        """What the windows wait for: describers that share it share its slots."""
        return self

    @property
    def slots(self) -> int:
        """How many windows it takes at once, each from a thread of its own; 1: it is called by one thread."""
        return 1

    def check(self) -> None:
        """Make sure at the start of a run that it can work.

        Raises:
            UsageError: it cannot; says what to do.
            EngineDownError: what it needs is out of reach.
        """

    def bind(self, engines: Callable[[ModelRef], Engine]) -> None:
        """Take the engine of :attr:`model`, where one is needed; opening it loads nothing.

        Raises:
            UsageError: the profile does not say how to run the model.
        """

    def prepare(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """What of a window's frames to hold until it is its turn."""
        return frames

    def expected(self, window: WindowInput) -> Expected:
        """What :meth:`describe` is going to take for a window like this one.

        Its frames have their sizes and no pixels, its speech has the length of what is said there, and a past
        is not known. Must not ask a model or load weights. One that asks no model takes no tokens.
        """
        return Expected(frames=len(window.frames))

    @abstractmethod
    def describe(self, window: WindowInput) -> Description:
        """Describe one window.

        Raises:
            WindowError: no answer for this window; the message goes to the ledger, never into an entry.
        """
