"""Coverage rows from staged results, and unit rows derived from coverage, so that both always agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.identity import Unit
from evicat.schemas.span import US

from .tables import COVERAGE, OUTCOMES, UNITS

_SUMS = ("entries", "seconds", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class UnitState:
    """What a unit row holds beside the sums over its coverage."""

    unit: Unit
    run_id: str
    complete_until_us: int | None
    """Where its timeline ends, as the run that completed it said; None: never complete so far."""


def coverage_rows(results: pa.Table, unit: Unit, run_id: str) -> pa.Table:
    """``coverage`` for staged ``results`` (schema ``STAGED``) of one unit."""
    same = {name: getattr(unit, name) for name in ("unit_id", "asset_id", "producer_id", "kind", "scale")}
    same["run_id"] = run_id
    columns = {name: pa.repeat(value, results.num_rows) for name, value in same.items()}
    columns["start_s"] = to_seconds(results["start_us"])
    columns["end_s"] = to_seconds(results["end_us"])
    columns["entries"] = pc.list_value_length(results["entries"])
    taken = [columns[name] if name in columns else results[name] for name in COVERAGE.names]
    return pa.table(taken, schema=COVERAGE)


def to_seconds(microseconds: Any) -> Any:
    """A column of microseconds as float64 seconds."""
    return pc.divide(pc.cast(microseconds, pa.float64()), float(US))


def to_microseconds(seconds: Any) -> Any:
    """Inverse of :func:`to_seconds`, exact below 2**53 us."""
    return pc.cast(pc.round(pc.multiply(seconds, float(US))), pa.int64())


def unit_rows(states: Iterable[UnitState], coverage: pa.Table) -> pa.Table:
    """``units`` for ``states``; ``coverage`` holds all rows of these units and no others."""
    states = list(states)
    ids = [state.unit.unit_id for state in states]
    sums: Any = _aggregate(coverage)
    place: Any = pc.index_in(pa.array(ids, pa.string()), sums["unit_id"])  # null: it has no windows
    columns: dict[str, Any] = {
        name: [getattr(state.unit, name) for state in states] for name in Unit.model_fields
    }
    columns |= {"unit_id": ids, "run_id": [state.run_id for state in states]}
    for name in (*_SUMS, *(outcome.value for outcome in OUTCOMES)):
        columns[name] = pc.fill_null(sums[name].take(place), 0)
    columns["windows"] = pc.fill_null(sums["unit_id_count"].take(place), 0)
    columns["worst_outcome"] = _worst(columns)
    ends_us: Any = pc.fill_null(to_microseconds(sums["end_s_max"].take(place)), 0)
    is_whole: Any = pc.invert(pc.fill_null(sums["gap_any"].take(place), False))
    until_us: Any = pa.array([state.complete_until_us for state in states], pa.int64())
    is_there: Any = pc.fill_null(pc.equal(until_us, ends_us), False)
    columns["complete"] = pc.and_(is_whole, is_there)
    return pa.table({name: columns[name] for name in UNITS.names}).cast(UNITS)


def _worst(columns: Mapping[str, Any]) -> Any:
    """By unit: the worst outcome that it has windows of; empty where it has none."""
    worst: Any = pa.repeat("", len(columns["unit_id"]))
    for outcome in OUTCOMES:
        is_there = pc.greater(columns[outcome.value], pa.scalar(0))
        worst = pc.if_else(is_there, pa.scalar(outcome.value), worst)
    return worst


def _aggregate(coverage: pa.Table) -> pa.Table:
    """Per unit: its sums, its windows by outcome, its last end, and whether it has a gap."""
    coverage = coverage.sort_by([("unit_id", "ascending"), ("start_s", "ascending")])
    table: Any = coverage.select(["unit_id", "end_s", *_SUMS]).append_column("gap", pa.array(_gaps(coverage)))
    for outcome in OUTCOMES:
        hits = pc.equal(coverage["outcome"], pa.scalar(outcome.value))
        table = table.append_column(outcome.value, pc.cast(hits, pa.int32()))
    summed = [(name, "sum") for name in (*_SUMS, *(outcome.value for outcome in OUTCOMES))]
    grouped = table.group_by("unit_id").aggregate(
        [*summed, ("end_s", "max"), ("gap", "any"), ("unit_id", "count")]
    )
    names = [name.removesuffix("_sum") for name in grouped.column_names]
    summed_up: pa.Table = grouped.rename_columns(names)
    return summed_up


def _gaps(coverage: pa.Table) -> Any:
    """Per row of sorted coverage: whether it starts elsewhere than where its unit's row before ends."""
    units = coverage["unit_id"].to_numpy()
    if not len(units):
        return np.zeros(0, dtype=bool)
    is_first = np.concatenate([[True], units[1:] != units[:-1]])
    before = np.concatenate([[0.0], coverage["end_s"].to_numpy()[:-1]])
    return np.where(is_first, 0.0, before) != coverage["start_s"].to_numpy()
