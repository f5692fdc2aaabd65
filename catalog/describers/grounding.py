"""Boxes in answers of chat models: asked for in their own coordinates, brought to those of the picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from evicat.catalog.answers import Answer
from evicat.catalog.boxes import Coordinates, Corners, Dropped, Found, Placed, clean, keep, to_thousand
from evicat.catalog.tokens import Family, FamilyName
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import US

from .packed import PackedFrame
from .shown_times import ShownTimes
from .words import one_line

SOURCE: Final = "vlm"
OF_FAMILY: Final[dict[FamilyName, Coordinates]] = {"qwen3-vl": "thousand", "qwen2.5-vl": "pixels"}
"""How the models of a family were trained to count."""
ASKED_AS: Final[dict[Coordinates, str]] = {
    "pixels": "`[x1, y1, x2, y2]`: left, top, right and bottom edge in pixels",
    "thousand": "`[x1, y1, x2, y2]`: left, top, right and bottom edge, from 0 to 1000 across and down it",
    "thousand-yx": "`[y1, x1, y2, x2]`: top, left, bottom and right edge, from 0 to 1000 down and across it",
}
"""How boxes are asked for, in the words of the prompt."""


class SeenBox(Answer):
    t: Annotated[str, Field(max_length=20)] | float
    """As it stands before a frame, or in seconds, on the clock of the frames."""
    name: Annotated[str, Field(min_length=1, max_length=160)]
    box: Annotated[list[float], Field(min_length=4, max_length=4)]


def read_boxes(
    items: Sequence[SeenBox],
    shown: Sequence[PackedFrame],
    times: ShownTimes,
    family: Family,
    coordinates: Coordinates,
) -> tuple[list[ObjectBox], Dropped]:
    """Boxes of an answer that keep the rules, at times of frames that were ``shown``; what was dropped."""
    frames = {frame.time_us: frame for frame in shown}
    untimed: Dropped = Counter()
    found = []
    for item in items:
        time_us, name = times.frame(item.t), one_line(item.name)
        if time_us is None or not name:
            untimed["untimed"] += 1
            continue
        corners = _corners(item.box, frames[time_us], family, coordinates)
        found.append(Found(time_us / US, name, corners))
    boxes, broken = clean(found, SOURCE)
    kept, surplus = keep(boxes)
    return kept, untimed + broken + surplus


def _corners(said: Sequence[float], frame: PackedFrame, family: Family, coordinates: Coordinates) -> Corners:
    """In 1000 x 1000 of the displayed picture, which may lie padded in the frame that was sent."""
    sent = frame.width, frame.height
    seen = family.processed(*sent) if coordinates == "pixels" else sent
    across, down = seen[0] / sent[0], seen[1] / sent[1]
    at = frame.inside
    placed = Placed(at.left * across, at.top * down, at.width * across, at.height * down)
    return to_thousand(said, coordinates, seen, placed)
