"""The interface of taggers. A new one also gets a line in ``loaders.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from evicat.catalog.tagging.vocabulary import Factor
from evicat.schemas.identity import ModelRef, Producer
from evicat.storage.tables import TAG

FOUND_SCHEMA = pl.Schema(
    {
        "row": pl.Int64(),
        "factor": pl.Int64(),
        "verdict": pl.String(),
        "value": pl.String(),
        "confidence": pl.Float64(),
        "field": pl.String(),
        "text_begin": pl.Int32(),
        "text_end": pl.Int32(),
    }
)
"""What a tagger found: row of the entries, place of the factor, and the columns of a tag."""
ENTRY_COLUMNS = [
    *("entry_id", "unit_id", "asset_id", "producer_id", "kind", "start_s", "end_s"),
    *("text", "record", "flags"),
]
"""What taggers are given of entries."""


@dataclass(frozen=True)
class Found:
    """Tags and abstentions, schema :data:`FOUND_SCHEMA`, and what they took."""

    rows: pl.DataFrame
    attempts: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Tagger(ABC):
    """Says which entries carry which factors. Threads may share it.

    Required: the class facts, :meth:`facts` and :meth:`tag`.
    """

    component: ClassVar[str]
    version: ClassVar[int]
    """Bumped by hand when the same entries and factors begin to get other tags."""

    @abstractmethod
    def facts(self, factor: Factor) -> dict[str, Any]:
        """All that decides the tags of ``factor`` beside the entries; what it does not read is no part."""

    @abstractmethod
    def tag(self, entries: pl.DataFrame, factors: Sequence[Factor]) -> Found:
        """Tags of entries (columns :data:`ENTRY_COLUMNS`); kinds that a factor is not for may be among them.

        Raises:
            WindowError: there is no answer for these entries.
            EngineDownError, UsageError: nothing can be tagged any more.
        """

    @property
    def model(self) -> ModelRef | None:
        """The model behind it; None where there is none."""
        return None

    @property
    def entries_at_once(self) -> int | None:
        """How many entries one :meth:`tag` takes, of one factor; None: any number, of any factors."""
        return None

    @property
    def slots(self) -> int:
        """How many threads may call :meth:`tag` at the same time to good effect."""
        return 1

    @property
    def vectors_of(self) -> str:
        """The embedder whose vectors entries must have; empty: it reads none."""
        return ""

    def producer(self, factor: Factor, source: str | None = None) -> Producer:
        """Who makes the tags of ``factor`` on entries of ``source``; None: whatever they are of.

        A factor that is new or changed is another producer, and those of the others stay what they are.
        """
        options = {"kinds": sorted(factor.kinds), **self.facts(factor)}
        return Producer(
            kind=TAG,
            scale=factor.id,
            component=self.component,
            version=self.version,
            model=self.model,
            options=options,
            reads=() if source is None else (source,),
        )
