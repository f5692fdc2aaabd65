"""Coverage rows from staged results, and unit rows derived from coverage, so that both always agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evicat.schemas.entry import Outcome
from evicat.schemas.identity import Unit
from evicat.schemas.span import US

from .rows import Row
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
    sums = {row["unit_id"]: row for row in _aggregate(coverage)}
    rows = [_unit_row(state, sums.get(state.unit.unit_id)) for state in states]
    return pa.Table.from_pylist(rows, schema=UNITS)


def _aggregate(coverage: pa.Table) -> list[Row]:
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
    rows: list[Row] = grouped.rename_columns(
        [name.removesuffix("_sum") for name in grouped.column_names]
    ).to_pylist()
    return rows


def _gaps(coverage: pa.Table) -> Any:
    """Per row of sorted coverage: whether it starts elsewhere than where its unit's row before ends."""
    units = coverage["unit_id"].to_numpy()
    if not len(units):
        return np.zeros(0, dtype=bool)
    is_first = np.concatenate([[True], units[1:] != units[:-1]])
    before = np.concatenate([[0.0], coverage["end_s"].to_numpy()[:-1]])
    return np.where(is_first, 0.0, before) != coverage["start_s"].to_numpy()


def _unit_row(state: UnitState, sums: Row | None) -> Row:
    row: Row = state.unit.model_dump() | {"unit_id": state.unit.unit_id, "run_id": state.run_id}
    if sums is None:
        nothing = dict.fromkeys((*_SUMS, "windows", *OUTCOMES), 0)
        return row | nothing | {"worst_outcome": "", "complete": state.complete_until_us == 0}
    tiles_until_us = None if sums["gap_any"] else round(sums["end_s_max"] * US)
    counts = {outcome.value: sums[outcome.value] for outcome in OUTCOMES}
    return (
        row
        | counts
        | {name: sums[name] for name in _SUMS}
        | {
            "windows": sums["unit_id_count"],
            "worst_outcome": _worst(counts),
            "complete": tiles_until_us is not None and tiles_until_us == state.complete_until_us,
        }
    )


def _worst(counts: dict[str, int]) -> Outcome:
    return [outcome for outcome in OUTCOMES if counts[outcome.value]][-1]
