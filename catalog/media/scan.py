"""One pass over all packets of a file: where its streams really end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from evicat.schemas.asset import ClockShift
from evicat.schemas.errors import OutOfReachError

from .clock import to_us
from .resets import ClockTrack, align, follow
from .streams import DEVICE_ERRORS, LATE_STREAM, Order, open_media, stamp


class StreamScan:
    """What the packets of one stream say. Times are on the source's clock, in the stream's time base."""

    def __init__(self, time_base: Fraction, container: str, *, by_order: bool = False) -> None:
        self.time_base = time_base
        self._by_order = by_order
        self.packets = 0
        self.presented = 0
        self.clock = ClockTrack(time_base, container)

    def add(self, packet: Any) -> None:
        number = self.packets
        self.packets += 1
        pts = packet.dts if self._by_order else stamp(packet)
        if packet.is_discard or pts is None:
            return
        if packet.is_corrupt:
            self.clock.add_damaged(pts, packet.duration or 0)
            return
        self.presented += 1
        self.clock.add(number, packet.dts, pts, packet.duration or 0)

    @property
    def last_pts(self) -> int | None:
        """Time of the packet that is shown last."""
        last = self.clock.last
        return last.last_pts + last.shift if last and last.last_pts is not None else None

    def lasts(self, *, last_decodes: bool = True) -> int:
        """How long the last packet is shown: as it says, else the median step of those before it."""
        last = self.clock.last
        return last.lasts(last.last_duration if last_decodes else 0) if last else 0

    @property
    def end_us(self) -> int:
        """Where the last presented packet ends, on the source's clock."""
        return to_us((self.last_pts or 0) + self.lasts(), self.time_base)

    @property
    def clock_shifts(self) -> tuple[ClockShift, ...]:
        """What its packets need to lie on one timeline."""
        return self.clock.clock_shifts

    @property
    def is_reset(self) -> bool:
        """Whether its clock is set anew on the way."""
        return len(self.clock.eras) > 1


@dataclass
class FileScan:
    """The streams of a file by index, and how the file ended."""

    streams: dict[int, StreamScan]
    ends_broken: bool = False
    """Whether the last packet is cut or the demuxer gave up."""

    @property
    def end_us(self) -> int:
        return max((s.end_us for s in self.streams.values() if s.last_pts is not None), default=0)

    def align(self, picture: int | None, sound: int | None) -> bool:
        """Put these streams, at least one, on one timeline; whether any packet is moved for that."""
        chosen = [self.streams[index].clock for index in (picture, sound) if index is not None]
        return align(chosen[0], chosen[1] if len(chosen) > 1 else None)

    def follow(self, index: int, leading: int | None) -> None:
        """Put a further stream on the timeline of one that is settled by :meth:`align`."""
        if leading is not None and index != leading:
            follow(self.streams[index].clock, self.streams[leading].clock)


def _scan(container: Any, stream: Any) -> StreamScan:
    by_order = Order.is_needed(container, stream)
    return StreamScan(stream.time_base, container.format.name, by_order=by_order)


def scan_packets(path: Path) -> Iterator[FileScan | None]:
    """Read every packet once: None as signs of life, the scan at last.

    Raises:
        UnreadableMediaError: the file cannot be opened.
    """
    import av

    with open_media(path) as container:
        result = FileScan({s.index: _scan(container, s) for s in container.streams if s.time_base})
        try:
            for packet in container.demux():
                if packet.size:
                    result.ends_broken = packet.is_corrupt
                    if packet.stream_index in result.streams:
                        result.streams[packet.stream_index].add(packet)
                yield None
        except av.FFmpegError as error:
            if error.errno in DEVICE_ERRORS:
                raise OutOfReachError(f"{path}: reading failed: {error.strerror}") from None
            result.ends_broken = True
        except LATE_STREAM:
            pass
        yield result
