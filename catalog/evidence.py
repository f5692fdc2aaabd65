"""What an audit looks at: the tables at one head, in portions that fit into memory.

The small tables are held whole. The rows of windows, entries and vectors are read for some units at a time,
by the index on their unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import ValidationError

from evicat.schemas.errors import IntegrityError
from evicat.schemas.identity import Producer
from evicat.schemas.span import US
from evicat.storage.reader import Reader
from evicat.storage.rows import producer_from_row
from evicat.storage.sql import sql_in
from evicat.storage.tables import VECTORS
from evicat.storage.transact import ROW

PORTION_ROWS = 100_000
"""Windows and entries that are looked at together, about."""
PORTION_UNITS = 2_000
"""Units that one filter names at most."""
_SAME = ["unit_id", "asset_id", "producer_id", "kind", "scale"]
_SPAN = ["start_s", "end_s"]
_ENTRY_COLUMNS = [
    *_SAME,
    *_SPAN,
    "entry_id",
    "condition_id",
    "window_start_us",
    "text",
    "flags",
    "frames",
    "factors",
]
_COST = ["seconds", "prompt_tokens", "completion_tokens"]
_COVERAGE_COLUMNS = [*_SAME, *_SPAN, *_COST, "outcome", "context_hash", "entries"]
_VECTOR_COLUMNS = [*_SAME, "embed_unit_id", "window_start_us", "entry_id", "part"]

_MEASURED = pl.Schema(
    dict.fromkeys(_VECTOR_COLUMNS, pl.String())
    | {"window_start_us": pl.Int64(), "part": pl.Int32(), "norm": pl.Float64(), "has_vector": pl.Boolean()}
)


@dataclass(frozen=True)
class Portion:
    """Some units, all units of their assets among them, with all rows of them.

    ``coverage`` and ``entries`` have ``start_us`` and ``end_us``. ``vectors`` goes by table; a row has the
    ``norm`` of its vector (NaN where that is not finite) and ``has_vector`` instead of the numbers.
    """

    units: pl.DataFrame
    coverage: pl.DataFrame
    entries: pl.DataFrame
    vectors: dict[str, pl.DataFrame]
    supports: pl.DataFrame
    tags: pl.DataFrame


@dataclass
class Evidence:
    """The tables of a catalog at one head."""

    reader: Reader
    seen: dict[str, int] = field(default_factory=dict)
    """Rows read so far, by table."""

    @cached_property
    def units(self) -> pl.DataFrame:
        return self.read("units")

    @cached_property
    def videos(self) -> pl.DataFrame:
        """With ``duration_us``."""
        return self.read("videos").with_columns(_us("duration_s").alias("duration_us"))

    @cached_property
    def names(self) -> pl.DataFrame:
        return self.read("names")

    @cached_property
    def producer_rows(self) -> pl.DataFrame:
        return self.read("producers")

    @cached_property
    def producers(self) -> dict[str, Producer]:
        """By the id under which they are stored; without those whose facts cannot be read."""
        found = {}
        for row in self.producer_rows.to_dicts():
            with suppress(ValidationError):  # a proof of its own tells of it
                found[row["producer_id"]] = producer_from_row(row)
        return found

    @property
    def vector_tables(self) -> list[str]:
        return [name for name in self.reader.names() if name.startswith(VECTORS)]

    def read(self, table: str, where: str | None = None, columns: list[str] | None = None) -> pl.DataFrame:
        """Rows of a table, in the order in which they were written.

        Raises:
            IntegrityError: its files cannot be read.
        """
        try:
            rows = self.reader.dataset(table).to_table(columns=columns, filter=where, with_row_address=True)
        except (OSError, ValueError) as error:
            raise IntegrityError(f"table {table!r} cannot be read: {_brief(error)}") from error
        self.seen[table] = self.seen.get(table, 0) + rows.num_rows
        frame = pl.from_arrow(rows.sort_by(ROW))
        if not isinstance(frame, pl.DataFrame):
            raise IntegrityError(f"table {table!r} is not a table")
        return frame.drop(ROW)

    def portions(self) -> Iterator[Portion]:
        """Every unit once, those of one asset together."""
        size = pl.col("windows").clip(0) + pl.col("entries").clip(0)
        sizes = self.units.group_by("asset_id").agg(size.sum().alias("rows"), pl.len()).sort("asset_id")
        begun = (
            pl.max_horizontal(
                pl.col("rows").cum_sum() / PORTION_ROWS, pl.col("len").cum_sum() / PORTION_UNITS
            )
            .floor()
            .alias("portion")
        )
        for assets in sizes.with_columns(begun).partition_by("portion", maintain_order=True):
            yield self._portion(self.units.join(assets.select("asset_id"), on="asset_id", how="semi"))

    def _portion(self, units: pl.DataFrame) -> Portion:
        ids = units["unit_id"].to_list()
        spans = [_us("start_s").alias("start_us"), _us("end_s").alias("end_us")]
        coverage = self.read("coverage", sql_in("unit_id", ids), _COVERAGE_COLUMNS)
        entries = self.read("entries", sql_in("unit_id", ids), _ENTRY_COLUMNS)
        vectors = {name: self._vectors(name, ids) for name in self.vector_tables}
        supports = self.read("supports", sql_in("support_unit_id", ids))
        tags = self.read("tags", sql_in("tag_unit_id", ids))
        of_windows = coverage.with_columns(spans), entries.with_columns(spans)
        return Portion(units, *of_windows, vectors, supports, tags)

    def _vectors(self, table: str, units: list[str]) -> pl.DataFrame:
        """Vector rows of embedding units; the numbers are measured a batch at a time and let go."""
        where = sql_in("embed_unit_id", units)
        measured = [_measured(batch) for batch in self._batches(table, [*_VECTOR_COLUMNS, "vector"], where)]
        rows = pl.concat([pl.DataFrame(schema=_MEASURED), *measured])
        self.seen[table] = self.seen.get(table, 0) + len(rows)
        return rows

    def strangers(self, table: str, column: str) -> pl.DataFrame:
        """Rows of a table whose unit is not known, counted by unit: ``unit_id, rows``."""
        known = self.units.select(pl.col("unit_id"))
        found = [pl.DataFrame(schema={"unit_id": pl.String})]
        for batch in self._batches(table, [column]):
            ids = pl.DataFrame(batch).rename({column: "unit_id"})
            found.append(ids.join(known, on="unit_id", how="anti", nulls_equal=True))
        return pl.concat(found).group_by("unit_id").len("rows").sort("unit_id")

    def _batches(self, table: str, columns: list[str], where: str | None = None) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.reader.dataset(table).scanner(columns=columns, filter=where).to_batches()
        except (OSError, ValueError) as error:
            raise IntegrityError(f"table {table!r} cannot be read: {_brief(error)}") from error


def _us(column: str) -> pl.Expr:
    return (pl.col(column) * US).round().cast(pl.Int64)


def _measured(batch: pa.RecordBatch) -> pl.DataFrame:
    """Vector rows with the length of each vector, NaN where it is not finite, instead of its numbers."""
    vectors: Any = batch.column("vector")
    present = vectors.is_valid().to_numpy(zero_copy_only=False)
    matrix = vectors.flatten().to_numpy(zero_copy_only=False)  # without what null vectors hide
    norms = np.full(len(vectors), np.nan)
    norms[present] = np.linalg.norm(matrix.astype(np.float64).reshape(-1, vectors.type.list_size), axis=1)
    norms[~np.isfinite(norms)] = np.nan
    rows = pl.DataFrame(batch.drop_columns(["vector"]))
    measures = [pl.Series("norm", norms), pl.Series("has_vector", present)]
    return rows.with_columns(measures).select(_MEASURED.names()).match_to_schema(_MEASURED)


def _brief(error: Exception) -> str:
    return str(error).partition(", /")[0]  # without where in Lance's own source it was raised
