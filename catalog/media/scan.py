"""One pass over all packets of a file: where its streams really end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from evicat.schemas.span import US

from .clock import to_us
from .streams import open_media, stamp

_RECENT = 64


@dataclass
class StreamScan:
    """What the packets of one stream say. Times are on the source's clock, in the stream's time base."""

    time_base: Fraction
    packets: int = 0
    presented: int = 0
    last_pts: int | None = None
    last_duration: int = 0
    jumps_back: bool = False
    """Whether presented packets go back in time by more than a second."""
    _recent: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _last_dts: int | None = None

    def add(self, packet: Any) -> None:
        self.packets += 1
        pts = stamp(packet)
        if packet.is_discard or packet.is_corrupt or pts is None:
            return
        self.presented += 1
        self._recent.append(pts)
        if self.last_pts is None or pts >= self.last_pts:
            self.last_pts, self.last_duration = pts, packet.duration or 0
        if packet.dts is not None:
            if self._last_dts is not None and to_us(self._last_dts - packet.dts, self.time_base) > US:
                self.jumps_back = True
            self._last_dts = packet.dts

    def lasts(self, duration: int | None = None) -> int:
        """How long the last packet is shown: as it says, else the median step of those before it."""
        duration = self.last_duration if duration is None else duration
        times = sorted(set(self._recent))
        steps = [later - earlier for earlier, later in pairwise(times)]
        return duration or (round(median(steps)) if steps else 0)

    @property
    def end_us(self) -> int:
        """Where the last presented packet ends, on the source's clock."""
        return to_us((self.last_pts or 0) + self.lasts(), self.time_base)


@dataclass
class FileScan:
    """The streams of a file by index, and how the file ended."""

    streams: dict[int, StreamScan]
    ends_broken: bool = False
    """Whether the last packet is cut or the demuxer gave up."""

    @property
    def end_us(self) -> int:
        return max((s.end_us for s in self.streams.values() if s.last_pts is not None), default=0)


def scan_packets(path: Path) -> Iterator[FileScan | None]:
    """Read every packet once: None as signs of life, the scan at last.

    Raises:
        UnreadableMediaError: the file cannot be opened.
    """
    import av

    with open_media(path) as container:
        result = FileScan({s.index: StreamScan(s.time_base) for s in container.streams if s.time_base})
        try:
            for packet in container.demux():
                if packet.size:
                    result.ends_broken = packet.is_corrupt
                    if packet.stream_index in result.streams:
                        result.streams[packet.stream_index].add(packet)
                yield None
        except av.FFmpegError:
            result.ends_broken = True
        yield result
