"""What taggers are given to read, and the hash of it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evicat.catalog.tagging.base import ENTRY_COLUMNS
from evicat.catalog.tagging.work import Source
from evicat.schemas.entry import SPEECH_WITHHELD
from evicat.schemas.model import content_hash
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_in


def read_entries(reader: Reader, sources: Sequence[Source]) -> pl.DataFrame:
    """Their entries in order of source and time, without withheld speech; columns ``ENTRY_COLUMNS``."""
    assets = sorted({source.asset_id for source in sources})
    reads = sorted({source.producer_id for source in sources})
    where = f"{sql_in('asset_id', assets)} AND {sql_in('producer_id', reads)}"
    rows = pl.DataFrame(reader.dataset("entries").to_table(columns=ENTRY_COLUMNS, filter=where))
    wanted = pl.DataFrame(
        [(source.asset_id, source.producer_id) for source in sources],
        schema={"asset_id": pl.String, "producer_id": pl.String},
        orient="row",
    )
    withheld = pl.col("flags").list.set_intersection(pl.lit(sorted(SPEECH_WITHHELD))).list.len() > 0
    rows = rows.join(wanted, on=["asset_id", "producer_id"], how="semi").filter(~withheld)
    return rows.sort("asset_id", "producer_id", "start_s", "end_s", "entry_id")


def contexts(entries: pl.DataFrame, sources: Sequence[Source]) -> dict[tuple[str, str], str]:
    """By source: the hash of what its tags are made of."""
    found = {(source.asset_id, source.producer_id): "" for source in sources}
    for (asset_id, producer_id), own in entries.group_by("asset_id", "producer_id", maintain_order=True):
        found[str(asset_id), str(producer_id)] = context_of(own)
    return found


def context_of(entries: pl.DataFrame) -> str:
    """As :func:`~evicat.catalog.context.context_hash` of these entries, without making values of them."""
    read = list(map(list, entries.select("entry_id", "text").iter_rows()))
    return content_hash(read) if read else ""
