"""Boxes around objects: from a model's own coordinates to ours, the rules that they keep, and boxes as text.

Ours are 1000 x 1000 of the displayed picture, ``[x1, y1, x2, y2]`` from its top left corner. The rules are
those of Open-o3-Video: a box over 80 % of the picture says nothing of where, and of each name in a window the
two boxes with the highest confidence stay.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pydantic import ValidationError

from evicat.schemas.recipe import problem
from evicat.schemas.records import ObjectBox

Coordinates = Literal["pixels", "thousand", "thousand-yx"]
"""How a model counts. ``pixels``: of the picture as its own processor scaled it (Qwen2.5-VL); ``thousand``: 0
to 1000 both ways (Qwen3-VL, InternVL); ``thousand-yx``: the same as ``[y1, x1, y2, x2]`` (Gemini)."""
Corners = tuple[float, float, float, float]
"""``x1, y1, x2, y2``."""

SIDE: Final = 1000
MAX_SHARE: Final = 0.8
"""Of the picture: a larger box is dropped."""
PER_NAME: Final = 2
"""Boxes of one name that a window keeps."""
SLACK: Final = 20
"""Of 1000: a box that sticks out so far is cut at the picture's edge; further out it is outside."""
SAME_OBJECT: Final = 0.7
"""Intersection over union from which on two boxes of one name in one frame are of one object."""

Reason = Literal["outside", "reversed", "untimed", "large", "surplus", "refused", "unanswered"]
REASONS: Final[dict[Reason, str]] = {
    "outside": "outside the frame",
    "reversed": "reversed or empty",
    "untimed": "of no frame's time",
    "large": f"over {MAX_SHARE:.0%} of the frame",
    "surplus": f"beyond the {PER_NAME} best of their name",
    "refused": "not what they are called, by their crop",
    "unanswered": "with no answer about their crop",
}
"""Why a box is not kept, as the ledger tells it."""
BROKEN: Final[frozenset[Reason]] = frozenset({"outside", "reversed", "untimed"})
"""Reasons that the entry is flagged for: whoever named such a box was mistaken about the frames."""
Dropped = Counter[Reason]


@dataclass(frozen=True, slots=True)
class Found:
    """A box as it was found, in 1000 x 1000 of the displayed picture; nothing of it is checked."""

    time_s: float
    """Time of the frame that it was found in."""
    name: str
    corners: Corners
    confidence: float | None = None


class Placed(NamedTuple):
    """Where in a picture that a model was shown the displayed picture lies, in pixels."""

    left: float
    top: float
    width: float
    height: float


def to_thousand(
    corners: Sequence[float], coordinates: Coordinates, seen: tuple[int, int], at: Placed
) -> Corners:
    """The corners that a model named, in 1000 x 1000 of the displayed picture.

    Args:
        corners: Four numbers in the model's own order and unit.
        seen: Width and height, in pixels, of what the model looked at after its processor scaled it; for
            coordinates that do not count pixels any size that ``at`` is measured in.
        at: Where the displayed picture lies in that: it may have been padded.
    """
    first, second, third, fourth = corners
    x1, y1, x2, y2 = (second, first, fourth, third) if coordinates == "thousand-yx" else tuple(corners)
    across, down = (1.0, 1.0) if coordinates == "pixels" else (seen[0] / SIDE, seen[1] / SIDE)
    return (
        (x1 * across - at.left) * SIDE / at.width,
        (y1 * down - at.top) * SIDE / at.height,
        (x2 * across - at.left) * SIDE / at.width,
        (y2 * down - at.top) * SIDE / at.height,
    )


def clean(found: Iterable[Found], source: str) -> tuple[list[ObjectBox], Dropped]:
    """Boxes that can be: inside the picture, not reversed, not over nearly all of it; what was dropped."""
    boxes: list[ObjectBox] = []
    dropped: Dropped = Counter()
    for each in found:
        checked = _checked(each, source)
        if isinstance(checked, ObjectBox):
            boxes.append(checked)
        else:
            dropped[checked] += 1
    return boxes, dropped


def _checked(found: Found, source: str) -> ObjectBox | Reason:
    if not all(map(math.isfinite, found.corners)):
        return "outside"
    x1, y1, x2, y2 = found.corners
    if x2 <= x1 or y2 <= y1:
        return "reversed"
    if min(x1, y1) < -SLACK or max(x2, y2) > SIDE + SLACK:
        return "outside"
    left, top, right, bottom = (round(min(max(value, 0.0), float(SIDE)), 1) for value in found.corners)
    if right <= left or bottom <= top:
        return "reversed" if x1 > 0 and y1 > 0 and x2 < SIDE and y2 < SIDE else "outside"
    if (right - left) * (bottom - top) > MAX_SHARE * SIDE**2:
        return "large"
    return ObjectBox(
        time_s=found.time_s,
        name=found.name,
        x1=left,
        y1=top,
        x2=right,
        y2=bottom,
        confidence=None if found.confidence is None else round(found.confidence, 3),
        source=source,
    )


