"""``evicat status``: what is made of every video and what failed, as a table and along the timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.catalog.query import Catalog
from evicat.catalog.strips import MARKS, plain, strip
from evicat.flows.tables import OUTCOME_STYLE, clock, times
from evicat.schemas.entry import Outcome
from evicat.schemas.recipe import Profile
from evicat.storage.reader import Reader
from evicat.storage.rows import Row, producer_from_row
from evicat.storage.snapshots import reader_at
from evicat.storage.sql import sql_in
from evicat.storage.tables import EMBEDDING, PER_SOURCE, SUPPORT, TAG, embedder_id

FAILURES = 20
"""Of the windows that failed, so many are listed; the rest are counted."""
_BROKEN = [Outcome.FAILED.value, Outcome.REFUSED.value]
_UNIT = ("unit_id", "kind", "scale", "producer_id", "complete", "windows", "entries", "seconds")
_TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """One unit of a video. ``retried``: windows that took more than one attempt."""

    unit: Row
    label: str
    component: str
    active: bool
    retried: int
    strip: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """For ``--json``."""
        outcomes = {
            outcome.value: self.unit[outcome.value] for outcome in Outcome if self.unit[outcome.value]
        }
        same = {name: self.unit[name] for name in (*_UNIT, *_TOKENS)}
        own = {"label": self.label, "component": self.component, "active": self.active}
        shown = {"strip": plain(self.strip)} if self.strip else {}
        return same | own | {"retried": self.retried, "outcomes": outcomes} | shown


@dataclass(frozen=True, slots=True)
class VideoStatus:
    """One video name, its units, and its windows that failed."""

    video: Row
    units: list[UnitStatus]
    failures: list[Row]

    def facts(self) -> dict[str, Any]:
        """For ``--json``."""
        names = ("video", "asset_id", "duration_s", "status", "error_class", "message", "missing_since")
        told = ("unit_id", "scale", "start_s", "end_s", "outcome", "error_class", "message")
        return {name: self.video[name] for name in names} | {
            "units": [unit.facts() for unit in self.units],
            "failures": [{name: row[name] for name in told} for row in self.failures],
        }


class Ledger:
    """The units of a catalog at one head, video by video."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._catalog = Catalog(reader, Profile())
        rows = self._catalog.producers().to_dicts()
        self._producers = {row["producer_id"]: producer_from_row(row) for row in rows}
        self._active = set(reader.view().values())

    def videos(self, video: str | None = None, *, strips: bool = False) -> Iterator[VideoStatus]:
        """Every video name, or those that ``video`` means, in order; files that are missing among them.

        Raises:
            UsageError: no video has this name, or it is the end of several.
        """
        names, units = self._catalog.videos(missing=True), self._catalog.units()
        if video is not None:
            asset_ids = self._catalog.asset_ids(video)
            names, units = (rows.filter(pl.col("asset_id").is_in(asset_ids)) for rows in (names, units))
        only = sql_in("asset_id", names["asset_id"].unique().to_list()) if video is not None else ""
        failed = self._read("coverage", _and(sql_in("outcome", _BROKEN), only)).sort("scale", "start_s")
        failures = failed.partition_by("asset_id", as_dict=True)
        again = self._read("coverage", _and("attempts > 1", only), ["unit_id"])
        retried = dict(again.group_by("unit_id").len().iter_rows())
        own = units.sort("kind", "scale", "producer_id").partition_by("asset_id", as_dict=True)
        for row in names.to_dicts():
            key = (row["asset_id"],)
            made = [] if key not in own else own[key].to_dicts()
            cells = self._strips(made, row["duration_s"]) if strips else {}
            shown = [self._unit(unit, retried, cells) for unit in made]
            shown.sort(key=lambda each: (each.unit["kind"] == EMBEDDING, each.unit["kind"] == SUPPORT))
            yield VideoStatus(row, shown, [] if key not in failures else failures[key].to_dicts())

    def _unit(self, unit: Row, retried: dict[str, int], cells: dict[str, list[str]]) -> UnitStatus:
        producer = self._producers[unit["producer_id"]]
        label, active = unit["scale"], producer.producer_id in self._active
        if producer.kind == EMBEDDING:
            read = [self._producers[key].scale for key in producer.reads if key in self._producers]
            label, active = f"vectors of {', '.join(read)}", embedder_id(producer) in self._active
        if producer.kind == TAG:
            active = embedder_id(producer) in self._active
        unit_id = unit["unit_id"]
        return UnitStatus(
            unit, label, producer.component, active, retried.get(unit_id, 0), cells.get(unit_id, [])
        )

    def _strips(self, units: list[Row], duration_s: float | None) -> dict[str, list[str]]:
        ids = [unit["unit_id"] for unit in units]
        rows = self._read("coverage", sql_in("unit_id", ids), ["unit_id", "start_s", "end_s", "outcome"])
        found = dict.fromkeys(ids, pl.DataFrame()) | {
            str(key): part.select("start_s", "end_s", "outcome") for (key,), part in rows.group_by("unit_id")
        }
        return {unit_id: strip(part.iter_rows(), duration_s or 0) for unit_id, part in found.items()}

    def _read(self, table: str, where: str = "", columns: list[str] | None = None) -> pl.DataFrame:
        rows = self._reader.dataset(table).to_table(filter=where or None, columns=columns)
        return pl.DataFrame(rows)


