"""The column ``factors`` of the entries: the accepted tags of the active taggers, for filters.

It is derived from ``tags`` and the default view, and can always be made again from them. Only rows that
differ are set, and of these only this column: whoever tags touches no evidence.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from .rows import DEFAULT_VIEW
from .sql import sql_equals, sql_in
from .tables import ENTRIES, TAG
from .transact import ROW, Tables

if TYPE_CHECKING:
    import polars as pl

YES = "yes"
"""The verdict of an accepted tag."""
ABSTAINED = "abstained"
"""The verdict where a tagger could not tell."""
VERDICTS = {
    YES: "the entry carries the factor",
    ABSTAINED: "the tagger could not tell",
}
"""What a row of ``tags`` may say. Of an entry without the factor there is no row."""


def refresh_factors(tables: Tables, factor_ids: Collection[str] | None = None) -> int:
    """Bring ``factors`` of all entries up to date; how many entries changed.

    Args:
        factor_ids: Only these can have changed; the others stay as they are. None: any.
    """
    import polars as pl

    accepted = _accepted(tables, factor_ids)
    stored = pl.DataFrame(
        tables.dataset("entries").to_table(columns=["entry_id", "factors"], with_row_address=True)
    )
    changed = _changed(stored, accepted, factor_ids)
    rows = changed.select(ROW, "factors").to_arrow()
    schema = pa.schema([pa.field(ROW, pa.uint64()), ENTRIES.field("factors")])
    tables.update_column("entries", "factors", rows.cast(schema))
    return len(changed)


def _accepted(tables: Tables, factor_ids: Collection[str] | None) -> pl.DataFrame:
    """``entry_id, factor_id`` of the tags that count, each once."""
    import polars as pl

    views = tables.find("views", "view", [DEFAULT_VIEW], ["kind", "producer_id"]).to_pylist()
    active = sorted(row["producer_id"] for row in views if row["kind"] == TAG)
    terms = [sql_equals("verdict", YES), sql_in("made_by", active)]
    if factor_ids is not None:
        terms.append(sql_in("factor_id", sorted(factor_ids)))
    found = tables.dataset("tags").to_table(columns=["entry_id", "factor_id"], filter=" AND ".join(terms))
    return pl.DataFrame(found)


def _changed(
    stored: pl.DataFrame, accepted: pl.DataFrame, factor_ids: Collection[str] | None
) -> pl.DataFrame:
    """Rows of ``stored`` with other factors than they have, and those they should have."""
    import polars as pl

    wanted = accepted.group_by("entry_id").agg(pl.col("factor_id").unique().sort().alias("wanted"))
    rows = stored.join(wanted, on="entry_id", how="left")
    has_any = pl.col("factors").list.len() > 0
    rows = rows.filter(has_any | pl.col("wanted").is_not_null())  # most rows of most catalogs have neither
    wanted_now = pl.col("wanted").fill_null(pl.lit([], pl.List(pl.String)))
    if factor_ids is not None:
        others = pl.col("factors").list.set_difference(pl.lit(sorted(factor_ids), pl.List(pl.String)))
        both = others.list.concat(wanted_now).list.unique().list.sort()
        wanted_now = pl.when(has_any).then(both).otherwise(wanted_now)
    rows = rows.with_columns(wanted_now.alias("wanted"))
    changed = rows.filter(pl.col("factors") != pl.col("wanted"))
    return changed.select(ROW, pl.col("wanted").alias("factors"))
