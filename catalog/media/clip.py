"""A cut of a file as an asset of its own."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from evicat.schemas.asset import Asset, AudioFacts, VideoFacts, clip_asset_id
from evicat.schemas.errors import AssetError
from evicat.schemas.span import Span, format_time

from .clock import Clock
from .frame import Frame
from .frames import Wanted, decode_steps
from .streams import only, open_media, packets, stamp


def cut(path: Path, parent: Asset, clip: Span, *, sound_end_us: int | None) -> Generator[None, None, Asset]:
    """The facts of ``clip`` of ``parent``, given on the parent's timeline; None as signs of life.

    The cut starts at the first frame at or after the in point and before the out point, else (no picture, or
    none of it in there) at the in point. An out point beyond the end is cut and flagged ``clip_overruns``.

    Raises:
        AssetError: the in point lies at or beyond the end.
    """
    if clip.start_us >= parent.duration_us:
        raise AssetError(
            f"{path}: the clip starts at {format_time(clip.start_us)}, "
            f"but the file ends at {format_time(parent.duration_us)}"
        )
    inside = Span(clip.start_us, min(clip.end_us, parent.duration_us))
    first = yield from _first_frame(path, parent, inside)
    start_us = first.time_us if first else inside.start_us
    duration_us = inside.end_us - start_us
    video = None
    if parent.video is not None and first is not None:
        count = yield from _count_frames(path, parent.video, Span(start_us, inside.end_us))
        video = parent.video.model_copy(update={"origin_pts": first.pts, "frame_count": count})
    overruns = clip.end_us > parent.duration_us
    is_partial = overruns and parent.decoded_until_us is not None
    kept = [f for f in parent.flags if f not in ("partial_file", "sound_before_picture")]
    flags = [*kept, *(["partial_file"] if is_partial else []), *(["clip_overruns"] if overruns else [])]
    return parent.model_copy(
        update={
            "asset_id": clip_asset_id(parent.asset_id, clip),
            "source_id": parent.source_id,
            "duration_us": duration_us,
            "origin_us": parent.origin_us + start_us,
            "decoded_until_us": duration_us if is_partial else None,
            "video": video,
            "audio": _cut_audio(parent.audio, Span(start_us, inside.end_us), sound_end_us),
            "clip": clip,
            "flags": tuple(flags),
        }
    )


def _first_frame(path: Path, parent: Asset, inside: Span) -> Generator[None, None, Frame | None]:
    found: Frame | None = None
    for step in decode_steps(path, parent, [Wanted(inside, (inside.start_us,), max_width=16)]):
        if step is not None and step[1]:
            found = step[1][0]
        yield None
    return found


def _count_frames(path: Path, video: VideoFacts, inside: Span) -> Generator[None, None, int]:
    count = 0
    clock = Clock.of(video)
    with open_media(path) as container:
        for packet in packets(container, only(container, video.stream_index), video.clock_shifts):
            pts = stamp(packet)
            if pts is not None and not packet.is_discard and clock.time_us(pts) in inside:
                count += 1
            yield None
    return count


def _cut_audio(audio: AudioFacts | None, inside: Span, sound_end_us: int | None) -> AudioFacts | None:
    """The sound of the cut; None where none of it lies inside."""
    if audio is None or sound_end_us is None:
        return None
    if audio.start_us >= inside.end_us or sound_end_us <= inside.start_us:
        return None
    return audio.model_copy(update={"start_us": max(0, audio.start_us - inside.start_us)})
