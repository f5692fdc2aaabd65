"""All taggers by the name that the command line calls them, ready for one catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evicat.catalog.llm import TextModel
from evicat.catalog.reading.shown import embedder_of
from evicat.catalog.tagging.base import Tagger
from evicat.catalog.tagging.embedding import EmbeddingTagger, EntryVectors
from evicat.catalog.tagging.fields import FieldTagger
from evicat.catalog.tagging.llm import LlmTagger
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.recipe import Profile, TextModelOptions
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_in
from evicat.storage.tables import EMBEDDING, embedder_id, vectors_table

TAGGERS = {
    "fields": "words of a factor, in the fields of records",
    "embedding": "likeness of vectors to a factor's descriptor and examples",
    "llm": "a text model, asked about a few entries at a time",
}
"""Name -> what it goes by."""


@dataclass(frozen=True)
class TaggerOptions:
    """What decides which tags are made, beside vocabulary and entries."""

    thresholds: Mapping[str, float] | None = None
    """For ``embedding``: by factor, instead of what the vocabulary says."""
    model: TextModelOptions | None = None
    """For ``llm``: what is asked."""
    entries_at_once: int = 8
    """For ``llm``: entries of a question."""


@contextmanager
def tagger(
    name: str, reader: Callable[[], Reader], profile: Profile, options: TaggerOptions
) -> Iterator[Tagger]:
    """The tagger of this name; what it opens is closed at the end.

    Args:
        reader: Gives the tables as they are to be read then.

    Raises:
        UnknownNameError: there is none.
        UsageError: the catalog has no vectors, or no model is named.
    """
    if name not in TAGGERS:
        raise UnknownNameError("tagger", name, list(TAGGERS))
    if name == "fields":
        yield FieldTagger()
    elif name == "embedding":
        yield embedding_tagger(reader, profile, dict(options.thresholds or {}))
    elif options.model is None:
        raise UsageError("the tagger llm asks a text model: name it with --model")
    else:
        with TextModel.of(options.model, profile) as model:
            yield LlmTagger(model, options.model, entries_at_once=options.entries_at_once)


def embedding_tagger(
    reader: Callable[[], Reader], profile: Profile, thresholds: dict[str, float]
) -> EmbeddingTagger:
    """The tagger by the vectors that the default view searches.

    Raises:
        UsageError: there are none, or their model is not here.
    """
    now = reader()
    shown = {made for (kind, _), made in now.view().items() if kind == EMBEDDING}
    producers = [each for each in now.embedders().values() if each.producer_id in shown]
    if not producers:
        raise UsageError("this catalog has no vectors to compare with: index it by a recipe with [embedder]")
    producer = producers[0]
    own = embedder_id(producer)
    table = vectors_table(own)
    return EmbeddingTagger(
        embedder_of(producer, profile),
        lambda entries: stored_vectors(reader(), table, entries),
        embedder_id=own,
        thresholds=thresholds,
    )


def stored_vectors(reader: Reader, table: str, entries: pl.DataFrame) -> EntryVectors:
    """Vectors of entries, in their order; of one without any, NaN."""
    dataset = reader.dataset(table)
    dimension = dataset.schema.field("vector").type.list_size
    columns = ("asset_id", "producer_id")
    where = " AND ".join(sql_in(name, sorted(set(entries[name].to_list()))) for name in columns)
    found = dataset.to_table(columns=["entry_id", "part", "vector"], filter=where)
    ids = pl.DataFrame(found.select(["entry_id", "part"])).with_row_index("at")
    order = (
        entries.select("entry_id")
        .with_row_index("row")
        .join(ids, on="entry_id", how="left")
        .sort("row", "part")
        .select("row", pl.col("at").cast(pl.Int64).fill_null(-1))
    )
    at = order["at"].to_numpy()
    first = np.flatnonzero(np.diff(order["row"].to_numpy(), prepend=-1))
    return EntryVectors(_rows(found["vector"], at, dimension), first)


def _rows(vectors: Any, at: Any, dimension: int) -> Any:
    """``(len(at), dimension)`` float32: the vectors at these places; NaN where there is none."""
    column = vectors.combine_chunks()
    flat = column.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    if not column.null_count and len(at) == len(flat) and (at == np.arange(len(at))).all():
        return flat  # as they are stored: nothing is copied
    place = np.where(column.is_valid().to_numpy(zero_copy_only=False), 1, 0).cumsum() - 1
    is_there = (at >= 0) & np.append(column.is_valid().to_numpy(zero_copy_only=False), False)[at]
    rows = np.full((len(at), dimension), np.nan, np.float32)
    rows[is_there] = flat[place[at[is_there]]]
    return rows
