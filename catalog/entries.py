"""From what a component returned to entries: ids, provenance, text."""

from __future__ import annotations

from typing import cast

from evicat.catalog.describers.base import Description
from evicat.catalog.media.frame import Frame
from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, FrameRef, Kind
from evicat.schemas.identity import Unit, entry_id
from evicat.schemas.records import SpeechSegment
from evicat.schemas.span import Span


def described(unit: Unit, asset: Asset, span: Span, frames: tuple[Frame, ...], made: Description) -> Entry:
    """The entry of one described window; ``made.record`` must not be None."""
    if made.record is None:
        raise ValueError(f"nothing was described in {span}: an entry needs a record")
    return Entry(
        entry_id=entry_id(unit, span.start_us, 0),
        unit_id=unit.unit_id,
        asset_id=unit.asset_id,
        producer_id=unit.producer_id,
        condition_id=unit.condition_id,
        kind=cast(Kind, unit.kind),  # checked at its birth
        scale=unit.scale,
        span=span,
        text=made.text,
        record=made.record.model_dump_json(),
        frames=tuple(FrameRef(pts=frame.pts, time_s=frame.time_s) for frame in frames),
        time_base=asset.video.time_base if frames and asset.video else "",
        shown_width=frames[0].width if frames else None,
        shown_height=frames[0].height if frames else None,
        objects=getattr(made.record, "boxes", ()),
        flags=made.flags,
        prompt_tokens=made.prompt_tokens,
        completion_tokens=made.completion_tokens,
    )


def spoken(unit: Unit, segments: list[SpeechSegment]) -> tuple[Entry, ...]:
    """One entry per segment, of its kind; segments that begin at the same instant get successive ordinals."""
    entries: list[Entry] = []
    seen: dict[int, int] = {}
    for segment in segments:
        span = Span.from_seconds(segment.start_s, segment.end_s)
        ordinal = seen.get(span.start_us, 0)
        seen[span.start_us] = ordinal + 1
        entries.append(
            Entry(
                entry_id=entry_id(unit, span.start_us, ordinal),
                unit_id=unit.unit_id,
                asset_id=unit.asset_id,
                producer_id=unit.producer_id,
                condition_id=unit.condition_id,
                kind=segment.kind,
                scale=unit.scale,
                span=span,
                text=segment.text,
                record=segment.model_dump_json(),
                speaker=segment.speaker,
                language=segment.language,
                flags=segment.flags,
            )
        )
    return tuple(entries)
