"""The declared schemas of answers: they hold whatever matched, also where nothing did."""

from __future__ import annotations

import polars as pl

FRAME = pl.Struct({"pts": pl.Int64(), "time_s": pl.Float64()})
BOX = pl.Struct(
    {
        "time_s": pl.Float64(),
        "name": pl.String(),
        **dict.fromkeys(("x1", "y1", "x2", "y2", "confidence"), pl.Float64()),
        "source": pl.String(),
    }
)
ENTRY_SCHEMA = pl.Schema(
    {
        "entry_id": pl.String(),
        "video": pl.String(),
        "asset_id": pl.String(),
        "start_s": pl.Float64(),
        "end_s": pl.Float64(),
        "kind": pl.String(),
        "scale": pl.String(),
        "text": pl.String(),
        "speaker": pl.String(),
        "language": pl.String(),
        "flags": pl.List(pl.String()),
        "factors": pl.List(pl.String()),
        "record": pl.String(),
        "frames": pl.List(FRAME),
        "objects": pl.List(BOX),
        "shown_width": pl.Int32(),
        "shown_height": pl.Int32(),
        "time_base": pl.String(),
        "producer_id": pl.String(),
        "condition_id": pl.String(),
        "boundary": pl.String(),
    }
)
"""An entry. ``video`` is the first of its asset's names; ``frames`` are those that were really shown."""
HIT_SCHEMA = pl.Schema({**ENTRY_SCHEMA, "score": pl.Float64()})
"""An entry that was found; a higher ``score`` is better, within one answer."""
MOMENT_SCHEMA = pl.Schema(
    {
        "video": pl.String(),
        "asset_id": pl.String(),
        "start_s": pl.Float64(),
        "end_s": pl.Float64(),
        "score": pl.Float64(),
        "text": pl.String(),
        "entry_ids": pl.List(pl.String()),
    }
)
"""A stretch of one video that neighbouring hits cover; ``score`` and ``text`` are those of the best."""
RELATED_SCHEMA = pl.Schema(
    {
        **{f"anchor_{name}": ENTRY_SCHEMA[name] for name in ("entry_id", "start_s", "end_s", "text")},
        "gap_s": pl.Float64(),
        **HIT_SCHEMA,
    }
)
"""A hit beside the one that it stands in relation to; ``gap_s`` between them is 0 where they share time."""
CITED_FRAME_SCHEMA = pl.Schema(
    {
        "entry_id": pl.String(),
        "asset_id": pl.String(),
        "shown_width": pl.Int32(),
        "pts": pl.Int64(),
        "time_s": pl.Float64(),
    }
)
LINK_COLUMNS = {
    "entry_id": pl.String(),
    "kind": pl.String(),
    "start_s": pl.Float64(),
    "end_s": pl.Float64(),
    "score": pl.Float64(),
}
"""Of each entry that a sentence rests on, best first."""
SUPPORT_SCHEMA = pl.Schema(
    {
        "entry_id": pl.String(),
        "video": pl.String(),
        "asset_id": pl.String(),
        "start_s": pl.Float64(),
        "end_s": pl.Float64(),
        "sentence": pl.Int32(),
        "role": pl.String(),
        "text": pl.String(),
        "rests_on": pl.List(pl.Struct(LINK_COLUMNS)),
    }
)

TAG_SCHEMA = pl.Schema(
    {
        "entry_id": pl.String(),
        "video": pl.String(),
        "asset_id": pl.String(),
        "start_s": pl.Float64(),
        "end_s": pl.Float64(),
        **dict.fromkeys(("factor_id", "verdict", "value"), pl.String()),
        "confidence": pl.Float64(),
        "field": pl.String(),
        "text_begin": pl.Int32(),
        "text_end": pl.Int32(),
        **dict.fromkeys(("tagger", "vocabulary"), pl.String()),
        "vocabulary_version": pl.Int32(),
        "made_by": pl.String(),
        "producer_id": pl.String(),
    }
)
"""A tag of an entry: ``verdict`` is ``yes`` or ``abstained``; ``text_begin``, ``text_end`` are characters."""
_COUNTS = {"factor": pl.String(), "entries": pl.UInt32(), "seconds": pl.Float64()}
_OF_VIDEO = {"video": pl.String(), "asset_id": pl.String()}
COUNT_SCHEMAS = {
    "factor": pl.Schema(_COUNTS),
    "video": pl.Schema({**_OF_VIDEO, **_COUNTS}),
    "time": pl.Schema({**_OF_VIDEO, "bin_s": pl.Float64(), **_COUNTS}),
}
"""Counts of entries with a factor: over all, by video, or by bin of a video's time, from ``bin_s`` on."""
TOGETHER_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("factor_a", "factor_b"), pl.String()),
        "entries": pl.UInt32(),
        **dict.fromkeys(("share", "lift"), pl.Float64()),
    }
)
"""Two factors: entries with both, as a share of those with either, and as a multiple of chance."""
