"""What is known of one unit: results in the tables, and behind them those in staged files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from evicat.schemas.entry import WindowResult
from evicat.schemas.identity import Unit

from .ledger import to_microseconds
from .reader import Reader
from .rows import Row, result_from_row
from .sql import sql_equals
from .staging import StagedChunk, StagingArea, results_of
from .tables import SUPPORT
from .transact import ROW

Results = dict[int, WindowResult]


def unit_results(
    unit: Unit,
    staging: StagingArea,
    reader: Callable[[], Reader],
    vector_table: str,
    is_known: Callable[[Unit], bool],
) -> Results:
    """Results by start of their span; none where what is stored was made from other inputs.

    Staged files are read before the tables, so that a commit in between hides nothing. ``reader`` opens
    the tables at the latest head; ``is_known`` tells, once it was called, whether they may hold the unit.
    """
    chunks = _staged(staging, unit.unit_id)
    tables = reader()
    nothing: tuple[str | None, Results] = (None, {})
    inputs, results = committed_results(tables, unit, vector_table) if is_known(unit) else nothing
    for chunk in chunks:
        if chunk.facts.unit.inputs_hash != inputs:
            inputs, results = chunk.facts.unit.inputs_hash, {}
        results |= {result.span.start_us: result for result in results_of(chunk)}
    return dict(sorted(results.items())) if inputs == unit.inputs_hash else {}


def _staged(staging: StagingArea, unit_id: str) -> list[StagedChunk]:
    while True:
        try:
            return staging.chunks_of(unit_id)
        except FileNotFoundError:  # committed since the folder was listed
            continue


def committed_results(reader: Reader, unit: Unit, vector_table: str = "") -> tuple[str | None, Results]:
    """``inputs_hash`` of the stored unit (None: not stored), and its results if it is that of ``unit``."""
    mine = sql_equals("unit_id", unit.unit_id)
    stored = reader.dataset("units").to_table(columns=["inputs_hash"], filter=mine).to_pylist()
    if not stored or stored[0]["inputs_hash"] != unit.inputs_hash:
        return (stored[0]["inputs_hash"] if stored else None), {}
    coverage = reader.dataset("coverage").to_table(filter=mine)
    entries = _by_window(reader, "entries", mine)
    vectors: dict[int, list[Row]] = {}
    if vector_table in reader.head.tables:
        vectors = _by_window(reader, vector_table, sql_equals("embed_unit_id", unit.unit_id))
    supports: dict[int, list[Row]] = {}
    if unit.kind == SUPPORT:
        supports = _by_window(reader, "supports", sql_equals("support_unit_id", unit.unit_id))
    results = {}
    for row, start_us, end_us in zip(
        coverage.to_pylist(),
        to_microseconds(coverage["start_s"]).to_pylist(),
        to_microseconds(coverage["end_s"]).to_pylist(),
        strict=True,
    ):
        times = {"start_us": start_us, "end_us": end_us}
        nested = (part.get(start_us, []) for part in (entries, vectors, supports))
        results[start_us] = result_from_row(row | times, *nested)
    return unit.inputs_hash, results


def _by_window(reader: Reader, table: str, rows_filter: str) -> dict[int, list[Row]]:
    """Rows in the order in which they were written, by the start of their window."""
    found = reader.dataset(table).to_table(filter=rows_filter, with_row_address=True).sort_by(ROW)
    windows: dict[int, list[Row]] = defaultdict(list)
    for row in found.to_pylist():
        windows[row["window_start_us"]].append(row)
    return windows
