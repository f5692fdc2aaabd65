"""What the page of a whole library shows: its videos, what is made of each, and where there are gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, get_args

import polars as pl

from evicat.catalog.query import Catalog
from evicat.catalog.strips import MARKS, PENDING, strip
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import UnknownNameError
from evicat.storage.sql import sql_in
from evicat.storage.tables import DERIVED
from evicat.viewer.page_makers import place
from evicat.viewer.page_places import placeless
from evicat.viewer.page_words import scale_label

CELLS = 120
"""Equal parts of a video that a strip tells apart."""
BROKEN: Final = (Outcome.REFUSED.value, Outcome.FAILED.value)
Sort = Literal["name", "length", "entries", "failures"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Entries = Mapping[str, Mapping[str, int]]
"""By asset, how many entries of each kind there are."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring cells of one outcome: ``[start, end)``, counted from 0 to :data:`CELLS`."""

    start: int
    end: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Lane:
    """What became of the windows of one unit, along the video."""

    label: str
    """What the unit holds: ``Local 10 s``."""
    stretches: tuple[Stretch, ...]
    outcomes: Mapping[str, int]
    """How many windows have each outcome."""

    def words(self) -> str:
        """``Local 10 s: 12 done, 1 failed``."""
        told = [f"{count} {outcome.replace('_', ' ')}" for outcome, count in self.outcomes.items()]
        return f"{self.label}: {', '.join(told) or 'nothing made'}"


@dataclass(frozen=True, slots=True)
class LibraryRow:
    """One video name."""

    video: str
    asset_id: str
    duration_s: float | None
    status: str
    """``ok``, ``partial`` or ``failed``: whether its file could be used."""
    message: str
    """Why it could not, or not to its end; else empty."""
    missing_since: str | None
    lanes: tuple[Lane, ...]
    entries: Mapping[str, int]
    """By kind."""
    failures: int
    """Windows that failed or were refused."""
    is_unfinished: bool
    """Whether a unit of it has windows that no run has come to yet."""


@dataclass(frozen=True, slots=True)
class LibraryPage:
    """Some rows of a library, and the sums over all of it."""

    rows: tuple[LibraryRow, ...]
    matching: int
    """Videos that fit the filter, of which the rows are a part."""
    videos: int
    hours: float
    entries: Mapping[str, int]
    failures: int


@dataclass(frozen=True, slots=True)
class Library:
    """What all pages of a library read of a catalog: kept, it spares reading it again."""

    videos: pl.DataFrame
    """Every video name, missing files included."""
    units: pl.DataFrame
    """Those of the entries that the view shows."""
    entries: Entries

    @classmethod
    def read(cls, catalog: Catalog) -> Library:
        return cls(catalog.videos(missing=True), _shown_units(catalog), _shown_entries(catalog))


def library_page(
    catalog: Catalog,
    *,
    name: str = "",
    sort: Sort = "name",
    offset: int = 0,
    limit: int | None = None,
    library: Library | None = None,
) -> LibraryPage:
    """The videos whose name holds ``name`` in any case, in order, ``limit`` of them from ``offset`` on.

    Raises:
        UnknownNameError: they cannot be sorted so.
    """
    if sort not in SORTS:
        raise UnknownNameError("order", sort, list(SORTS))
    library = library or Library.read(catalog)
    videos, units = library.videos, library.units
    ordered = _ordered(_matching(videos, name), units, sort)
    part = ordered.slice(offset, limit)
    own = units.filter(pl.col("asset_id").is_in(part["asset_id"].unique().to_list()))
    lanes = _lanes(catalog, own, part)
    unfinished = own.filter(~pl.col("complete"))["asset_id"].to_list()
    return LibraryPage(
        rows=tuple(_row(row, lanes, library.entries, unfinished) for row in _cleaned(catalog, part)),
        matching=len(ordered),
        videos=len(videos),
        hours=float(videos.unique("asset_id")["duration_s"].sum() or 0) / 3600,
        entries=_sums(library.entries),
        failures=int(sum(units[outcome].sum() for outcome in BROKEN)),
    )


