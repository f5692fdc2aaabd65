"""Proofs about the ledger: windows tile their timelines, and every sum and every reference is right."""

from __future__ import annotations

import polars as pl

from evicat.catalog.evidence import Evidence, Portion
from evicat.catalog.proof import Proof
from evicat.schemas.entry import Outcome
from evicat.schemas.grid import windows
from evicat.schemas.model import content_hash
from evicat.storage.tables import DERIVED, OUTCOMES

_GRID = pl.Schema([*((name, pl.Int64()) for name in ("duration_us", "window_us", "start_us", "end_us"))])
_WRITING = [outcome.value for outcome in Outcome if outcome.writes_entries]
_SUMS = ["entries", "prompt_tokens", "completion_tokens"]


def tiling(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Windows do not overlap, and are those of their scale; of complete units they tile the timeline."""
    lengths = evidence.videos.select("asset_id", "duration_us").unique("asset_id")
    units = portion.units.select("unit_id", "asset_id", "producer_id", "scale", "complete")
    units = units.join(lengths, on="asset_id", how="left").with_columns(_window_us(evidence, units))
    rows = portion.coverage.select("unit_id", "start_us", "end_us").join(units, on="unit_id")
    rows = rows.sort("unit_id", "start_us", "end_us")
    proof.looked += len(rows)
    expected = pl.col("end_us").shift(1, fill_value=0).over("unit_id")
    rows = rows.with_columns(expected.alias("expected_us"))
    empty = rows.filter(pl.col("end_us") <= pl.col("start_us"))
    proof.fail_rows(empty, "ends where it starts, or before")
    proof.fail_rows(rows.filter(pl.col("start_us") < pl.col("expected_us")), "overlaps the window before it")
    gaps = rows.filter(pl.col("complete"), pl.col("start_us") > pl.col("expected_us"))
    proof.fail_rows(gaps, "there is a gap before it, though its unit is complete")
    proof.fail_rows(
        rows.filter(pl.col("end_us") > pl.col("duration_us")), "reaches past the end of the video"
    )
    ends = rows.group_by("unit_id").agg(pl.col("end_us").max().alias("start_us"))
    short = units.filter(pl.col("complete")).join(ends, on="unit_id", how="left")
    short = short.with_columns(pl.col("start_us").fill_null(0), pl.col("duration_us").alias("end_us"))
    missing = short.filter(pl.col("start_us") < pl.col("end_us"))
    proof.fail_rows(missing, "is in no window, though the unit is complete")
    _grid(proof, units, rows)


def _window_us(evidence: Evidence, units: pl.DataFrame) -> pl.Series:
    lengths = {key: producer.options.get("window_us") for key, producer in evidence.producers.items()}
    return pl.Series("window_us", [lengths.get(key) for key in units["producer_id"]], pl.Int64)


def _grid(proof: Proof, units: pl.DataFrame, rows: pl.DataFrame) -> None:
    units = units.filter(pl.col("window_us") > 0, pl.col("duration_us") >= 0)
    wanted = units.select("duration_us", "window_us").unique()
    spans = [
        (duration_us, window_us, span.start_us, span.end_us)
        for duration_us, window_us in wanted.iter_rows()
        for span in windows(duration_us, window_us)
    ]
    grid = pl.DataFrame(spans, schema=_GRID, orient="row")
    rows = rows.join(units.select("unit_id"), on="unit_id", how="semi")
    keys = ["duration_us", "window_us", "start_us", "end_us"]
    proof.fail_rows(rows.join(grid, on=keys, how="anti"), "is no window of its scale")
    all_of = units.filter(pl.col("complete")).join(grid, on=keys[:2])
    lacking = all_of.join(rows, on=["unit_id", *keys], how="anti")
    proof.fail_rows(lacking, "has no outcome, though its unit is complete")


def written(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Every window has as many entries as it says, and every entry a window; all agree on what they are."""
    producers = evidence.producer_rows.select("producer_id", pl.col("kind", "scale").name.prefix("right_"))
    own = portion.units.join(producers, on="producer_id")
    wrong = own.filter((pl.col("kind") != pl.col("right_kind")) | (pl.col("scale") != pl.col("right_scale")))
    proof.fail_rows(wrong, "unit is {kind} {scale}, its producer {right_kind} {right_scale}")
    same = ["asset_id", "producer_id", "kind", "scale"]
    units = portion.units.select("unit_id", pl.col(*same, "condition_id").name.prefix("right_"))
    coverage = portion.coverage.join(units, on="unit_id")
    _disagreeing(proof, coverage, same, "window")
    # A speech unit also writes the sounds that cues describe.
    kind = pl.col("kind").replace("sound", "speech")
    entries = portion.entries.with_columns(kind).join(units, on="unit_id")
    _disagreeing(proof, entries, [*same, "condition_id"], "entry {entry_id}")
    found = portion.entries.group_by("unit_id", pl.col("window_start_us").alias("start_us")).len("found")
    rows = coverage.join(found, on=["unit_id", "start_us"], how="left").with_columns(
        pl.col("found").fill_null(0)
    )
    proof.looked += len(rows) + len(portion.entries)
    proof.fail_rows(
        rows.filter(pl.col("found") != pl.col("entries")), "has {found} entries, its row says {entries}"
    )
    of_entries, writes = ~pl.col("kind").is_in(DERIVED), pl.col("outcome").is_in(_WRITING)
    none = rows.filter(of_entries, writes, pl.col("entries") == 0)
    proof.fail_rows(none, "has the outcome {outcome}, but no entries")
    never = ~writes & (pl.col("outcome") != Outcome.STALE.value)
    some = rows.filter(never, pl.col("entries") > 0)
    proof.fail_rows(some, "has the outcome {outcome}, but {entries} entries")
    windows_of = coverage.select("unit_id", pl.col("start_us").alias("window_start_us"))
    stray = portion.entries.join(windows_of, on=["unit_id", "window_start_us"], how="anti")
    proof.fail_rows(stray, "entry {entry_id} belongs to no window: none begins at {window_start_us} us")


def _disagreeing(proof: Proof, rows: pl.DataFrame, columns: list[str], what: str) -> None:
    """Rows that say another asset, producer, kind or scale than their unit does."""
    for column in columns:
        wrong = rows.filter(pl.col(column).ne_missing(pl.col(f"right_{column}")))
        proof.fail_rows(wrong, f"{what} has {column} {{{column}}}, its unit {{right_{column}}}")


def unit_sums(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """Unit rows equal what their windows sum to."""
    counted = [(pl.col("outcome") == each.value).sum().cast(pl.Int64).alias(each.value) for each in OUTCOMES]
    sums = portion.coverage.group_by("unit_id").agg(
        pl.len().cast(pl.Int64).alias("windows"),
        *counted,
        pl.col("seconds").sum(),
        *(pl.col(n).sum() for n in _SUMS),
    )
    worst = pl.lit("")
    for outcome in OUTCOMES:
        worst = pl.when(pl.col(outcome.value) > 0).then(pl.lit(outcome.value)).otherwise(worst)
    right = portion.units.select("unit_id").join(sums, on="unit_id", how="left").fill_null(0)
    right = right.with_columns(worst.alias("worst_outcome")).rename(lambda name: f"right_{name}")
    rows = portion.units.join(right, left_on="unit_id", right_on="right_unit_id")
    proof.looked += len(rows)
    for column in ("windows", *(outcome.value for outcome in OUTCOMES), *_SUMS, "worst_outcome"):
        wrong = rows.filter(pl.col(column) != pl.col(f"right_{column}"))
        proof.fail_rows(wrong, f"unit says {column} {{{column}}}, its windows {{right_{column}}}")
    off = (pl.col("seconds") - pl.col("right_seconds")).abs() > 1e-6 * pl.col("right_seconds").clip(1.0)
    proof.fail_rows(rows.filter(off), "unit says seconds {seconds}, its windows {right_seconds}")


def references(proof: Proof, evidence: Evidence) -> None:
    """Unit ids are hashes of their parts, and whatever is named is there."""
    for row in evidence.units.to_dicts():
        right = content_hash([row["asset_id"], row["producer_id"], row["condition_id"]])
        if row["unit_id"] != right:
            proof.fail(f"unit id is not the hash of its asset, producer and condition ({right})", **row)
    known = evidence.videos.select("asset_id")
    made_by = evidence.producer_rows.select("producer_id")
    without = evidence.units.join(known, on="asset_id", how="anti")
    proof.fail_rows(without, "its video {asset_id} is not in table videos")
    orphans = evidence.units.join(made_by, on="producer_id", how="anti")
    proof.fail_rows(orphans, "its producer {producer_id} is not in table producers")
    unprobed = evidence.names.join(known, on="asset_id", how="anti")
    if waiting := unprobed.join(evidence.units, on="asset_id", how="anti").height:
        proof.notes.append(f"{waiting} video names are of files that no run has probed so far")
    lost = unprobed.join(evidence.units, on="asset_id", how="semi")
    proof.fail_rows(lost, "video name {name!r} points to a video that is not in table videos")
    rootless = evidence.names.join(evidence.read("roots"), on="root_id", how="anti")
    proof.fail_rows(rootless, "video name {name!r} is of root {root_id}, which is not in table roots")
    columns = {"coverage": "unit_id", "entries": "unit_id"}
    columns |= {"supports": "support_unit_id", "tags": "tag_unit_id"}
    columns |= dict.fromkeys(evidence.vector_tables, "embed_unit_id")
    for table, column in columns.items():
        strangers = evidence.strangers(table, column)
        proof.fail_rows(strangers, f"{{rows}} rows of table {table} are of a unit that is not in table units")
    proof.looked += len(evidence.names)
