"""The interface of describers. A new one also gets a line in ``loaders.py``; the contract test runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from evicat.catalog.media.frame import Frame
from evicat.schemas.entry import Entry
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile
from evicat.schemas.records import LocalRecord, NarrativeRecord, SpeechSegment
from evicat.schemas.span import Span

Reads = Literal["frames", "speech", "local"]
OptionsT = TypeVar("OptionsT", bound=Model)


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


@dataclass(frozen=True, slots=True)
class Description:
    """A record and the text made from it; ``record`` is None where there is nothing to write."""

    record: LocalRecord | NarrativeRecord | None
    text: str = ""
    flags: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Describer(ABC, Generic[OptionsT]):
    """Turns one window into a record. Required: the class facts and :meth:`describe`.

    A describer is loaded once per process and called from one thread at a time.
    """

    component: ClassVar[str]
    version: ClassVar[int]
    """Bumped by hand when the output changes by design."""
    kind: ClassVar[Literal["local", "narrative"]]
    reads: ClassVar[frozenset[Reads]]
    options_class: ClassVar[type[Model]]

    def __init__(self, options: OptionsT, profile: Profile) -> None:
        self.options = options
        self.profile = profile

    @property
    def model(self) -> ModelRef | None:
        """The model behind it; None where there is none. Must not load weights."""
        return None

    @abstractmethod
    def describe(self, window: WindowInput) -> Description:
        """Describe one window.

        Raises:
            WindowError: no answer for this window; the message goes to the ledger, never into an entry.
        """

    def describe_many(self, windows: list[WindowInput]) -> list[Description]:
        """Describe several windows; the default does one after another."""
        return [self.describe(window) for window in windows]
