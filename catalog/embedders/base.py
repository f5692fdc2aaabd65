"""The interface of embedders. A new one also gets a line in ``loaders.py``; the contract test runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import EmbedderOptions, Profile

Vectors = npt.NDArray[np.float32]
OptionsT = TypeVar("OptionsT", bound=Model)


class Embedder(ABC, Generic[OptionsT]):
    """Turns texts into vectors of length 1. Required: the class facts and the four members below.

    Loaded once per process, weights at the first call; called from one thread at a time.
    """

    component: ClassVar[str]
    version: ClassVar[int]
    """Bumped by hand when the output changes by design."""
    options_class: ClassVar[type[Model]]

    def __init__(self, embedder: EmbedderOptions, options: OptionsT, profile: Profile) -> None:
        self.embedder = embedder
        self.options = options
        self.profile = profile

    @property
    @abstractmethod
    def model(self) -> ModelRef:
        """The model behind it. Must not load weights."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of its vectors."""

    @abstractmethod
    def parts(self, text: str) -> list[str]:
        """``text`` cut into pieces that the model reads whole, in order, nothing left out.

        A text that fits is one part; a blank text has none.
        """

    @abstractmethod
    def embed(self, parts: list[str]) -> Vectors:
        """Vectors of documents: ``(len(parts), dimension)`` float32, each of length 1.

        A row that the model could not embed (not finite, or zero) is all NaN; the others stand.
        """

    @abstractmethod
    def embed_query(self, query: str) -> npt.NDArray[np.float32]:
        """Vector of a query: ``(dimension,)`` float32 of length 1.

        Raises:
            UsageError: the query is blank, or its vector is not finite or zero.
        """
