"""The interface of engines. A new one also gets a line in ``loaders.py``; the contract test runs it."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from evicat.schemas.errors import RequestError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

if TYPE_CHECKING:
    from PIL.Image import Image

FinishReason = Literal["stop", "length", "refused"]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """One image of a prompt, as a JPEG file of ``width`` x ``height`` pixels."""

    jpeg: bytes = field(repr=False)
    width: int
    height: int

    def decoded(self) -> Image:
        """Its pixels, RGB, for libraries that take pictures as Pillow's.

        Raises:
            RequestError: it is no picture, or is broken.
        """
        from PIL import Image

        try:
            return Image.open(io.BytesIO(self.jpeg)).convert("RGB")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise RequestError(f"a picture of {len(self.jpeg)} bytes cannot be read: {error}") from None


@dataclass(frozen=True, slots=True, eq=False)
class ChatRequest:
    """One question to a chat model. What all windows have in common comes first, for prefix caches."""

    system: str
    parts: tuple[str | Picture, ...]
    """The user's turn: texts and images in their order."""
    max_tokens: int
    temperature: float = 0.0
    schema: dict[str, Any] | None = None
    """JSON schema that the answer must follow; None: free text."""
    seed: int | None = None

    @property
    def pictures(self) -> list[Picture]:
        return [part for part in self.parts if isinstance(part, Picture)]

    @property
    def texts(self) -> list[str]:
        return [self.system, *(part for part in self.parts if isinstance(part, str))]


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What the model said, how it ended, and what it took."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    model: str
    """What the engine says it ran."""


class Engine(ABC):
    """Runs one model. One engine serves all threads; it is opened once per process and model.

    ``where`` is how ``profile`` runs the model; ``model`` is what the recipe names. Nothing is loaded and
    nothing is sent before the first :meth:`submit` or :meth:`check`.
    """

    name: ClassVar[str]

    def __init__(self, model: ModelRef, where: ModelProfile, profile: Profile) -> None:
        self.model = model
        self.where = where
        self.profile = profile

    @property
    def slots(self) -> int:
        """How many requests it takes at once; more wait inside it."""
        return self.where.concurrency

    @property
    def runs(self) -> ModelRef:
        """What really answers, as producers name it: the recipe's model, unless no model is run at all."""
        return self.model

    def answer_tokens(self, schema: dict[str, Any]) -> float | None:
        """How many tokens an answer of this schema has as a rule, where the engine can tell beforehand.

        For plans; None: only a run can tell, as of every real model.
        """
        return None

    @abstractmethod
    def check(self, request: ChatRequest) -> None:
        """Make sure that the model is there, is the one that the recipe names, and takes such requests.

        Sends ``request``, so that a schema or an image that it cannot take is known at the start.

        Raises:
            EngineDownError: it cannot be reached or loaded.
            UsageError: another model answers, or it refuses what the recipe needs; says what to do.
        """

    @abstractmethod
    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        """Ask; the future ends when the model has answered. Cancelling it stops what has not begun.

        What may pass (overload, a lost connection) is tried again inside. The future raises:

        - ``TooLongError``: the prompt is too long or holds too many images; a shorter one may be answered;
        - ``RequestError``: this request is refused for what else it is;
        - ``EngineDownError``: nothing can be asked any more;
        - ``UsageError``: another model answers than the recipe names.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections, threads and memory; what is still asked is cancelled."""
