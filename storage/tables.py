"""The tables of a catalog. These Arrow schemas are the only definition of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evicat.schemas.entry import Outcome
from evicat.schemas.identity import Producer

FILE_FORMAT = "2.1"
"""Lance file format of every table."""
EMBEDDING = "embedding"
"""Kind of the producers whose units hold vectors."""
SUPPORT = "support"
"""Kind of the producers whose units hold supports."""
TAG = "tags"
"""Kind of the producers whose units hold tags; their scale is the factor."""
DERIVED = frozenset({EMBEDDING, SUPPORT, TAG})
"""Kinds whose units write no entries: they go when what they read changes, and are made again."""
VECTORS = "vectors_"
"""How the names of vector tables begin; the first 8 digits of the embedder id follow."""

OUTCOMES = (
    Outcome.DONE,
    Outcome.EMPTY,
    Outcome.PARTIAL,
    Outcome.NO_FRAMES,
    Outcome.STALE,
    Outcome.REFUSED,
    Outcome.FAILED,
)
"""From best to worst."""


def _key(name: str, kind: Any = None) -> Any:
    return pa.field(name, kind or pa.string(), nullable=False)


def _maybe(name: str, kind: Any = None) -> Any:
    return pa.field(name, kind or pa.string())


_INT = pa.int32()
_LONG = pa.int64()
_REAL = pa.float64()
_FRAME = pa.struct([("pts", _LONG), ("time_s", _REAL)])
_BOX = pa.struct(
    [
        ("time_s", _REAL),
        ("name", pa.string()),
        *((corner, _REAL) for corner in ("x1", "y1", "x2", "y2", "confidence")),
        ("source", pa.string()),
    ]
)

ENTRIES = pa.schema(
    [
        *map(_key, ("entry_id", "unit_id", "asset_id", "producer_id", "condition_id", "kind", "scale")),
        _key("start_s", _REAL),
        _key("end_s", _REAL),
        _key("window_start_us", _LONG),  # start of the window that wrote it: the key of replacement
        _key("text"),
        _key("record"),
        _key("frames", pa.list_(_FRAME)),
        _key("time_base"),
        _maybe("shown_width", _INT),
        _maybe("shown_height", _INT),
        _key("objects", pa.list_(_BOX)),
        _maybe("speaker"),
        _maybe("language"),
        _key("flags", pa.list_(pa.string())),
        _key("tokens", pa.struct([("prompt", _INT), ("completion", _INT)])),
        _key("boundary"),
        _key("factors", pa.list_(pa.string())),
    ]
)

COVERAGE = pa.schema(
    [
        *map(_key, ("unit_id", "asset_id", "producer_id", "kind", "scale")),
        _key("start_s", _REAL),
        _key("end_s", _REAL),
        *map(_key, ("outcome", "error_class", "message")),
        _maybe("raw"),
        _key("attempts", _INT),
        _key("seconds", _REAL),
        _key("prompt_tokens", _INT),
        _key("completion_tokens", _INT),
        _key("context_hash"),
        _key("entries", _INT),
        _key("run_id"),
    ]
)

UNITS = pa.schema(
    [
        *map(_key, ("unit_id", "asset_id", "producer_id", "condition_id", "kind", "scale", "inputs_hash")),
        _key("complete", pa.bool_()),
        _key("windows", _INT),
        *(_key(outcome.value, _INT) for outcome in OUTCOMES),
        _key("worst_outcome"),
        _key("entries", _INT),
        _key("seconds", _REAL),
        _key("prompt_tokens", _LONG),
        _key("completion_tokens", _LONG),
        _key("run_id"),
    ]
)

VIDEOS = pa.schema(
    [
        _key("asset_id"),
        *map(_key, ("source_id", "status", "error_class", "message")),
        _key("size_bytes", _LONG),
        _maybe("duration_s", _REAL),
        _maybe("width", _INT),
        _maybe("height", _INT),
        _maybe("codec"),
        _key("has_video", pa.bool_()),
        _key("has_audio", pa.bool_()),
        _maybe("facts"),
    ]
)

NAMES = pa.schema(
    [
        *map(_key, ("root_id", "name", "asset_id", "path")),
        *(_key(stamp, _LONG) for stamp in ("size_bytes", "mtime_ns", "ctime_ns", "inode")),
        _maybe("clip_in_us", _LONG),
        _maybe("clip_out_us", _LONG),
        _maybe("benchmark"),
        _maybe("split"),
        _maybe("missing_since"),
    ]
)

ROOTS = pa.schema([*map(_key, ("root_id", "kind", "location"))])

PRODUCERS = pa.schema(
    [
        *map(_key, ("producer_id", "kind", "scale", "component")),
        _key("version", _INT),
        *map(_key, ("model_name", "model_revision", "model_digest", "model_quantization")),
        _key("reads", pa.list_(pa.string())),
        _key("facts"),
    ]
)

VIEWS = pa.schema([*map(_key, ("view", "kind", "scale", "producer_id"))])

_LINK = pa.struct([("entry_id", pa.string()), ("score", _REAL)])

SUPPORTS = pa.schema(
    [
        _key("support_unit_id"),
        _key("window_start_us", _LONG),  # 0: a unit has one result
        _key("entry_id"),
        _key("sentence", _INT),
        *map(_key, ("unit_id", "asset_id", "producer_id")),
        _key("start_s", _REAL),
        _key("end_s", _REAL),
        *map(_key, ("text", "role")),
        _key("rests_on", pa.list_(_LINK)),
    ]
)

PER_SOURCE = frozenset({EMBEDDING, TAG})
"""Kinds of which one producer works for each source that it reads: without ``reads`` they are one."""

TAGS = pa.schema(
    [
        _key("tag_unit_id"),
        _key("window_start_us", _LONG),  # start of the window that wrote it: the key of replacement
        *map(_key, ("entry_id", "factor_id", "made_by", "asset_id", "producer_id")),
        _key("start_s", _REAL),
        _key("end_s", _REAL),
        *map(_key, ("verdict", "value")),
        _maybe("confidence", _REAL),
        _key("field"),
        _maybe("text_begin", _INT),
        _maybe("text_end", _INT),
        _key("vocabulary"),
        _key("vocabulary_version", _INT),
        _key("tagger"),
    ]
)

VOCABULARIES = pa.schema(
    [_key("vocabulary"), _key("version", _INT), *map(_key, ("digest", "added", "facts"))]
)

_VECTOR_COLUMNS = [
    _key("embed_unit_id"),
    _key("window_start_us", _LONG),  # start of the chunk that wrote it: the key of replacement
    _key("entry_id"),
    _key("part", _INT),
    *map(_key, ("unit_id", "asset_id", "producer_id", "kind", "scale")),
    _key("start_s", _REAL),
    _key("end_s", _REAL),
]


def vectors_schema(dimension: int) -> pa.Schema:
    """Schema of a vector table; ``vector`` is null where the text could not be embedded."""
    return pa.schema([*_VECTOR_COLUMNS, _maybe("vector", pa.list_(pa.float32(), dimension))])


WINDOWS = pa.schema([_maybe("unit_id"), _maybe("window_start_us", _LONG)])
"""What names a window, or a chunk of an embedding unit, while a commit is worked out."""

STAGED = pa.schema(
    [
        _key("start_us", _LONG),
        _key("end_us", _LONG),
        *map(_key, ("outcome", "error_class", "message")),
        _maybe("raw"),
        _key("attempts", _INT),
        _key("seconds", _REAL),
        _key("prompt_tokens", _INT),
        _key("completion_tokens", _INT),
        _key("context_hash"),
        _key("entries", pa.list_(pa.struct(list(ENTRIES)))),
        _key("vectors", pa.list_(pa.struct([*_VECTOR_COLUMNS, _maybe("vector", pa.list_(pa.float32()))]))),
        _maybe("supports", pa.list_(pa.struct(list(SUPPORTS)))),
    ]
)
"""One row per window result, with what it wrote nested in it."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """How rows of a table are told apart, found, and indexed."""

    key: tuple[str, ...]
    lookup: str
    """The column by which rows are found before they are replaced."""
    indexed: tuple[str, ...] = ()
    """Columns with a BTREE."""
    few_values: tuple[str, ...] = ()
    """Columns with a BITMAP."""
    labels: tuple[str, ...] = ()
    """Columns of lists with an index of what is in them."""
    searched: str = ""
    """Column with a full-text index."""


FIXED_TABLES: dict[str, pa.Schema] = {
    "entries": ENTRIES,
    "coverage": COVERAGE,
    "units": UNITS,
    "videos": VIDEOS,
    "names": NAMES,
    "roots": ROOTS,
    "producers": PRODUCERS,
    "views": VIEWS,
    "supports": SUPPORTS,
    "tags": TAGS,
    "vocabularies": VOCABULARIES,
}
"""Tables that every catalog has from its start."""

_SPECS = {
    "entries": TableSpec(
        ("entry_id",), "unit_id", ("unit_id", "asset_id"), ("producer_id", "kind"), ("factors",), "text"
    ),
    "coverage": TableSpec(("unit_id", "start_s"), "unit_id", ("unit_id",)),
    "units": TableSpec(("unit_id",), "unit_id"),
    "videos": TableSpec(("asset_id",), "asset_id"),
    "names": TableSpec(("root_id", "name"), "name"),
    "roots": TableSpec(("root_id",), "root_id"),
    "producers": TableSpec(("producer_id",), "producer_id"),
    "views": TableSpec(("view", "kind", "scale"), "view"),
    "supports": TableSpec(
        ("support_unit_id", "entry_id", "sentence"), "support_unit_id", ("support_unit_id", "asset_id")
    ),
    "tags": TableSpec(
        ("tag_unit_id", "entry_id"), "tag_unit_id", ("tag_unit_id", "asset_id"), ("factor_id",)
    ),
    "vocabularies": TableSpec(("vocabulary", "version"), "vocabulary"),
}
_VECTOR_SPEC = TableSpec(
    ("embed_unit_id", "entry_id", "part"),
    "embed_unit_id",
    ("embed_unit_id", "unit_id", "asset_id"),
    ("producer_id", "kind"),
)


def holds_derived(table: str) -> bool:
    """Whether rows of a table belong to units of :data:`DERIVED` kinds, found by the table's ``lookup``."""
    return table in ("supports", "tags") or table.startswith(VECTORS)


def table_spec(name: str) -> TableSpec:
    return _VECTOR_SPEC if name.startswith(VECTORS) else _SPECS[name]


def embedder_id(producer: Producer) -> str:
    """What producers that embed with the same model into the same table have in common."""
    return producer.model_copy(update={"reads": ()}).producer_id


def vectors_table(embedder: str) -> str:
    """Name of the table of an embedder, given its id."""
    return VECTORS + embedder[:8]
