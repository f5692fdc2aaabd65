"""What is known of a media file before anything looks at its content."""

from __future__ import annotations

import hashlib

from .model import Model
from .span import Span


class ClockShift(Model):
    """Where the clock of a stream is set anew, and what puts its packets back on one timeline."""

    packet: int
    """The first packet that this holds for, counted from 0 in the order of the file."""
    ticks: int
    """What is added to its times, in the stream's time base; the clock of the source is PTS minus this."""


class VideoFacts(Model):
    """The chosen picture stream. Sizes are as displayed: after rotation, with square pixels."""

    stream_index: int
    codec: str
    width: int
    height: int
    rotation: int = 0
    sample_aspect_ratio: str = "1:1"
    pixel_format: str = ""
    color_transfer: str = ""
    time_base: str
    origin_pts: int
    """PTS, in ``time_base``, of the first presented frame: second 0 of the timeline."""
    frame_count: int
    """Presented packets; a bound on the frames that decode, not a promise."""
    average_rate: float | None = None
    interlaced: bool = False
    clock_shifts: tuple[ClockShift, ...] = ()
    """All PTS here and of frames are those of the file after these; nearly always there are none."""


class AudioFacts(Model):
    """The chosen sound stream."""

    stream_index: int
    codec: str
    sample_rate: int
    channels: int
    start_us: int
    """Where its first sample lies on the asset's timeline; negative: sound before the first picture."""
    language: str | None = None
    clock_shifts: tuple[ClockShift, ...] = ()


class SubtitleFacts(Model):
    """An embedded text stream."""

    stream_index: int
    codec: str
    language: str | None = None
    default: bool = False
    forced: bool = False
    """Only the foreign parts of the dialogue."""


ASSET_FLAGS = {
    "partial_file": "it ends before its header says so",
    "sound_before_picture": "by more than 0.1 s; that sound is left out",
    "empty_audio": "a sound stream without packets, and no other",
    "unreadable_audio": "sound packets, but none decodes",
    "unreadable_picture": "picture packets, but none decodes",
    "clock_reset": "its clock is set anew on the way; what comes after that follows without a gap",
    "clip_overruns": "the out point lies beyond the end of the file",
}
"""Every flag that an asset may carry, and what it means."""


class Asset(Model):
    """A media file identified by its bytes, and the facts of its timeline.

    The timeline runs from 0 to ``duration_us``; second 0 is the first presented frame of the picture
    stream, or the first sample where there is no picture. ``origin_us`` is that instant on the clock that
    the source file carries, so ``origin_us + t`` is what a stream-time tool shows for ``t``.
    """

    asset_id: str
    source_id: str
    size_bytes: int
    container: str
    duration_us: int
    origin_us: int
    container_start_us: int = 0
    """Start time that players subtract before they show a clock (side-car subtitles count from it)."""
    header_duration_us: int | None = None
    decoded_until_us: int | None = None
    """Set where the file ends before its header says so: the last good instant of the timeline."""
    video: VideoFacts | None = None
    audio: AudioFacts | None = None
    subtitles: tuple[SubtitleFacts, ...] = ()
    clip: Span | None = None
    """In and out points in the parent file, on the parent's timeline; None for a whole file."""
    flags: tuple[str, ...] = ()
    """See :data:`ASSET_FLAGS`."""


def clip_asset_id(parent_asset_id: str, clip: Span) -> str:
    """Identity of a cut ``[in, out)`` of a parent file: an asset of its own with the parent as source."""
    key = f"{parent_asset_id}|{clip.start_us}|{clip.end_us}"
    return hashlib.sha256(key.encode()).hexdigest()[:32]
