"""Puts together what a file's header, its packets and its first frames say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evicat.schemas.asset import Asset, AudioFacts, SubtitleFacts, VideoFacts
from evicat.schemas.span import US

from .clock import to_us
from .picture import displayed_size, orientation
from .scan import FileScan, StreamScan
from .streams import pictures, stamp

_EARLY_SOUND_US = 100_000
_SHORTFALL_US = 500_000
"""A header may promise this much more than the packets hold before the file counts as partial."""

_KEEPS_ITS_WORD = ("mov,", "matroska", "avi", "wav", "flac", "asf")
"""Formats whose header states a duration; FFmpeg estimates that of the others (MP3, MPEG-TS)."""
_TEXT_CODECS = frozenset({"ass", "mov_text", "srt", "ssa", "subrip", "text", "webvtt"})


@dataclass(frozen=True)
class Chosen:
    """A stream that decodes, and its first frame."""

    index: int
    frame: Any
    scan: StreamScan

    @property
    def start_us(self) -> int:
        return to_us(stamp(self.frame), self.scan.time_base)


class Facts:
    """What is known of one file. At least one of ``picture`` and ``sound`` must be there."""

    def __init__(self, container: Any, scan: FileScan, picture: Chosen | None, sound: Chosen | None) -> None:
        leading = picture or sound
        assert leading is not None
        self._container = container
        self._scan = scan
        self._picture = picture
        self._sound = sound
        self._leading = leading
        self.origin_us = leading.start_us
        self._start_us: int = container.start_time or 0
        self.shortest_us = self._shortest_us()
        """What a single frame without a duration lasts."""

    def asset(self, asset_id: str, size_bytes: int, source_id: str) -> Asset:
        ends = [chosen.scan.end_us for chosen in (self._picture, self._sound) if chosen]
        return Asset(
            asset_id=asset_id,
            source_id=source_id,
            size_bytes=size_bytes,
            container=self._container.format.name,
            duration_us=max(max(ends) - self.origin_us, self.shortest_us),
            origin_us=self.origin_us,
            container_start_us=self._start_us,
            header_duration_us=self._header_duration_us(),
            video=self._video() if self._picture else None,
            audio=self._audio() if self._sound else None,
            subtitles=self._subtitles(),
            flags=tuple(self._flags()),
        )

    @property
    def sound_end_us(self) -> int | None:
        """Where the sound ends on the timeline."""
        return self._sound.scan.end_us - self.origin_us if self._sound else None

    @property
    def last_picture(self) -> StreamScan | None:
        return self._picture.scan if self._picture else None

    def _shortest_us(self) -> int:
        """By the stream's rate, but at most 1 s; else one tick."""
        rate = self._container.streams[self._leading.index].average_rate if self._picture else None
        return max(1, min(US, round(US / rate)) if rate else to_us(1, self._leading.scan.time_base))

    def _header_duration_us(self) -> int | None:
        found: int | None = self._container.duration
        name = self._container.format.name
        if found is not None and name.startswith("matroska"):
            # Matroska counts its duration from the clock's zero, not from the first block.
            found -= self._start_us
        if name == "avi" and self._picture:
            # FFmpeg cuts an AVI's duration to what the file holds; the promised frame count stays.
            stream = self._container.streams[self._picture.index]
            found = max(found or 0, to_us(stream.frames, stream.time_base))
        return found

    def _flags(self) -> Iterator[str]:
        promised_us = self._header_duration_us() if self._states_duration() else None
        held_us = self._scan.end_us - self._start_us
        if self._scan.ends_broken or (promised_us is not None and promised_us - held_us > _SHORTFALL_US):
            yield "partial_file"
        if self._picture and self._sound and self._sound.start_us < self.origin_us - _EARLY_SOUND_US:
            yield "sound_before_picture"
        if self._picture is None and self._has_packets(pictures(self._container)):
            yield "unreadable_picture"
        if self._sound is None and self._container.streams.audio:
            yield "unreadable_audio" if self._has_packets(self._container.streams.audio) else "empty_audio"
        if any(chosen and chosen.scan.is_reset for chosen in (self._picture, self._sound)):
            yield "clock_reset"

    def _states_duration(self) -> bool:
        name: str = self._container.format.name
        return name.startswith(_KEEPS_ITS_WORD)

    def _has_packets(self, streams: Any) -> bool:
        return any(s.index in self._scan.streams and self._scan.streams[s.index].packets for s in streams)

    def _video(self) -> VideoFacts:
        assert self._picture is not None
        frame, stream = self._picture.frame, self._container.streams[self._picture.index]
        aspect = stream.sample_aspect_ratio or Fraction(1)
        quarters = orientation(frame)[0]
        width, height = displayed_size(frame.width, frame.height, aspect, sideways=quarters % 2 == 1)
        return VideoFacts(
            stream_index=stream.index,
            codec=stream.codec_context.codec.canonical_name,
            width=width,
            height=height,
            rotation=frame.rotation,
            sample_aspect_ratio=f"{aspect.numerator}:{aspect.denominator}",
            pixel_format=frame.format.name,
            color_transfer=_transfer_name(frame.color_trc),
            time_base=str(stream.time_base),
            origin_pts=stamp(frame),
            frame_count=self._picture.scan.presented,
            average_rate=float(stream.average_rate) if stream.average_rate else None,
            interlaced=frame.interlaced_frame,
            clock_shifts=self._picture.scan.clock_shifts,
        )

    def _audio(self) -> AudioFacts:
        assert self._sound is not None
        frame, stream = self._sound.frame, self._container.streams[self._sound.index]
        return AudioFacts(
            stream_index=stream.index,
            codec=stream.codec_context.codec.canonical_name,
            sample_rate=frame.sample_rate,
            channels=frame.layout.nb_channels,
            start_us=self._sound.start_us - self.origin_us,
            language=_language(stream),
            clock_shifts=self._sound.scan.clock_shifts,
        )

    def _subtitles(self) -> tuple[SubtitleFacts, ...]:
        """Text streams."""
        from av.stream import Disposition

        texts = [
            s
            for s in self._container.streams.subtitles
            if s.codec_context and s.codec_context.name in _TEXT_CODECS
        ]
        return tuple(
            SubtitleFacts(
                stream_index=s.index,
                codec=s.codec_context.name,
                language=_language(s),
                default=bool(s.disposition & Disposition.default),
                forced=bool(s.disposition & Disposition.forced),
            )
            for s in texts
        )


def _transfer_name(value: int) -> str:
    """``smpte2084`` and the like; empty where the stream does not say."""
    from av.video.reformatter import ColorTrc

    try:
        transfer = ColorTrc(value)
    except ValueError:
        return str(value)
    return "" if transfer is ColorTrc.UNSPECIFIED else transfer.name.lower()


def _language(stream: Any) -> str | None:
    return stream.language if stream.language not in (None, "", "und") else None
