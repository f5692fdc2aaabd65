"""Big catalogs for the benches, made in seconds: rows go straight into the tables, by their real schemas.

Every asset gets the same layers. A layer is what one producer has written over a timeline: a unit row, a
coverage row per window (one chunk of 10 min where it embeds), and what the windows hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evicat.catalog.sources import Source
from evicat.schemas.asset import Asset, AudioFacts, VideoFacts
from evicat.schemas.grid import CHUNK_US
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp
from evicat.schemas.span import US
from evicat.storage.commit import move_head, open_tables
from evicat.storage.create import create_catalog
from evicat.storage.indexes import refresh
from evicat.storage.layout import Layout
from evicat.storage.rows import Row, producer_row, video_row, view_row
from evicat.storage.tables import (
    COVERAGE,
    ENTRIES,
    FIXED_TABLES,
    OUTCOMES,
    UNITS,
    embedder_id,
    vectors_schema,
    vectors_table,
)
from evicat.storage.transact import Tables

ASSETS_AT_ONCE = 500
"""Assets whose rows are in memory at a time."""
WORDS = np.array([f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "rt", "lo", "sha")])
"""What texts are made of, all equally frequent."""
TEXT_WORDS = 12
VOCABULARY = 12_000
"""Words of texts that are like captions; that of rank r is as frequent as 1 / (r + 2.7): Zipf, Mandelbrot."""
CAPTION_WORDS = 8, 60
"""How long such texts are: all lengths from the first to below the second alike."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one producer has written of every asset. ``embeds`` is the producer whose entries it embeds."""

    producer: Producer
    window_us: int
    writes_entries: bool = False
    embeds: Producer | None = None
    dimensions: int = 0
    clusters: int = 0
    """Vectors lie about so many centres, as those of captions do; 0: anywhere."""
    like_captions: bool = False
    """Texts are of different lengths, their words of different frequency; else 12 words, all alike."""


def put_files(folder: Path, count: int, folders: int = 5) -> list[Path]:
    """``count`` tiny files in a few folders, no two alike; nothing ever decodes them."""
    paths = []
    for number in range(count):
        home = folder / f"shelf{number % folders}"
        home.mkdir(parents=True, exist_ok=True)
        path = home / f"film {number:05d}.mp4"
        path.write_bytes(b"no film" + number.to_bytes(8, "big"))
        paths.append(path)
    return paths


def asset_of(path: Path, duration_us: int) -> Asset:
    """Facts as they would be of a film of that length, under the identity of the file's own bytes."""
    data = path.read_bytes()
    name = hashlib.sha256(data).hexdigest()[:32]
    return _asset(name, len(data), duration_us)


def numbered_assets(count: int, duration_us: int) -> list[Asset]:
    """Assets without files."""
    names = (hashlib.sha256(str(number).encode()).hexdigest()[:32] for number in range(count))
    return [_asset(name, 1, duration_us) for name in names]


def _asset(name: str, size_bytes: int, duration_us: int) -> Asset:
    return Asset(
        asset_id=name,
        source_id=name,
        size_bytes=size_bytes,
        container="mov,mp4",
        duration_us=duration_us,
        origin_us=0,
        video=VideoFacts(
            stream_index=0,
            codec="h264",
            width=640,
            height=360,
            time_base="1/12800",
            origin_pts=0,
            frame_count=duration_us // 40_000,
            average_rate=25.0,
        ),
        audio=AudioFacts(stream_index=1, codec="aac", sample_rate=48_000, channels=2, start_us=0),
    )


def write_catalog(
    uri: Path, assets: list[Asset], layers: list[Layer], sources: Sequence[Source] = ()
) -> None:
    """A catalog in which all layers of all assets are complete, indexed; ``sources`` name the assets."""
    create_catalog(uri)
    layout = Layout.of(uri)
    tables = open_tables(layout)
    rows: dict[str, list[Row]] = {
        "producers": [producer_row(layer.producer) for layer in layers],
        "views": list({row["scale"]: row for row in (view_row(layer.producer) for layer in layers)}.values()),
        "videos": [video_row(asset) for asset in assets],
        "roots": list({source.own_root.root_id: source.own_root.row() for source in sources}.values()),
        "names": [
            source.naming(asset.asset_id, FileStamp.of(source.path.stat())).row()
            for source, asset in zip(sources, assets, strict=bool(sources))
        ],
    }
    for name, several in rows.items():
        tables.replace(name, pa.Table.from_pylist(several, schema=FIXED_TABLES[name]))
    random = np.random.default_rng(7)
    for first in range(0, len(assets), ASSETS_AT_ONCE):
        for layer in layers:
            for name, table in _layer_tables(layer, assets[first : first + ASSETS_AT_ONCE], random):
                tables.ensure(name, table.schema)
                tables.replace(name, table)
    move_head(layout, tables)
    maintain(layout, tables)