def _and(*terms: str) -> str:
    return " AND ".join(f"({term})" for term in terms if term)


def open_reader(uri: str, at: str | None) -> Reader:
    """The catalog as it is, or as it was at a snapshot or an earlier head."""
    return Reader.open(uri) if at is None else reader_at(uri, at)


def show(console: Console, reader: Reader, video: str | None, *, strips: bool, as_json: bool) -> None:
    """Print the ledger; with strips where they are asked for, or where one video is."""
    wants_strips = strips or video is not None
    found = list(Ledger(reader).videos(video, strips=wants_strips))
    if as_json:
        for each in found:
            print(json.dumps(each.facts(), ensure_ascii=False))
        return
    _table(console, found)
    if wants_strips:
        _print_strips(console, found)
    _failures(console, found)


def _table(console: Console, found: list[VideoStatus]) -> None:
    units = [unit.unit for each in found for unit in each.units]
    has_tokens = any(unit[name] for unit in units for name in _TOKENS)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("video", "length", "unit", "producer", "windows", "retried", "seconds"):
        right = name in ("length", "retried", "seconds")
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right)
    if has_tokens:
        table.add_column("tokens in/out", justify="right")
    table.add_column("entries", justify="right")
    for each in found:
        title = (_title(each.video), clock(each.video["duration_s"]) if each.video["duration_s"] else "")
        for row in _rows(each):
            cells = row if has_tokens else [*row[:-2], row[-1]]
            table.add_row(*title, *cells)
            title = ("", "")
    console.print(table)


def _title(video: Row) -> str:
    missing = video["missing_since"]
    return escape(video["video"]) + (f" [yellow]missing since {missing}[/]" if missing else "")


def _rows(each: VideoStatus) -> Iterator[list[str]]:
    """Cells from ``unit`` on. A unit of entries has several that embed or tag it; here they are a line."""
    if not each.units:
        failed = each.video["status"] == "failed"
        shown = "[red]failed[/]" if failed else "[dim]nothing made[/]"
        yield [shown, "", escape(each.video["message"] or ""), "", "", "", ""]
    made = [unit for unit in each.units if unit.unit["kind"] not in PER_SOURCE]
    for unit in made:
        producer = f"{unit.component} {unit.unit['producer_id'][:8]}"
        entries = "" if unit.unit["kind"] == SUPPORT else str(unit.unit["entries"])
        yield _cells([unit], unit.unit["scale"], producer, entries)
    for kind, label in ((EMBEDDING, "vectors"), (TAG, "tags")):
        derived = [unit for unit in each.units if unit.unit["kind"] == kind]
        derived.sort(key=lambda unit: (unit.component, not unit.active))
        for (component, _), group in groupby(derived, lambda unit: (unit.component, unit.active)):
            yield _cells(list(group), label, component, "")


def _cells(units: list[UnitStatus], label: str, producer: str, entries: str) -> list[str]:
    counts = {o.value: sum(unit.unit[o.value] for unit in units) for o in Outcome}
    windows = ", ".join(
        f"[{OUTCOME_STYLE.get(name, 'dim')}]{count} {name}[/]" for name, count in counts.items() if count
    )
    if not all(unit.unit["complete"] for unit in units):
        windows += " [yellow]unfinished[/]"
    if not units[0].active:
        producer += " [dim](not active)[/]"
    retried = sum(unit.retried for unit in units)
    seconds = sum(unit.unit["seconds"] for unit in units)
    prompt, answer = (sum(unit.unit[name] for unit in units) for name in _TOKENS)
    tokens = f"{prompt}/{answer}" if prompt or answer else ""
    return [label, producer, windows, str(retried or ""), f"{seconds:.1f}", tokens, entries]


def _print_strips(console: Console, found: list[VideoStatus]) -> None:
    for each in found:
        drawn = [unit for unit in each.units if unit.strip and unit.unit["kind"] != TAG]
        if drawn:
            console.print(f"\n{_title(each.video)}", highlight=False)
        width = max((len(unit.label) for unit in drawn), default=0)
        for unit in drawn:
            cells = "".join(f"[{MARKS[cell][1]}]{MARKS[cell][0]}[/]" for cell in unit.strip)
            note = "" if unit.active else " [dim](not active)[/]"
            console.print(f"  {unit.label:<{width}} |{cells}|{note}", highlight=False, soft_wrap=True)
    legend = "  ".join(f"[{style}]{mark}[/] {name}" for name, (mark, style) in MARKS.items())
    console.print(
        f"\n{legend}\nA character that stands for several windows shows the worst.", highlight=False
    )


def _failures(console: Console, found: list[VideoStatus]) -> None:
    once = {each.video["asset_id"]: each for each in reversed(found)}  # copies share their units
    rows = [(each, row) for each in reversed(once.values()) for row in each.failures]
    for each, row in rows[:FAILURES]:
        where = f"{escape(each.video['video'])} {row['scale']} {times(row)}"
        reason = f"{row['error_class'] or row['outcome']}: {escape(row['message'])}"
        console.print(f"[red]{row['outcome']}[/] {where}: {reason}", soft_wrap=True)
    if len(rows) > FAILURES:
        console.print(f"[red]and {len(rows) - FAILURES} more[/] windows failed or were refused.")
