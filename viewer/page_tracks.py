"""The tracks of a page: which windows lie where on the timeline, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evicat.catalog.query import Catalog
from evicat.catalog.strips import PENDING
from evicat.schemas.entry import KINDS, OUTCOME_MEANINGS, Outcome

from .page_makers import Maker
from .page_places import placeless
from .page_words import scale_label

MEANINGS = {outcome.value: text for outcome, text in OUTCOME_MEANINGS.items()} | {
    PENDING: "no run has come to it yet, or none was asked to"
}
"""Every state of a stretch of a track, and what it means."""
SCREEN_TEXT = "screen text"
BOXES = "boxes"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time of a track that holds no plain entry: what became of it, and why."""

    start_s: float
    end_s: float
    outcome: str
    error_class: str = ""
    message: str = ""
    windows: int = 1
    """So many neighbouring windows that ended alike."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on a track that stands for a part of an entry of another one. ``entry``: its index."""

    start_s: float
    end_s: float
    entry: int
    text: str


@dataclass(frozen=True, slots=True)
class Track:
    """A line on the timeline. ``maker``: index of its producer; None where it is drawn from others."""

    name: str
    label: str
    kind: str
    maker: int | None = None
    note: str = ""
    stretches: tuple[Stretch, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of one producer and asset in time order."""

    rows: Sequence[dict[str, Any]]
    duration_s: float
    stretches: tuple[Stretch, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stretches", tuple(_joined(self._found())))

    def _found(self) -> Iterator[Stretch]:
        reached = 0.0
        for row in self.rows:
            if row["start_s"] > reached:
                yield Stretch(reached, row["start_s"], PENDING)
            if row["outcome"] != Outcome.DONE.value:
                told = (row["outcome"], row["error_class"], row["message"])
                yield Stretch(row["start_s"], row["end_s"], *told)
            reached = max(reached, row["end_s"])
        if self.duration_s > reached:
            yield Stretch(reached, self.duration_s, PENDING)


def _joined(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Neighbours that ended alike as one."""
    last: Stretch | None = None
    for each in stretches:
        if last and last.end_s == each.start_s and _why(last) == _why(each):
            last = Stretch(last.start_s, each.end_s, *_why(each), windows=last.windows + 1)
            continue
        if last:
            yield last
        last = each
    if last:
        yield last


def _why(stretch: Stretch) -> tuple[str, str, str]:
    return stretch.outcome, stretch.error_class, stretch.message


def made_tracks(
    catalog: Catalog, asset_id: str, makers: Sequence[Maker], duration_s: float
) -> tuple[Track, ...]:
    """One track for each producer of entries that the view shows, without those that would need a picture."""
    asset = catalog.asset(asset_id)
    is_blind = asset is not None and asset.video is None
    clean = placeless(catalog)
    windows: dict[str, list[dict[str, Any]]] = {}
    for row in catalog.coverage(asset_id).to_dicts():
        row["message"] = clean(row["message"])
        windows.setdefault(row["producer_id"], []).append(row)
    return tuple(
        Track(
            name=f"{each.scale}.{each.producer_id[:8]}",
            label=each.label,
            kind=each.kind,
            maker=index,
            note=each.component,
            stretches=Windows(windows.get(each.producer_id, ()), duration_s).stretches,
        )
        for index, each in enumerate(makers)
        if each.is_shown and each.kind in KINDS
        if not (is_blind and each.sees) or each.producer_id in windows
    )


def sound_track(speech: Track) -> Track:
    """Other sounds that a producer of speech heard, beside what is said."""
    return Track(f"sound.{speech.name}", scale_label("sound", ""), "sound", speech.maker, speech.note)


def drawn_tracks(rows: Sequence[dict[str, Any]], texts: Sequence[tuple[str, ...]]) -> Iterator[Track]:
    """Where entries have read text on the screen, and where they have boxes. ``texts``: of each entry."""
    read = tuple(
        Mark(row["start_s"], row["end_s"], index, " · ".join(told))
        for index, (row, told) in enumerate(zip(rows, texts, strict=True))
        if told
    )
    if read:
        yield Track(SCREEN_TEXT, "Screen text", SCREEN_TEXT, note="from local entries", marks=read)
    boxed = tuple(mark for index, row in enumerate(rows) for mark in _boxed(index, row))
    if boxed:
        yield Track(BOXES, "Boxes", BOXES, note="one tick a frame", marks=boxed)


def _boxed(index: int, row: dict[str, Any]) -> Iterator[Mark]:
    times: dict[float, list[str]] = {}
    for box in row["objects"]:
        times.setdefault(box["time_s"], []).append(box["name"])
    for time_s, names in sorted(times.items()):
        yield Mark(time_s, time_s, index, " · ".join(names))
