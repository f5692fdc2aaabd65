"""Where making hands over what it made. ``storage`` fulfils this; making knows nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .asset import Asset
from .entry import WindowResult
from .identity import Producer, Unit
from .naming import Root, VideoName


class Sink(Protocol):
    """Takes results one by one, durably. All methods may be called from several threads.

    ``write`` returns only when the result survives a crash. ``open`` says what is there already, whether
    committed, staged or only journalled, so that work is continued and never repeated.
    """

    def add_producer(self, producer: Producer) -> None:
        """Register what will write; idempotent."""

    def add_asset(self, asset: Asset) -> None:
        """Register the facts of an asset; idempotent."""

    def add_root(self, root: Root) -> None:
        """Register where files were found; idempotent."""

    def add_name(self, name: VideoName) -> None:
        """Register how an asset is called; it replaces an earlier row of the same root and name."""

    @property
    def retry(self) -> frozenset[str]:
        """What is made again though it has an outcome: see ``evicat.schemas.entry.RETRIES``."""

    def is_complete(self, unit: Unit) -> bool:
        """Whether nothing is left to make: results with the same ``inputs_hash`` tile the whole timeline,
        and none of them is to be retried."""

    def has(self, asset_id: str, inputs: Mapping[str, str]) -> bool:
        """:meth:`is_complete` of many units of an asset, whatever is to be retried. ``inputs`` holds the
        ``inputs_hash`` by ``producer_id``: so a library that is unchanged is looked through without a unit.
        """

    def open(self, unit: Unit) -> dict[int, WindowResult]:
        """Results of the unit so far that are not to be retried, by the start of their span in microseconds.

        Where the unit is stored under another ``inputs_hash``, those results are void: the answer is empty
        and the next results replace them all.
        """

    def results(self, unit: Unit) -> dict[int, WindowResult]:
        """As :meth:`open`, for reading only: claims nothing, and holds what was sealed."""

    def write(self, unit: Unit, result: WindowResult) -> None:
        """Append one result durably; it replaces an earlier one of the same span start."""

    def seal(self, unit: Unit) -> None:
        """A chunk (or the whole unit) is finished: stage what was written since the last seal."""

    def close(self, unit: Unit, *, complete: bool) -> None:
        """Seal and let go of the unit; ``complete``: its results tile the whole timeline of its asset."""
