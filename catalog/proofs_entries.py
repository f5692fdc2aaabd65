"""Proofs about entries and vectors: who they are, when they are, and that none is missing."""

from __future__ import annotations

import polars as pl

from evicat.catalog.evidence import Evidence, Portion
from evicat.catalog.proof import Proof
from evicat.schemas.entry import SPEECH_WITHHELD, Outcome
from evicat.storage.tables import EMBEDDING, embedder_id, table_spec, vectors_table

NORM_TOLERANCE = 1e-3
_HEX = r"^[0-9a-f]{32}$"
_SMALL = ("videos", "names", "roots", "producers", "views", "units")


def fixed_ids(proof: Proof, evidence: Evidence) -> None:
    """Keys of the small tables: each once, ids well-formed. Their columns take no nulls."""
    for table in _SMALL:
        rows = evidence.units if table == "units" else evidence.read(table)
        proof.looked += len(rows)
        _each_once(proof, rows, table)
        for column in {"asset_id", "unit_id", "producer_id"} & set(rows.columns):
            odd = rows.filter(~pl.col(column).str.contains(_HEX)).with_columns(pl.col(column).alias("odd"))
            proof.fail_rows(odd, f"table {table}: {column} {{odd!r}} is not 32 hexadecimal digits")


def ids(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Ids of entries are well-formed and stand once.

    An id begins with its asset, and one asset is never in two portions: what is unique in each is unique.
    """
    entries = portion.entries
    proof.looked += len(entries)
    _each_once(proof, entries, "entries")
    condition = pl.when(pl.col("condition_id") == "").then(pl.lit(""))
    parts = [
        pl.col("asset_id").str.slice(0, 12) + "." + pl.col("producer_id").str.slice(0, 8),
        condition.otherwise("." + pl.col("condition_id").str.slice(0, 8)),
        "." + pl.col("scale") + "." + pl.col("start_us").cast(pl.String).str.zfill(14) + ".",
    ]
    right = pl.concat_str(parts).alias("beginning")  # as schemas.identity.entry_id has it
    rest = pl.col("entry_id").str.strip_prefix(pl.col("beginning"))
    fits = pl.col("entry_id").str.starts_with(pl.col("beginning")) & rest.str.contains(r"^\d{2,}$")
    wrong = entries.with_columns(right).filter(~fits)
    proof.fail_rows(wrong, "entry id {entry_id} should be {beginning} and a number of two digits")


def _each_once(proof: Proof, rows: pl.DataFrame, table: str) -> None:
    key = list(table_spec(table).key)
    twice = rows.filter(pl.struct(key).is_duplicated()).unique(key, maintain_order=True)
    shown = ", ".join(f"{{{name}}}" for name in key)
    proof.fail_rows(twice, f"table {table}: {shown} stands more than once")


def spans(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Entries lie on the timeline, and the frames that they cite lie in them, in order."""
    lengths = evidence.videos.select("asset_id", "duration_us").unique("asset_id")
    entries = portion.entries.join(lengths, on="asset_id", how="left")
    proof.looked += len(entries)
    start, end = pl.col("start_us"), pl.col("end_us")
    on_it = (start >= 0) & (start < end) & (end <= pl.col("duration_us"))
    outside = entries.filter(on_it.not_().fill_null(True))
    proof.fail_rows(outside, "entry {entry_id} does not lie on the timeline, which ends at {duration_us} us")
    times = pl.col("frames").list.eval(pl.element().struct.field("time_s"))
    shown = entries.filter(pl.col("frames").list.len() > 0).with_columns(times.alias("times"))
    times = pl.col("times")
    inside = (times.list.min() >= pl.col("start_s")) & (times.list.max() < pl.col("end_s"))
    away = shown.filter(inside.not_().fill_null(True))
    proof.fail_rows(away, "entry {entry_id} cites a frame outside its span: {times}")
    in_order = times.list.diff().list.min().fill_null(0.0) >= 0
    proof.fail_rows(shown.filter(~in_order), "the frames of entry {entry_id} are not in order: {times}")


def vectors(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Every vector has its entry and length 1; every entry that is to be embedded has all its parts."""
    for table, rows in portion.vectors.items():
        proof.looked += len(rows)
        rows = rows.with_columns(pl.col("unit_id").alias("entry_unit_id"))
        _bound(proof, evidence, portion, table, rows)
        in_error = pl.col("has_vector") & ((pl.col("norm") - 1).abs() <= NORM_TOLERANCE).not_()
        long = rows.filter(in_error | (pl.col("has_vector") & pl.col("norm").is_nan()))
        proof.fail_rows(long, f"{table}: vector of {{entry_id}} part {{part}} has length {{norm}}, not 1")
        _whole(proof, table, rows)
    _embedded(proof, evidence, portion)


def _bound(proof: Proof, evidence: Evidence, portion: Portion, table: str, rows: pl.DataFrame) -> None:
    """Vectors whose entry is not there, is another, or is not to be embedded."""
    same = ["entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale"]
    withheld = pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    entries = portion.entries.select(*same, withheld.alias("withheld"))
    lost = rows.join(entries, on=same, how="anti")
    proof.fail_rows(lost, f"{table}: vector of {{entry_id}} part {{part}} belongs to no entry")
    kept = rows.join(entries.filter("withheld"), on=same, how="semi")
    proof.fail_rows(kept, f"{table}: {{entry_id}} is withheld, but has a vector")
    chunks = portion.coverage.filter(pl.col("kind") == EMBEDDING, pl.col("outcome") == Outcome.DONE.value)
    chunk = chunks.select(
        pl.col("unit_id").alias("embed_unit_id"), pl.col("start_us").alias("window_start_us")
    )
    stray = rows.join(chunk, on=["embed_unit_id", "window_start_us"], how="anti")
    proof.fail_rows(stray, f"{table}: vector of {{entry_id}} part {{part}} belongs to no chunk that is done")
    homes = {
        key: vectors_table(embedder_id(producer))
        for key, producer in evidence.producers.items()
        if producer.kind == EMBEDDING
    }
    foreign = [key for key, home in homes.items() if home != table]
    units = portion.units.filter(pl.col("producer_id").is_in(foreign))["unit_id"]
    wrong = rows.filter(pl.col("embed_unit_id").is_in(units.to_list()))
    proof.fail_rows(wrong, f"{table}: vector of {{entry_id}} part {{part}} is of another embedder")


def _whole(proof: Proof, table: str, rows: pl.DataFrame) -> None:
    key = ["embed_unit_id", "entry_id"]
    parts = rows.group_by(key).agg(
        pl.col("part").sort().alias("parts"), pl.col("asset_id", "unit_id", "scale").first()
    )
    first, last, count = (
        pl.col("parts").list.first(),
        pl.col("parts").list.last(),
        pl.col("parts").list.len().cast(pl.Int32),
    )
    distinct = pl.col("parts").list.n_unique().cast(pl.Int32)
    broken = parts.filter((first != 0) | (last != count - 1) | (distinct != count))
    proof.fail_rows(broken, f"{table}: {{entry_id}} has parts {{parts}}, which is not 0, 1, 2, ...")


def _embedded(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Entries in a finished chunk of an embedding unit that have no vector."""
    reads = [
        (key, read, vectors_table(embedder_id(producer)))
        for key, producer in evidence.producers.items()
        if producer.kind == EMBEDDING
        for read in producer.reads
    ]
    schema = ["embedding", "producer_id", "table"]
    embeddings = pl.DataFrame(reads, schema=dict.fromkeys(schema, pl.String), orient="row")
    made = [outcome.value for outcome in Outcome if outcome.may_be_stale]
    chunks = portion.coverage.filter(pl.col("kind") == EMBEDDING, pl.col("outcome").is_in(made)).select(
        pl.col("unit_id").alias("embed_unit_id"),
        "asset_id",
        pl.col("producer_id").alias("embedding"),
        pl.col("start_us").alias("from_us"),
        pl.col("end_us").alias("until_us"),
    )
    withheld = pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() > 0
    texts = portion.entries.filter(~withheld, pl.col("text").str.strip_chars() != "")
    texts = texts.select("entry_id", "unit_id", "asset_id", "producer_id", "scale", "start_us", "end_us")
    wanted = texts.join(embeddings, on="producer_id").join(chunks, on=["asset_id", "embedding"])
    wanted = wanted.filter(pl.col("start_us") >= pl.col("from_us"), pl.col("start_us") < pl.col("until_us"))
    key = ["table", "embed_unit_id", "entry_id"]
    there = [
        rows.select("embed_unit_id", "entry_id").with_columns(pl.lit(table).alias("table"))
        for table, rows in portion.vectors.items()
    ]
    found = pl.concat([pl.DataFrame(schema=dict.fromkeys(key, pl.String)), *(t.select(key) for t in there)])
    lacking = wanted.join(found.unique(), on=key, how="anti")
    proof.fail_rows(lacking, "entry {entry_id} has no vector in table {table}, though its chunk was embedded")