def _cleaned(catalog: Catalog, part: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows, whose messages name no folder."""
    clean = placeless(catalog)
    return [row | {"message": clean(row["message"] or "")} for row in part.to_dicts()]


def _row(
    row: dict[str, Any], lanes: Mapping[str, tuple[Lane, ...]], entries: Entries, unfinished: Sequence[str]
) -> LibraryRow:
    asset_id = row["asset_id"]
    return LibraryRow(
        video=row["video"],
        asset_id=asset_id,
        duration_s=row["duration_s"],
        status=row["status"] or "ok",
        message=row["message"],
        missing_since=row["missing_since"],
        lanes=lanes.get(asset_id, ()),
        entries=entries.get(asset_id, {}),
        failures=row["failures"],
        is_unfinished=asset_id in unfinished,
    )


def _shown_units(catalog: Catalog) -> pl.DataFrame:
    """The units of entries of the producers that the view shows."""
    shown = catalog.active().filter(~pl.col("kind").is_in(DERIVED))["producer_id"].to_list()
    return catalog.units().filter(pl.col("producer_id").is_in(shown))


def _shown_entries(catalog: Catalog) -> Entries:
    """How many entries of each kind the view shows, by asset."""
    counts = catalog.scan().group_by("asset_id", "kind").len().collect()
    found: dict[str, dict[str, int]] = {}
    for asset_id, kind, count in sorted(counts.iter_rows(), key=lambda row: place(row[1], "")):
        found.setdefault(asset_id, {})[kind] = count
    return found


def _matching(videos: pl.DataFrame, name: str) -> pl.DataFrame:
    wanted = pl.col("video").str.to_lowercase().str.contains(name.lower(), literal=True)
    return videos.filter(wanted) if name else videos


def _ordered(videos: pl.DataFrame, units: pl.DataFrame, sort: Sort) -> pl.DataFrame:
    """Videos with the sums over their units, in order."""
    sums = units.group_by("asset_id").agg(
        pl.col("entries").sum(),
        pl.sum_horizontal(pl.col(BROKEN).sum()).alias("failures"),
    )
    counted = videos.join(sums, on="asset_id", how="left").with_columns(
        pl.col("entries", "failures").fill_null(0)
    )
    if sort == "name":
        return counted.sort("video")
    column = "duration_s" if sort == "length" else sort
    return counted.sort([column, "video"], descending=[True, False], nulls_last=True)


def _sums(entries: Entries) -> dict[str, int]:
    """How many there are of each kind, in the order in which pages tell of kinds."""
    sums = Counter[str]()
    for counts in entries.values():
        sums.update(counts)
    return dict(sorted(sums.items(), key=lambda item: place(item[0], "")))


def _lanes(catalog: Catalog, units: pl.DataFrame, videos: pl.DataFrame) -> dict[str, tuple[Lane, ...]]:
    """By asset, a lane per unit."""
    if units.is_empty():
        return {}
    runs = _runs(catalog, units["unit_id"].to_list())
    lengths = dict(videos.select("asset_id", "duration_s").iter_rows())
    found: dict[str, list[Lane]] = {}
    for unit in sorted(units.to_dicts(), key=lambda unit: place(unit["kind"], unit["scale"])):
        own = runs.get(unit["unit_id"], [])
        lane = Lane(
            label=scale_label(unit["kind"], unit["scale"]),
            stretches=stretches(own, lengths[unit["asset_id"]] or 0.0),
            outcomes={each: unit[each] for each in MARKS if each != PENDING and unit[each]},
        )
        found.setdefault(unit["asset_id"], []).append(lane)
    return {asset_id: tuple(lanes) for asset_id, lanes in found.items()}


Run = tuple[float, float, str]
"""Start and end in seconds, and the outcome of all windows in between."""


def _runs(catalog: Catalog, unit_ids: Sequence[str]) -> dict[str, list[Run]]:
    """By unit, its windows in time order, neighbours of one outcome made one."""
    columns = ["unit_id", "start_s", "end_s", "outcome"]
    rows = catalog.dataset("coverage").to_table(filter=sql_in("unit_id", unit_ids), columns=columns)
    frame = pl.DataFrame(rows).sort("unit_id", "start_s")
    follows = (
        (pl.col("unit_id") == pl.col("unit_id").shift())
        & (pl.col("outcome") == pl.col("outcome").shift())
        & (pl.col("start_s") <= pl.col("end_s").shift())
    ).fill_null(value=False)
    runs = (
        frame.with_columns((~follows).cum_sum().alias("run"))
        .group_by("run", maintain_order=True)
        .agg(pl.first("unit_id", "start_s", "outcome"), pl.max("end_s"))
    )
    found: dict[str, list[Run]] = {}
    for unit_id, start_s, end_s, outcome in runs.select(columns).iter_rows():
        found.setdefault(unit_id, []).append((start_s, end_s, outcome))
    return found


def stretches(runs: Sequence[Run], duration_s: float) -> tuple[Stretch, ...]:
    """The worst outcome in each of :data:`CELLS` parts; what no run covers is pending."""
    cells = strip(runs, duration_s, CELLS)
    starts = [at for at in range(len(cells)) if not at or cells[at] != cells[at - 1]]
    return tuple(Stretch(start, end, cells[start]) for start, end in pairwise([*starts, len(cells)]))
