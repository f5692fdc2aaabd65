"""Decoders by name. A new one is a file beside this one and a line here; the contract test runs it.

A decoder is a generator function ``decode(path, asset, selection)``. It brings the frames of the asset's
picture stream to the selection in time order, at least those that some wanted instant takes, yields what the
selection has complete and None as a sign of life, and ends with ``selection.end()`` or when all is settled.
Same PTS, same picture, whichever decoder; frames before second 0 or beyond the asset's end are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from evicat.schemas.asset import Asset
from evicat.schemas.errors import MissingExtraError, UnknownNameError

if TYPE_CHECKING:
    from .frames import Found, Selection

Decode = Callable[[Path, Asset, "Selection"], Iterator["Found | None"]]


def _pyav() -> Decode:
    from .pyav_decoder import decode

    return decode


def _decord() -> Decode:
    if find_spec("decord") is None:
        raise MissingExtraError("decord", "decord")
    from .decord_decoder import decode

    return decode


DECODERS: dict[str, Callable[[], Decode]] = {"pyav": _pyav, "decord": _decord}


def load_decoder(name: str) -> Decode:
    """The decoder of this name.

    Raises:
        UnknownNameError: no decoder has this name.
        MissingExtraError: its package is not installed.
    """
    if name not in DECODERS:
        raise UnknownNameError("decoder", name, list(DECODERS))
    return DECODERS[name]()
