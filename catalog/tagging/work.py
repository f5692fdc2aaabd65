"""What is left to tag: units of entries, factors, and which of both have no tags yet.

A tag unit is asset x tagger of one factor on one source (a producer of entries). Adding a factor, changing
its definition, or adding a video leaves all other units complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from evicat.catalog.tagging.base import Tagger
from evicat.catalog.tagging.names import nearest
from evicat.catalog.tagging.vocabulary import Factor, Vocabulary
from evicat.schemas.entry import RETRIES
from evicat.schemas.errors import UnknownNameError
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.span import to_us
from evicat.storage.reader import Reader
from evicat.storage.rows import producer_from_row
from evicat.storage.sql import sql_in
from evicat.storage.tables import DERIVED, EMBEDDING, TAG, embedder_id


@dataclass(frozen=True, slots=True)
class Source:
    """A unit of entries that can be tagged."""

    asset_id: str
    producer_id: str
    kind: str
    entries: int
    duration_us: int


@dataclass(frozen=True)
class Part:
    """Sources that lack the same factors."""

    factors: tuple[Factor, ...]
    sources: tuple[Source, ...]

    @property
    def entries(self) -> int:
        return sum(source.entries for source in self.sources)


@dataclass(frozen=True)
class Work:
    """What a tagger has left to do."""

    tagger: Tagger
    vocabularies: tuple[Vocabulary, ...]
    factors: tuple[Factor, ...]
    parts: tuple[Part, ...]
    complete: int = 0
    """Units that have their tags."""
    waiting: int = 0
    """Units of entries without the vectors that the tagger reads."""
    retry: frozenset[str] = frozenset()
    vocabulary_of: dict[str, Vocabulary] = field(default_factory=dict)

    @property
    def units(self) -> int:
        return sum(len(part.factors) * len(part.sources) for part in self.parts)

    @property
    def entries(self) -> int:
        """Entries to be looked at, however many factors they are looked at for."""
        return sum(part.entries for part in self.parts)

    @property
    def pairs(self) -> int:
        """Entries, counted once for each factor that they are looked at for."""
        return sum(part.entries * len(part.factors) for part in self.parts)

    @property
    def calls(self) -> int:
        """Questions to a model, at most; 0 for a tagger that asks none."""
        size = self.tagger.entries_at_once
        if size is None:
            return 0
        return sum(
            len(part.factors) * -(-source.entries // size) for part in self.parts for source in part.sources
        )


def unit_of(source: Source, producer: Producer) -> Unit:
    """The tag unit of a source."""
    return Unit.model_construct(  # of checked values: there may be many
        asset_id=source.asset_id, producer_id=producer.producer_id, kind=TAG, scale=producer.scale
    )


def find_work(
    reader: Reader,
    tagger: Tagger,
    vocabularies: Sequence[Vocabulary],
    factor_ids: Sequence[str] = (),
    retry: Sequence[str] = (),
) -> Work:
    """What is left of the active producers' entries, at one head.

    Args:
        factor_ids: Only these; empty: all of the vocabularies.
        retry: Outcomes that are made again (``evicat.schemas.entry.RETRIES``).

    Raises:
        UnknownNameError: no vocabulary has such a factor, or there is no such outcome to retry.
    """
    for name in retry:
        if name not in RETRIES:
            raise UnknownNameError("outcome to retry", name, list(RETRIES))
    chosen = chosen_factors(vocabularies, factor_ids)
    factors = [factor for factor, _ in chosen]
    found, waiting = sources(reader, tagger)
    done = _complete(reader, frozenset(retry))
    producers = {read: [tagger.producer(f, read).producer_id for f in factors] for read in
                 {source.producer_id for source in found}}  # fmt: skip
    lacking: dict[tuple[int, ...], list[Source]] = {}
    complete = 0
    for source in found:
        wanted = [number for number, factor in enumerate(factors) if _may_carry(source, factor)]
        missing = tuple(
            number
            for number in wanted
            if (source.asset_id, producers[source.producer_id][number]) not in done
        )
        complete += len(wanted) - len(missing)
        if missing:
            lacking.setdefault(missing, []).append(source)
    parts = [
        Part(tuple(factors[number] for number in missing), tuple(own)) for missing, own in lacking.items()
    ]
    return Work(
        tagger,
        tuple(vocabularies),
        tuple(factors),
        tuple(parts),
        complete,
        waiting,
        frozenset(retry),
        {factor.id: vocabulary for factor, vocabulary in chosen},
    )


def chosen_factors(
    vocabularies: Sequence[Vocabulary], factor_ids: Sequence[str]
) -> list[tuple[Factor, Vocabulary]]:
    """The factors of these ids, or all, each with its vocabulary.

    Raises:
        UnknownNameError: there is no such factor; offers the nearest.
    """
    if not factor_ids:
        return [(factor, each) for each in vocabularies for factor in each.filled]
    if len(vocabularies) == 1:
        return [(factor, vocabularies[0]) for factor in vocabularies[0].chosen(factor_ids)]
    known = {factor.id: (factor, each) for each in vocabularies for factor in each.filled}
    for factor_id in factor_ids:
        if factor_id not in known:
            raise UnknownNameError("factor", factor_id, nearest(factor_id, known))
    return [known[factor_id] for factor_id in dict.fromkeys(factor_ids)]


def _may_carry(source: Source, factor: Factor) -> bool:
    """Whether a unit of this kind writes entries that the factor is for; sounds are written beside speech."""
    return any(("speech" if kind == "sound" else kind) == source.kind for kind in factor.kinds)


def sources(reader: Reader, tagger: Tagger) -> tuple[list[Source], int]:
    """Units of entries of the default view whose video is known; how many of them lack vectors."""
    shown = set(reader.view().values())
    durations = {
        row["asset_id"]: to_us(row["duration_s"])
        for row in reader.dataset("videos").to_table(columns=["asset_id", "duration_s"]).to_pylist()
        if row["duration_s"] is not None
    }
    columns = ["asset_id", "producer_id", "kind", "entries", "complete"]
    hidden = f"NOT ({sql_in('kind', sorted(DERIVED - {EMBEDDING}))})"
    units = pl.DataFrame(reader.dataset("units").to_table(columns=columns, filter=hidden))
    found, waiting = [], 0
    embedded = _embedded(reader, units, tagger.vectors_of) if tagger.vectors_of else None
    rows = units.filter(pl.col("kind") != EMBEDDING, pl.col("entries") > 0).sort("asset_id", "producer_id")
    for row in rows.to_dicts():
        if row["producer_id"] not in shown or row["asset_id"] not in durations:
            continue
        if embedded is not None and (row["asset_id"], row["producer_id"]) not in embedded:
            waiting += 1
            continue
        facts = {name: row[name] for name in ("asset_id", "producer_id", "kind", "entries")}
        found.append(Source(**facts, duration_us=durations[row["asset_id"]]))
    return found, waiting


def _embedded(reader: Reader, units: pl.DataFrame, embedder: str) -> set[tuple[str, str]]:
    """Asset and producer of the units of entries all of whose vectors are there."""
    rows = reader.dataset("producers").to_table(columns=["facts"], filter=f"kind = '{EMBEDDING}'")
    made = [producer_from_row(row) for row in rows.to_pylist()]
    reads = {each.producer_id: each.reads for each in made if embedder_id(each) == embedder}
    complete = units.filter(pl.col("kind") == EMBEDDING, pl.col("complete"))
    return {
        (asset_id, read)
        for asset_id, producer_id in complete.select("asset_id", "producer_id").iter_rows()
        for read in reads.get(producer_id, ())
    }


def _complete(reader: Reader, retry: frozenset[str]) -> set[tuple[str, str]]:
    """Asset and producer of tag units that are complete and hold nothing that is to be made again."""
    counted = {"truncated": "failed"}
    again = sorted({counted.get(name, name) for name in retry})
    columns = ["asset_id", "producer_id", "complete", *again]
    rows = pl.DataFrame(reader.dataset("units").to_table(columns=columns, filter=f"kind = '{TAG}'"))
    rows = rows.filter(pl.col("complete"), *(pl.col(name) == 0 for name in again))
    return set(rows.select("asset_id", "producer_id").iter_rows())


def batches(sources: Sequence[Source], most: int) -> Iterator[tuple[Source, ...]]:
    """Sources in portions of about ``most`` entries, each source whole."""
    portion: list[Source] = []
    count = 0
    for source in sources:
        if portion and count + source.entries > most:
            yield tuple(portion)
            portion, count = [], 0
        portion.append(source)
        count += source.entries
    if portion:
        yield tuple(portion)
