"""Proofs about what was read: producers fit their ids, contexts still hold, side-cars are the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import ValidationError

from evicat.catalog.context import context_hash, embedded_in, past_texts, shown_in
from evicat.catalog.evidence import Evidence, Portion
from evicat.catalog.job import speech_inputs, subtitle_track
from evicat.catalog.proof import Proof
from evicat.catalog.sources import Source, read_manifest
from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, Outcome
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.naming import VideoName, storable
from evicat.schemas.records import NarrativeRecord
from evicat.schemas.span import Span, to_us
from evicat.storage.rows import producer_from_row, producer_row
from evicat.storage.sql import sql_in
from evicat.storage.tables import DERIVED, EMBEDDING, TAG

_UP_TO_DATE = [outcome.value for outcome in Outcome if outcome.may_be_stale]
"""What must have read what is there now; others wrote nothing, or are marked as outdated."""


def producer_facts(proof: Proof, evidence: Evidence) -> None:
    """The stored facts of every producer hash to its id, and its other columns say the same."""
    known = set(evidence.producer_rows["producer_id"])
    for row in evidence.producer_rows.to_dicts():
        proof.looked += 1
        title = f"producer {row['producer_id']} ({row['component']}, {row['scale']})"
        try:
            producer = producer_from_row(row)
        except ValidationError as error:
            proof.fail(f"{title}: its facts cannot be read: {error.errors()[0]['msg']}")
            continue
        if producer.producer_id != row["producer_id"]:
            proof.fail(f"{title}: its facts hash to {producer.producer_id}")
        for column, right in producer_row(producer).items():
            if column not in ("producer_id", "facts") and row[column] != right:
                proof.fail(f"{title}: column {column} says {row[column]!r}, its facts {right!r}")
        for read in set(producer.reads) - known:
            proof.fail(f"{title} reads producer {read}, which is not in table producers")


def contexts(proof: Proof, evidence: Evidence, portion: Portion) -> None:
    """What windows and chunks read is what is stored: the hashes of it are made again."""
    readers = {key: each for key, each in evidence.producers.items() if each.reads or _reads_past(each)}
    rows = portion.coverage.filter(
        pl.col("producer_id").is_in(list(readers)),
        pl.col("outcome").is_in(_UP_TO_DATE),
        pl.col("start_us") >= 0,
        pl.col("start_us") < pl.col("end_us"),
    )
    sources = {asset_id for asset_id, *_ in rows.select("asset_id").unique().iter_rows()}
    read = {producer_id for producer in readers.values() for producer_id in producer.reads}
    entries = _entries(portion, sources, read)
    pasts = _pasts(evidence, portion)
    for (asset_id, producer_id), windows in rows.group_by("asset_id", "producer_id"):
        producer = readers[str(producer_id)]
        own = [each for source in producer.reads for each in entries.get((str(asset_id), source), ())]
        kinds = {evidence.producers[key].kind for key in producer.reads if key in evidence.producers}
        timeline = _Timeline(own, ordered=producer.kind != EMBEDDING)
        past = pasts.get((str(asset_id), str(producer_id)), [])
        _check_contexts(proof, producer, timeline, kinds, windows, past)


def _reads_past(producer: Producer) -> bool:
    return bool(producer.options.get("reads_past"))


def _pasts(evidence: Evidence, portion: Portion) -> dict[tuple[str, str], list[tuple[int, list[str]]]]:
    """By asset and producer that reads its own past: start of each narrative, what the next reads of it."""
    producers = [key for key, each in evidence.producers.items() if _reads_past(each)]
    units = portion.units.filter(pl.col("producer_id").is_in(producers))["unit_id"].to_list()
    found: dict[tuple[str, str], list[tuple[int, list[str]]]] = defaultdict(list)
    if not units:
        return found
    columns = ["asset_id", "producer_id", "start_s", "record"]
    rows = evidence.reader.dataset("entries").to_table(filter=sql_in("unit_id", units), columns=columns)
    for row in rows.sort_by("start_s").to_pylist():
        try:
            record = NarrativeRecord.model_validate_json(row["record"])
        except ValidationError:
            continue  # the windows after it then read something else than is there, and are told so
        texts = past_texts(record.narrative, record.cast)
        found[row["asset_id"], row["producer_id"]].append((to_us(row["start_s"]), texts))
    return found


def _entries(portion: Portion, assets: set[str], producers: set[str]) -> dict[tuple[str, str], list[Entry]]:
    """Entries of these assets and producers, windows in order; with what contexts are made of."""
    rows = portion.entries.filter(
        pl.col("asset_id").is_in(list(assets)),
        pl.col("producer_id").is_in(list(producers)),
        pl.col("start_us") >= 0,
        pl.col("start_us") < pl.col("end_us"),
    ).sort("window_start_us", maintain_order=True)
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    columns = ("asset_id", "producer_id", "entry_id", "text", "kind", "start_us", "end_us", "flags")
    for asset_id, producer_id, entry_id, text, kind, start_us, end_us, flags in rows.select(
        columns
    ).iter_rows():
        entry = Entry.model_construct(
            unit_id="",
            asset_id=asset_id,
            producer_id=producer_id,
            scale="",
            entry_id=entry_id,
            text=text,
            kind=kind,
            span=Span(start_us, end_us),
            flags=tuple(flags),
        )
        found[asset_id, producer_id].append(entry)
    return found


class _Timeline:
    """Entries that one unit may read, found by time."""

    def __init__(self, entries: list[Entry], *, ordered: bool) -> None:
        self.entries = sorted(entries, key=lambda each: (each.span, each.entry_id)) if ordered else entries
        self._starts = np.array([each.span.start_us for each in self.entries], np.int64)
        self._ends = np.array([each.span.end_us for each in self.entries], np.int64)

    def near(self, span: Span) -> list[Entry]:
        """Those that overlap ``span``, in order."""
        hits = np.flatnonzero((self._starts < span.end_us) & (self._ends > span.start_us))
        return [self.entries[index] for index in hits]


def _check_contexts(
    proof: Proof,
    producer: Producer,
    timeline: _Timeline,
    kinds: set[str],
    windows: pl.DataFrame,
    narratives: Sequence[tuple[int, list[str]]],
) -> None:
    for row in windows.sort("start_us").to_dicts():
        proof.looked += 1
        span = Span(row["start_us"], row["end_us"])
        near = timeline.near(span)
        is_derived = producer.kind in DERIVED
        read = embedded_in(span, near) if is_derived else shown_in(span, near, kinds)
        past = next((texts for start_us, texts in reversed(narratives) if start_us < span.start_us), ())
        if context_hash(read, past) != row["context_hash"]:
            proof.fail(
                f"it read other entries than the {len(read)} that are there now, and is not marked stale",
                **row,
            )


def shared_inputs(proof: Proof, evidence: Evidence) -> None:
    """Units that read the speech of an asset, and those that embed a unit, were made from the same inputs.

    Tags depend on the entries alone. A unit all of whose windows are stale is to be made again, and may
    differ.
    """
    reads = [
        (key, read)
        for key, producer in evidence.producers.items()
        for read in producer.reads
        if producer.kind == EMBEDDING or (producer.kind != TAG and _kind(evidence, read) == "speech")
    ]
    schema = {"producer_id": pl.String, "read": pl.String}
    pairs = pl.DataFrame(reads, schema=schema, orient="row")
    of_source = evidence.units.select(
        "asset_id",
        "condition_id",
        pl.col("producer_id").alias("read"),
        pl.col("scale").alias("source"),
        pl.col("inputs_hash").alias("right"),
    )
    units = evidence.units.filter(pl.col("stale") < pl.col("windows")).join(pairs, on="producer_id")
    rows = units.join(of_source, on=["asset_id", "condition_id", "read"])
    proof.looked += len(rows)
    wrong = rows.filter(pl.col("inputs_hash") != pl.col("right"))
    proof.fail_rows(
        wrong, "was made from inputs {inputs_hash!r}, but the unit {source} that it reads from {right!r}"
    )


def _kind(evidence: Evidence, producer_id: str) -> str:
    producer = evidence.producers.get(producer_id)
    return producer.kind if producer else ""


def sidecars(proof: Proof, evidence: Evidence) -> None:
    """Subtitles beside the videos are those that speech was made from, as far as files are in reach.

    Only for the active producer: what another recipe would read of them now, nobody looks at.
    """
    shown = set(evidence.reader.view().values())
    names = _names(evidence)
    places = _Places(evidence)
    facts = dict(evidence.videos.select("asset_id", "facts").iter_rows())
    unknown: Counter[str] = Counter()
    for unit in evidence.units.filter(pl.col("kind") == "speech").to_dicts():
        producer = evidence.producers.get(unit["producer_id"])
        if producer is None or producer.producer_id not in shown:
            unknown["their producer is not the active one"] += 1
            continue
        if producer.options.get("subtitles") == "never" or not facts.get(unit["asset_id"]):
            continue
        try:
            asset = Asset.model_validate_json(facts[unit["asset_id"]])
        except ValidationError:
            proof.fail("the facts of its video in table videos cannot be read", **unit)
            continue
        found = [places.inputs_hash(name, asset, producer) for name in names[unit["asset_id"]]]
        hashes = {each.inputs_hash for each in found if not each.unknown}
        if unit["inputs_hash"] in hashes:
            proof.looked += 1
        elif not hashes:
            unknown[next((each.unknown for each in found), "no video name is present")] += 1
        else:
            proof.looked += 1
            proof.fail("out of date: its subtitles came, went or changed since; index it again", **unit)
    for reason, count in sorted(unknown.items()):
        proof.notes.append(f"subtitles of {count} speech units were not compared with their files: {reason}")


def _names(evidence: Evidence) -> dict[str, list[VideoName]]:
    found: dict[str, list[VideoName]] = defaultdict(list)
    for row in evidence.names.filter(pl.col("missing_since").is_null()).sort("name").to_dicts():
        found[row["asset_id"]].append(VideoName.from_row(row))
    return found


class _Answer:
    """The inputs hash that a run would find now, or why that is not known."""

    def __init__(self, inputs_hash: str = "", unknown: str = "") -> None:
        self.inputs_hash = inputs_hash
        self.unknown = unknown


class _Places:
    """Where the files of video names lie, and what manifests say of their subtitles; each is read once."""

    def __init__(self, evidence: Evidence) -> None:
        self._roots = {row["root_id"]: row for row in evidence.read("roots").to_dicts()}
        self._manifests: dict[Path, dict[str, Source]] = {}

    def inputs_hash(self, name: VideoName, asset: Asset, producer: Producer) -> _Answer:
        root = self._roots.get(name.root_id)
        if root is None or not root["location"]:
            return _Answer(unknown="their root has no place here")
        location = Path(root["location"])
        subtitle, offset_us, language = None, 0, None
        if root["kind"] == "manifest":
            try:
                row = self._manifest(location)[name.name]
            except (UsageError, KeyError):
                return _Answer(unknown="their manifest is out of reach, or has no such row any more")
            location = location.parent
            subtitle, offset_us, language = row.subtitle, row.subtitle_offset_us, row.language
        path = location / name.path
        if not path.is_file() or path.stat().st_size != name.stamp.size_bytes:
            return _Answer(unknown="the video is out of reach, or was written to")
        track = subtitle_track([path], asset, producer.options.get("languages", ()), subtitle)
        return _Answer(speech_inputs(track, offset_us, language))

    def _manifest(self, location: Path) -> dict[str, Source]:
        if location not in self._manifests:
            self._manifests[location] = {storable(each.name): each for each in read_manifest(location)}
        return self._manifests[location]
