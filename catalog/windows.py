"""The windows of a scale: a grid that is known beforehand, or shots that a pass over the pictures finds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

from evicat.catalog.media.frames import ShotsWanted
from evicat.catalog.media.shots import DETECTOR, LOOK_WIDTH, SHOTS_VERSION, THRESHOLD
from evicat.schemas.recipe import Scale
from evicat.schemas.span import Span


def policy_facts(scale: Scale) -> dict[str, Any]:
    """What of the windows goes into the producer."""
    if scale.policy == "grid":
        return {"window_us": scale.window_us}
    facts = {"detector": DETECTOR, "version": SHOTS_VERSION, "threshold": THRESHOLD}
    facts |= {"rate": "every frame", "look_width": LOOK_WIDTH}
    return {"shots": facts | {"min_us": scale.min_us, "max_us": scale.max_us}}


def shots_wanted(scale: Scale) -> ShotsWanted | None:
    """What a pass must know to find the windows of ``scale``; None: they are a grid."""
    if scale.policy == "grid" or scale.frames is None:
        return None
    return ShotsWanted(scale.min_us, scale.max_us, scale.frames.per_window, scale.frames.max_width)


def tiles(whole: Span, known: Collection[Span]) -> list[Span]:
    """``whole`` as the known windows divide it, in order: those that begin in it, and the gaps around them.

    Of known windows that overlap, the one that begins first is no window: it was given up with what the later
    ones are about, and that was made again since.
    """
    spans = sorted(known)
    lasting = [span for span, later in pairwise(spans) if span.end_us <= later.start_us]
    return list(_tiles(whole, lasting + spans[-1:]))


def _tiles(whole: Span, known: list[Span]) -> Iterator[Span]:
    end_us = whole.start_us
    for span in known:
        if span.end_us <= whole.start_us or span.start_us >= whole.end_us:
            continue
        if span.start_us > end_us:
            yield Span(end_us, span.start_us)
        if span.start_us >= whole.start_us:
            yield span
        end_us = span.end_us
    if end_us < whole.end_us:
        yield Span(end_us, whole.end_us)
