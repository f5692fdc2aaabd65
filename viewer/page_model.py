"""What the page of one video shows, as values."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from evicat.schemas.entry import FLAGS, ROLES

from .page_makers import Maker
from .page_tracks import MEANINGS, Track
from .page_words import Pairs, Word


@dataclass(frozen=True, slots=True)
class PageFrame:
    """A frame that was really shown."""

    pts: int
    time_s: float


@dataclass(frozen=True, slots=True)
class PageBox:
    """A box in 1000 x 1000 of the frame at ``time_s``."""

    time_s: float
    name: str
    x1: float
    y1: float
    x2: float
    y2: float
    confidence: float | None
    source: str


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One entry. ``track`` and ``made_from`` are indexes."""

    entry_id: str
    track: int
    start_s: float
    end_s: float
    text: str
    speaker: str | None
    language: str | None
    flags: tuple[str, ...]
    factors: tuple[str, ...]
    record: Pairs
    words: tuple[Word, ...]
    frames: tuple[PageFrame, ...]
    boxes: tuple[PageBox, ...]
    time_base: str
    shown_width: int | None
    shown_height: int | None
    made_from: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PageLink:
    """What a sentence rests on: an entry's id, and its index where the view shows it."""

    entry_id: str
    entry: int | None
    start_s: float
    end_s: float
    kind: str
    score: float


@dataclass(frozen=True, slots=True)
class PageSentence:
    """One sentence of the narrative with the index ``entry``."""

    entry: int
    text: str
    role: str
    rests_on: tuple[PageLink, ...]


@dataclass(frozen=True, slots=True)
class VideoPage:
    """The page of one video. Entries stand in the order of their start, long ones first."""

    video: str
    names: tuple[str, ...]
    asset_id: str
    duration_s: float
    width: int | None
    height: int | None
    facts: tuple[str, ...]
    """Of the file, for people: length, size of the picture, codecs."""
    problems: tuple[str, ...]
    """What is wrong with the file, in sentences."""
    catalog: str
    """Name of the catalog, without the folders that it lies in."""
    head: int
    written: str
    snapshot: str | None
    view: str
    makers: tuple[Maker, ...]
    tracks: tuple[Track, ...]
    entries: tuple[PageEntry, ...]
    sentences: tuple[PageSentence, ...]

    @property
    def state(self) -> str:
        """Which state of the catalog this is, in words."""
        named = f", opened as {self.snapshot}" if self.snapshot and self.snapshot != str(self.head) else ""
        return f"{self.catalog} at head {self.head}{named}, view {self.view}"

    def as_json(self) -> dict[str, Any]:
        """What ``page.js`` reads: values without what is empty, and the words that explain them."""
        meanings = {"flags": FLAGS, "roles": dict(ROLES), "outcomes": MEANINGS}
        made: dict[str, Any] = _compact(self)
        return made | {"state": self.state, "meanings": meanings}


def _compact(value: Any) -> Any:
    """Dataclasses as objects without fields that are None or empty; zero and false stay."""
    if is_dataclass(value):
        items = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: _compact(item) for name, item in items if item not in (None, "", ())}
    if isinstance(value, tuple):
        return [_compact(item) for item in value]
    return value