def name_assets(uri: Path) -> None:
    """Give every asset a video name, as assets without files have none, and what has none is not shown."""
    layout = Layout.of(uri)
    tables = open_tables(layout)
    rows = tables.dataset("videos").to_table(columns=["asset_id"])["asset_id"].to_pylist()
    names = [
        {"root_id": "r", "name": f"{each}.mp4", "asset_id": each, "path": f"{each}.mp4"} for each in rows
    ]
    schema = tables.dataset("names").schema
    empty = {
        field.name: None if field.nullable else ("" if field.type == pa.string() else 0) for field in schema
    }
    tables.replace("names", pa.Table.from_pylist([empty | each for each in names], schema=schema))
    move_head(layout, tables)


def maintain(layout: Layout, tables: Tables) -> None:
    """Few big fragments and complete indexes, as after maintenance."""
    for name in tables.names():
        dataset = tables.dataset(name)
        if dataset.count_rows():
            dataset.optimize.compact_files()
            dataset.checkout_latest()
    refresh(tables)
    move_head(layout, tables)


def unit_of(asset: Asset, producer: Producer) -> Unit:
    return Unit(
        asset_id=asset.asset_id, producer_id=producer.producer_id, kind=producer.kind, scale=producer.scale
    )


SPREAD = 0.05
"""Standard deviation of each number about its centre: neighbours in 384 dimensions have cosines about 0.5."""


def directions(count: int, dimensions: int, random: np.random.Generator, clusters: int = 0) -> Any:
    """Random vectors of length 1, as float32 rows; of clusters, about the same centres at every call."""
    rows = random.standard_normal((count, dimensions), dtype=np.float32)
    if clusters:
        centres = directions(clusters, dimensions, np.random.default_rng(clusters))
        rows = centres[random.integers(clusters, size=count)] + SPREAD * rows
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _layer_tables(
    layer: Layer, assets: list[Asset], random: np.random.Generator
) -> Iterator[tuple[str, pa.Table]]:
    spans = _spans(assets[0].duration_us, CHUNK_US if layer.embeds else layer.window_us)
    units = [unit_of(asset, layer.producer) for asset in assets]
    of_window = _spans(assets[0].duration_us, layer.window_us)
    made = len(of_window) if layer.writes_entries or layer.dimensions else 0
    yield "units", pa.Table.from_pylist([_unit_row(unit, len(spans), made) for unit in units], schema=UNITS)
    yield "coverage", _coverage(units, spans, of_window if made else np.empty((0, 2), np.int64))
    if layer.writes_entries:
        yield "entries", _entries(units, of_window, layer, random)
    if layer.embeds and layer.dimensions:
        sources = [unit_of(asset, layer.embeds) for asset in assets]
        name = vectors_table(embedder_id(layer.producer))
        yield name, _vectors(units, sources, of_window, layer, random)


def _spans(duration_us: int, length_us: int) -> Any:
    """``(n, 2)`` microseconds that tile the timeline."""
    starts = np.arange(0, duration_us, length_us, dtype=np.int64)
    return np.stack([starts, np.minimum(starts + length_us, duration_us)], axis=1)


def _unit_row(unit: Unit, windows: int, entries: int) -> Row:
    outcome = "done" if entries else "empty"
    counts = dict.fromkeys((each.value for each in OUTCOMES), 0) | {outcome: windows}
    cost = {"seconds": 0.0, "prompt_tokens": 0, "completion_tokens": 0}
    facts = {"complete": True, "windows": windows, "worst_outcome": outcome, "entries": entries}
    return unit.model_dump() | counts | cost | facts | {"unit_id": unit.unit_id, "run_id": "bench"}


