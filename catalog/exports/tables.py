"""Entries as Parquet or JSON lines: a folder for each split, a file for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from evicat.catalog.query import Catalog

from .splits import VECTORS

ROW_GROUP = 50_000


def write_parquet(rows: pl.DataFrame, folder: Path) -> list[Path]:
    """``SPLIT/KIND.parquet``, every file with the columns of ``rows``."""
    files = []
    for (split, kind), part in _parts(rows):
        file = _place(folder, split, f"{kind}.parquet")
        pq.write_table(part.to_arrow(), file, compression="zstd", row_group_size=ROW_GROUP)
        files.append(file)
    return files


def write_jsonl(rows: pl.DataFrame, folder: Path) -> list[Path]:
    """``SPLIT/KIND.jsonl``: an object a line, text as it is."""
    files = []
    for (split, kind), part in _parts(rows):
        file = _place(folder, split, f"{kind}.jsonl")
        part.write_ndjson(file)
        files.append(file)
    return files


def write_vectors(catalog: Catalog, rows: pl.DataFrame, folder: Path) -> list[Path]:
    """``vectors/SPLIT/TABLE.parquet``: ``entry_id, part, vector`` of the exported entries, by embedder.

    They stand apart, as a long text has several: so entries stay one row each.
    """
    files = []
    splits = rows.select("entry_id", "split")
    stored = [catalog.vectors(producer) for producer in rows["producer_id"].unique().sort()]
    for table in catalog.embedder_tables():
        mine = pl.concat([of[table] for of in stored]).join(splits, on="entry_id").sort("entry_id", "part")
        for (split,), part in mine.group_by("split", maintain_order=True):
            file = _place(folder, f"{VECTORS}/{split}", f"{table}.parquet")
            pq.write_table(part.drop("split").to_arrow(), file, compression="zstd", row_group_size=ROW_GROUP)
            files.append(file)
    return sorted(files)


def _parts(rows: pl.DataFrame) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    """The rows of each split and kind."""
    return sorted(rows.partition_by("split", "kind", as_dict=True).items())


def _place(folder: Path, split: object, name: str) -> Path:
    place = folder / str(split)
    place.mkdir(parents=True, exist_ok=True)
    return place / name
