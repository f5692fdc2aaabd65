"""Values of ``schemas`` as rows of the tables, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, FrameRef, Link, Support, Vector, WindowResult
from evicat.schemas.errors import AssetError
from evicat.schemas.identity import Producer
from evicat.schemas.model import canonical_json
from evicat.schemas.naming import storable
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import Span

from .tables import PER_SOURCE

Row = dict[str, Any]

_OF_ENTRY = (
    "entry_id",
    "unit_id",
    "asset_id",
    "producer_id",
    "condition_id",
    "kind",
    "scale",
    "text",
    "record",
)
_OF_SHOWN = ("time_base", "shown_width", "shown_height", "speaker", "language", "boundary")
_ENTRY_SAME = (*_OF_ENTRY, *_OF_SHOWN)
_VECTOR_SAME = ("entry_id", "part", "unit_id", "asset_id", "producer_id", "kind", "scale")
_SUPPORT_SAME = ("entry_id", "sentence", "unit_id", "asset_id", "producer_id", "text", "role")
_COST = ("attempts", "seconds", "prompt_tokens", "completion_tokens")
_RESULT_SAME = ("error_class", "message", *_COST, "context_hash")
"""Columns that are called as the fields are and hold the same."""


def entry_row(entry: Entry, window_start_us: int) -> Row:
    return {name: getattr(entry, name) for name in _ENTRY_SAME} | {
        "start_s": entry.span.start_s,
        "end_s": entry.span.end_s,
        "window_start_us": window_start_us,
        "frames": [frame.model_dump() for frame in entry.frames],
        "objects": [box.model_dump() for box in entry.objects],
        "flags": list(entry.flags),
        "tokens": {"prompt": entry.prompt_tokens, "completion": entry.completion_tokens},
        "factors": [],
    }


def entry_from_row(row: Row) -> Entry:
    return Entry(
        **{name: row[name] for name in _ENTRY_SAME},
        span=Span.from_seconds(row["start_s"], row["end_s"]),
        frames=tuple(FrameRef(**frame) for frame in row["frames"]),
        objects=tuple(ObjectBox(**box) for box in row["objects"]),
        flags=tuple(row["flags"]),
        prompt_tokens=row["tokens"]["prompt"],
        completion_tokens=row["tokens"]["completion"],
    )


def vector_row(vector: Vector, embed_unit_id: str, window_start_us: int) -> Row:
    return {name: getattr(vector, name) for name in _VECTOR_SAME} | {
        "embed_unit_id": embed_unit_id,
        "window_start_us": window_start_us,
        "start_s": vector.span.start_s,
        "end_s": vector.span.end_s,
        "vector": vector.vector,
    }


def vector_from_row(row: Row) -> Vector:
    return Vector(
        **{name: row[name] for name in _VECTOR_SAME},
        span=Span.from_seconds(row["start_s"], row["end_s"]),
        vector=None if row["vector"] is None else tuple(row["vector"]),
    )


def support_row(support: Support, support_unit_id: str, window_start_us: int) -> Row:
    return {name: getattr(support, name) for name in _SUPPORT_SAME} | {
        "support_unit_id": support_unit_id,
        "window_start_us": window_start_us,
        "start_s": support.span.start_s,
        "end_s": support.span.end_s,
        "rests_on": [link.model_dump() for link in support.rests_on],
    }


def support_from_row(row: Row) -> Support:
    return Support(
        **{name: row[name] for name in _SUPPORT_SAME},
        span=Span.from_seconds(row["start_s"], row["end_s"]),
        rests_on=tuple(Link(**link) for link in row["rests_on"]),
    )


def result_row(result: WindowResult, unit_id: str) -> Row:
    """A row of a staged file."""
    start_us = result.span.start_us
    return {name: getattr(result, name) for name in _RESULT_SAME} | {
        "start_us": start_us,
        "end_us": result.span.end_us,
        "outcome": result.outcome.value,
        "raw": result.raw or None,
        "entries": [entry_row(entry, start_us) for entry in result.entries],
        "vectors": [vector_row(vector, unit_id, start_us) for vector in result.vectors],
        "supports": [support_row(support, unit_id, start_us) for support in result.supports],
    }


def result_from_row(
    row: Row, entries: Sequence[Row], vectors: Sequence[Row], supports: Sequence[Row]
) -> WindowResult:
    """A result from a row of a staged file or of ``coverage`` (whose times the caller made whole)."""
    return WindowResult(
        **{name: row[name] for name in _RESULT_SAME},
        span=Span(row["start_us"], row["end_us"]),
        outcome=row["outcome"],
        raw=row["raw"] or "",
        entries=tuple(map(entry_from_row, entries)),
        vectors=tuple(map(vector_from_row, vectors)),
        supports=tuple(map(support_from_row, supports)),
    )


def producer_row(producer: Producer) -> Row:
    model = producer.model
    return {
        "producer_id": producer.producer_id,
        "kind": producer.kind,
        "scale": producer.scale,
        "component": producer.component,
        "version": producer.version,
        "model_name": model.name if model else "",
        "model_revision": model.revision if model else "",
        "model_digest": model.digest if model else "",
        "model_quantization": model.quantization if model else "",
        "reads": list(producer.reads),
        "facts": canonical_json(producer.model_dump(mode="json")),
    }


DEFAULT_VIEW = "default"


def view_row(producer: Producer) -> Row:
    """``producer`` as the active one of its kind and scale; embedders and taggers whatever they read."""
    active = producer.model_copy(update={"reads": ()}) if producer.kind in PER_SOURCE else producer
    return {
        "view": DEFAULT_VIEW,
        "kind": producer.kind,
        "scale": producer.scale,
        "producer_id": active.producer_id,
    }


def producer_from_row(row: Row) -> Producer:
    return Producer.model_validate_json(row["facts"])


def video_row(asset: Asset) -> Row:
    """``status`` is ``partial`` where the file ends before its header says so."""
    video = asset.video
    return {
        "asset_id": asset.asset_id,
        "source_id": asset.source_id,
        "status": "ok" if asset.decoded_until_us is None else "partial",
        "error_class": "",
        "message": "",
        "size_bytes": asset.size_bytes,
        "duration_s": asset.duration_us / 1_000_000,
        "width": video.width if video else None,
        "height": video.height if video else None,
        "codec": video.codec if video else None,
        "has_video": video is not None,
        "has_audio": asset.audio is not None,
        "facts": canonical_json(asset.model_dump(mode="json")),
    }


def failed_video_row(asset_id: str, size_bytes: int, error: AssetError) -> Row:
    return {
        "asset_id": asset_id,
        "source_id": asset_id,
        "status": "failed",
        "error_class": error.error_class,
        "message": storable(str(error)),
        "size_bytes": size_bytes,
        "duration_s": None,
        "width": None,
        "height": None,
        "codec": None,
        "has_video": False,
        "has_audio": False,
        "facts": None,
    }
