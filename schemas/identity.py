"""Who made what from what: producers and units, identified by content."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from .model import Model, content_hash


class ModelRef(Model):
    """A model by its canonical name, and the digest of its weights where that is known.

    Where the digest is known it alone is hashed: a copy of the same weights from elsewhere is the same.
    """

    name: str
    revision: str = ""
    digest: str = ""
    quantization: str = ""

    def identity(self) -> dict[str, str]:
        if self.digest:
            return {"digest": self.digest, "quantization": self.quantization}
        return {"name": self.name, "revision": self.revision, "quantization": self.quantization}


class Producer(Model):
    """Everything that changes an output by design; ``producer_id`` is its hash.

    ``version`` is bumped by hand when a component's output changes by design; a release of the package
    does not change it. ``options`` holds prompt, schema, sampling, frame options and window policy.
    """

    kind: str
    scale: str
    component: str
    version: int
    model: ModelRef | None = None
    options: dict[str, Any] = {}
    reads: tuple[str, ...] = ()
    """``producer_id`` of every producer whose entries this one reads."""

    @cached_property
    def producer_id(self) -> str:
        facts = self.model_dump(exclude={"model"})  # as it is: JSON would give a set any order
        return content_hash(facts | {"model": self.model.identity() if self.model else None})


class Unit(Model):
    """Asset x producer x condition: what is planned, claimed, resumed and replaced."""

    asset_id: str
    producer_id: str
    kind: str
    scale: str
    condition_id: str = ""
    inputs_hash: str = ""
    """Hash of what the unit reads beside the asset's bytes: side-car subtitles, choice of track."""

    @cached_property
    def unit_id(self) -> str:
        return content_hash([self.asset_id, self.producer_id, self.condition_id])


def entry_id(unit: Unit, start_us: int, ordinal: int) -> str:
    """Deterministic id of an entry, sorting in time: ``asset.producer[.condition].scale.start.ordinal``."""
    condition = f".{unit.condition_id[:8]}" if unit.condition_id else ""
    return (
        f"{unit.asset_id[:12]}.{unit.producer_id[:8]}{condition}.{unit.scale}.{start_us:014d}.{ordinal:02d}"
    )