def keep(boxes: Iterable[ObjectBox]) -> tuple[list[ObjectBox], Dropped]:
    """The best boxes of each name, in order of time; of two around one object in one frame only the better.

    The best have the highest confidence; among equal ones, and where none is known, those that came first.
    """
    kept: dict[str, list[ObjectBox]] = {}
    dropped: Dropped = Counter()
    for box in sorted(boxes, key=lambda box: -(box.confidence or 0.0)):
        same = kept.setdefault(box.name.casefold(), [])
        if any(one.time_s == box.time_s and overlap(one, box) >= SAME_OBJECT for one in same):
            continue
        if len(same) < PER_NAME:
            same.append(box)
        else:
            dropped["surplus"] += 1
    best = [box for same in kept.values() for box in same]
    return sorted(best, key=lambda box: (box.time_s, box.y1, box.x1, box.name)), dropped


def overlap(one: ObjectBox, other: ObjectBox) -> float:
    """Intersection over union of two boxes."""
    width = min(one.x2, other.x2) - max(one.x1, other.x1)
    height = min(one.y2, other.y2) - max(one.y1, other.y1)
    both = max(0.0, width) * max(0.0, height)
    return both / (_area(one) + _area(other) - both)


def _area(box: ObjectBox) -> float:
    return (box.x2 - box.x1) * (box.y2 - box.y1)


def broken_flags(dropped: Dropped) -> tuple[str, ...]:
    """The flag of an entry some of whose boxes could not be."""
    return ("boxes_dropped",) if any(dropped[reason] for reason in BROKEN) else ()


def dropped_note(dropped: Dropped) -> str:
    """``3 boxes dropped: 2 outside the frame, 1 reversed or empty``; empty where none was."""
    if not dropped.total():
        return ""
    told = ", ".join(f"{dropped[reason]} {text}" for reason, text in REASONS.items() if dropped[reason])
    return f"{dropped.total()} {'box' if dropped.total() == 1 else 'boxes'} dropped: {told}"


_CLAIM: Final = re.compile(
    r"<obj>(?P<name>.*?)</obj>\s*<box>\s*\[(?P<box>[^\[\]]*)\]\s*</box>\s*at\s*<t>(?P<time>[^<]*)</t>\s*s\b",
    re.DOTALL,
)
_TAG: Final = re.compile(r"</?(?:obj|box|t)>")
_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class Parsed:
    """Boxes that a text names, in its order, and what of its tags could not be read, with why."""

    boxes: tuple[ObjectBox, ...]
    unread: tuple[str, ...]


def render(boxes: Iterable[ObjectBox]) -> str:
    """``<obj>a red mug</obj><box>[120,40,310.5,200]</box>at<t>12.4</t>s``, each on a line of its own.

    Names are escaped as in HTML. Confidence and source are not told.
    """
    return "\n".join(map(_rendered, boxes))


def _rendered(box: ObjectBox) -> str:
    corners = ",".join(map(_number, (box.x1, box.y1, box.x2, box.y2)))
    name = html.escape(box.name, quote=False)
    return f"<obj>{name}</obj><box>[{corners}]</box>at<t>{_number(box.time_s)}</t>s"


def _number(value: float) -> str:
    """The shortest text that is read as the same number."""
    return repr(value).removesuffix(".0")


def parse(text: str) -> Parsed:
    """Boxes that :func:`render` or a model wrote into a text; blanks and words between them do not matter."""
    boxes: list[ObjectBox] = []
    unread: list[str] = []
    end = 0
    for part in _claims(text):
        unread += _stray(text[end : part.start()])
        end = part.end()
        try:
            boxes.append(_read(part))
        except ValidationError as error:
            unread.append(f"{_shown(part[0])}: {problem(error.errors()[0]).strip()}")
        except ValueError as error:
            unread.append(f"{_shown(part[0])}: {error}")
    return Parsed(tuple(boxes), tuple(unread + _stray(text[end:])))


def _claims(text: str) -> Iterable[re.Match[str]]:
    """Whole claims; one that is cut short does not take the next one with it."""
    at = 0
    while found := _CLAIM.search(text, at):
        inner = found[0].rfind("<obj>")
        if inner > 0:
            at = found.start() + inner
            continue
        yield found
        at = found.end()


def _read(part: re.Match[str]) -> ObjectBox:
    numbers = [float(number) for number in part["box"].split(",")]
    time_s = float(part["time"])
    if len(numbers) != 4:
        raise ValueError(f"a box has four numbers, not {len(numbers)}")
    if not math.isfinite(time_s):
        raise ValueError(f"{part['time']} is no time")
    x1, y1, x2, y2 = numbers
    return ObjectBox(time_s=time_s, name=html.unescape(part["name"]), x1=x1, y1=y1, x2=x2, y2=y2)


def _stray(text: str) -> list[str]:
    """What lies between whole claims, where it holds a tag: one item for each ``<obj>`` that begins."""
    if not _TAG.search(text):
        return []
    pieces = [piece[_first_tag(piece) :] for piece in re.split(r"(?=<obj>)", text) if _TAG.search(piece)]
    return [f"{_shown(piece)}: not <obj>..</obj><box>[..]</box>at<t>..</t>s" for piece in pieces]


def _first_tag(text: str) -> int:
    found = _TAG.search(text)
    return found.start() if found else 0


def _shown(text: str) -> str:
    bare = " ".join(text.split())
    return bare if len(bare) <= _SHOWN_CHARACTERS else f"{bare[:_SHOWN_CHARACTERS]}..."
