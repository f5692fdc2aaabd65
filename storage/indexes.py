"""Indexes: made once there is something to index, and brought up to date at the end of a run."""

from __future__ import annotations

import logging
from typing import Any

from .damage import OF_LANCE, reason_of
from .tables import VECTORS, table_spec
from .transact import Tables

_SMALL_CACHE = 64 * 1024 * 1024
log = logging.getLogger(__name__)

VECTOR_INDEX_ROWS = 10_000
"""From here on comparing all vectors takes many times as long as asking an index (`bench/ask.py`)."""
PARTITION_ROWS = 1_000
"""Vectors in a partition of the index, about: few partitions are looked through for a query."""

TEXT_OPTIONS = {
    "base_tokenizer": "icu",
    "stem": False,
    "remove_stop_words": False,
    "with_position": True,
}
"""Finds ``it's``, ``the``, ``cafe``, phrases, and languages that write without blanks."""


def refresh(tables: Tables) -> None:
    """Make missing indexes and take unindexed rows into the others; needs the commit lock.

    Tables whose rows are all indexed get no new version.
    """
    for name in tables.names():
        refresh_table(name, tables.dataset(name))


def refresh_table(name: str, dataset: Any) -> None:
    """As :func:`refresh`, of one table."""
    if dataset.count_rows():
        _make_missing(name, dataset)
        if unindexed_fragments(dataset):
            dataset.optimize.optimize_indices()
            dataset.checkout_latest()


def unindexed_fragments(dataset: Any) -> dict[str, int]:
    """Indexes that do not cover the whole table, and how many fragments each of them lacks."""
    fragments = {fragment.fragment_id for fragment in dataset.get_fragments()}
    missing = {}
    for index in dataset.describe_indices():
        covered = {number for segment in index.segments for number in segment.fragment_ids}
        if fragments - covered:
            missing[index.name] = len(fragments - covered)
    return missing


def broken_indexes(dataset: Any) -> list[str]:
    """Names of the indexes of a table that cannot be read. They are read in full, and not kept in memory."""
    import lance

    apart = lance.dataset(dataset.uri, version=dataset.version, index_cache_size_bytes=_SMALL_CACHE)
    return [index.name for index in apart.describe_indices() if not _can_be_read(apart, index.name)]


def _can_be_read(dataset: Any, index: str) -> bool:
    try:
        dataset.prewarm_index(index)
    except OF_LANCE as error:
        log.info("index %s: %s", index, reason_of(error))
        return False
    return True


def _make_missing(name: str, dataset: Any) -> None:
    spec = table_spec(name)
    present = {column for index in dataset.describe_indices() for column in index.field_names}
    for column in spec.indexed:
        if column not in present:
            dataset.create_scalar_index(column, "BTREE")
    for column in spec.few_values:
        if column not in present:
            dataset.create_scalar_index(column, "BITMAP")
    for column in spec.labels:
        if not present & {column, f"{column}.item"}:
            dataset.create_scalar_index(column, "LABEL_LIST")
    if spec.searched and spec.searched not in present:
        dataset.create_scalar_index(spec.searched, "INVERTED", **TEXT_OPTIONS)
    if name.startswith(VECTORS) and "vector" not in present and dataset.count_rows() >= VECTOR_INDEX_ROWS:
        log.info("making the vector index of %s: %d rows", name, dataset.count_rows())
        partitions = max(1, dataset.count_rows() // PARTITION_ROWS)
        dataset.create_index(
            "vector",
            "IVF_FLAT",
            metric="cosine",
            num_partitions=partitions,
            target_partition_size=PARTITION_ROWS,  # else later refreshes would join them
        )
