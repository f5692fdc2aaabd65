"""Views: what a reader is shown of a catalog. Whose entries, and of these which."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.span import US
from evicat.storage.rows import DEFAULT_VIEW

WITHOUT_NARRATIVE = "w/o narrative"
WITH_NARRATIVE = "+narrative"
CANDIDATES = 256
"""Subsets that are tried for a matched removal (ASSEMBLE, App. G)."""

Places = Mapping[tuple[str, str], str]
"""The producer of each kind and scale."""


@dataclass(frozen=True)
class View:
    """What is shown: the producers' entries, less those of :attr:`without`, or of these ``only`` some."""

    name: str
    places: Places
    only: frozenset[str] | None = None
    without: frozenset[str] = field(default=frozenset())

    @property
    def producers(self) -> set[str]:
        return set(self.places.values())

    def keeping(self, entry_ids: Collection[str]) -> View:
        """Of what is shown, only these."""
        kept = frozenset(entry_ids)
        return replace(self, only=kept if self.only is None else self.only & kept)

    def removing(self, entry_ids: Collection[str]) -> View:
        """What is shown, without these."""
        return replace(self, without=self.without | frozenset(entry_ids))


def named_view(name: str, stored: Mapping[str, Places], narratives: Places) -> View:
    """A view by its name: one that is stored, or one of the two that are made of the default one.

    Args:
        stored: Those of the catalog, ``default`` among them.
        narratives: The last producer of narratives at each scale.

    Raises:
        UnknownNameError: there is none of this name.
    """
    default = stored.get(DEFAULT_VIEW, {})
    if name in stored:
        return View(name, stored[name])
    if name == WITHOUT_NARRATIVE:
        return View(name, {place: made for place, made in default.items() if place[0] != "narrative"})
    if name == WITH_NARRATIVE:
        return View(name, {**narratives, **default})
    if name == DEFAULT_VIEW:
        return View(name, {})
    raise UnknownNameError(
        "view", name, [*sorted({*stored, DEFAULT_VIEW}), WITHOUT_NARRATIVE, WITH_NARRATIVE]
    )


def matched_removal(entries: pl.DataFrame, cited: Collection[str], *, seed: int) -> list[str]:
    """As many entries as are cited, chosen at random to be like them: what is removed as a control.

    Of 256 seeded subsets the one that comes nearest in union duration, total duration and length of text, the
    three relative differences added up (ASSEMBLE, App. G; the paper does not say how it adds them up). It may
    overlap with what is cited.

    Args:
        entries: ``entry_id, asset_id, start_s, end_s, text`` of everything shown, in one order.

    Raises:
        UsageError: nothing is cited, or an entry that is not shown.
    """
    ids = entries["entry_id"].to_list()
    unknown = sorted(set(cited) - set(ids))
    if unknown:
        raise UsageError(f"{unknown[0]} is cited, but this view does not show it ({len(unknown)} such)")
    if not cited:
        raise UsageError("no entry is cited: there is nothing to match")
    rows = list(entries.select("entry_id", "asset_id", "start_s", "end_s", "text").iter_rows())
    wanted = _measure([row for row in rows if row[0] in set(cited)])
    chooser = random.Random(seed)
    subsets = (chooser.sample(rows, len(set(cited))) for _ in range(CANDIDATES))
    best = min(subsets, key=lambda subset: _distance(_measure(subset), wanted))
    return sorted(row[0] for row in best)


_Row = tuple[str, str, float, float, str]


def _measure(rows: list[_Row]) -> tuple[float, float, float]:
    """Union duration and total duration in seconds, and characters."""
    total = sum(end - start for _, _, start, end, _ in rows)
    union, covered = 0.0, ("", 0.0)
    for _, asset, start, end, _ in sorted(rows, key=lambda row: (row[1], row[2])):
        begin = max(start, covered[1]) if covered[0] == asset else start
        if end > begin:
            union += end - begin
            covered = asset, end
    return union, total, float(sum(len(text) for *_, text in rows))


def _distance(found: tuple[float, ...], wanted: tuple[float, ...]) -> float:
    return sum(abs(a - b) / max(b, 1 / US) for a, b in zip(found, wanted, strict=True))