def _coverage(units: list[Unit], spans: Any, held: Any) -> pa.Table:
    """A row per unit and span; ``held`` are the spans of what the unit wrote."""
    at = np.searchsorted(spans[:, 0], held[:, 0], side="right") - 1
    counts = np.bincount(at, minlength=len(spans)) if len(held) else np.zeros(len(spans), int)
    outcomes = np.where(counts > 0, "done", "empty")
    of_span = {
        "start_s": spans[:, 0] / US,
        "end_s": spans[:, 1] / US,
        "entries": counts,
        "outcome": outcomes.astype(object),
    }
    return _table(
        COVERAGE, _of_units(units), of_span, {"attempts": 1, "run_id": "bench"}, len(units), len(spans)
    )


def _entries(units: list[Unit], spans: Any, layer: Layer, random: np.random.Generator) -> pa.Table:
    ids = [entry_id(unit, start, 0) for unit in units for start in spans[:, 0].tolist()]
    texts = captions(len(ids), random) if layer.like_captions else _plain_texts(len(ids), random)
    each = {"entry_id": ids, "text": texts}
    of_span = {"start_s": spans[:, 0] / US, "end_s": spans[:, 1] / US, "window_start_us": spans[:, 0]}
    same = {"record": "{}", "boundary": "none", "tokens": {"prompt": 0, "completion": 0}}
    return _table(ENTRIES, _of_units(units), of_span, same, len(units), len(spans), each)


def _plain_texts(count: int, random: np.random.Generator) -> list[str]:
    words = WORDS[random.integers(len(WORDS), size=(count, TEXT_WORDS))]
    return [" ".join(row) for row in words.tolist()]


def captions(count: int, random: np.random.Generator) -> list[str]:
    """Texts whose lengths and frequencies of words are like those of captions."""
    words = [f"{a}{b}" for a in WORDS[: VOCABULARY // len(WORDS)] for b in WORDS]
    reached = np.cumsum(1.0 / (np.arange(VOCABULARY) + 2.7))
    lengths = random.integers(*CAPTION_WORDS, size=count)
    drawn = np.searchsorted(reached / reached[-1], random.random(lengths.sum()), side="right").tolist()
    ends = np.cumsum(lengths).tolist()
    return [" ".join(words[at] for at in drawn[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


def _vectors(
    units: list[Unit], sources: list[Unit], spans: Any, layer: Layer, random: np.random.Generator
) -> pa.Table:
    ids = [entry_id(unit, start, 0) for unit in sources for start in spans[:, 0].tolist()]
    numbers = pa.array(directions(len(ids), layer.dimensions, random, layer.clusters).ravel())
    each = {"entry_id": ids, "vector": pa.FixedSizeListArray.from_arrays(numbers, layer.dimensions)}
    of_span = {
        "start_s": spans[:, 0] / US,
        "end_s": spans[:, 1] / US,
        "window_start_us": spans[:, 0] // CHUNK_US * CHUNK_US,
    }
    of_unit = _of_units(sources) | {"embed_unit_id": [unit.unit_id for unit in units]}
    return _table(vectors_schema(layer.dimensions), of_unit, of_span, {}, len(units), len(spans), each)


def _of_units(units: list[Unit]) -> dict[str, list[str]]:
    names = ("unit_id", "asset_id", "producer_id", "kind", "scale")
    return {name: [getattr(unit, name) for unit in units] for name in names}


def _table(
    schema: pa.Schema,
    of_unit: dict[str, list[str]],
    of_span: dict[str, Any],
    same: Row,
    units: int,
    spans: int,
    each: Row | None = None,
) -> pa.Table:
    """A row per unit and span. Columns go by the unit or the span, are the same throughout, or differ."""
    which: Any = np.repeat(np.arange(units), spans)

    def column(field: Any) -> Any:
        if each and field.name in each:
            return each[field.name]
        if field.name in of_unit:
            return pa.array(of_unit[field.name]).take(which)
        if field.name in of_span:
            return pa.array(np.tile(of_span[field.name], units), field.type)
        value = same.get(field.name, _empty(field))
        return pa.repeat(pa.scalar(value, field.type), units * spans)

    columns: Any = [pa.array(c, f.type) if isinstance(c := column(f), list) else c for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _empty(field: Any) -> Any:
    """What a column holds where there is nothing to say."""
    if field.nullable:
        return None
    if pa.types.is_list(field.type):
        return []
    return "" if pa.types.is_string(field.type) else 0
