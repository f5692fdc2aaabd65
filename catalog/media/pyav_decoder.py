"""The default decoder: one sequential pass by PyAV, in which stretches that nobody wants are not decoded.

A group of pictures runs from one keyframe to the next. Packets are held until it is clear that a wanted
instant lies in their group (then they are decoded) or that none does (then they are dropped, and the decoder
starts anew at a later keyframe). Nothing seeks, so nothing depends on a container's index. Where a file
breaks what this rests on - a keyframe that does not decode by itself, times that run back - all of it is
decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evicat.schemas.asset import Asset

from .clock import Clock
from .frames import Candidate, Found, Selection
from .picture import PictureMaker
from .streams import Damage, Order, decode_packet, only, open_media, packets, stamp

_HELD_PACKETS = 600
_HELD_BYTES = 32 << 20
"""A group that grows beyond either is decoded whether it is wanted or not: memory stays bounded."""


def decode(
    path: Path, asset: Asset, selection: Selection, *, skipping: bool = True
) -> Iterator[Found | None]:
    """Bring the frames of ``asset`` to ``selection``; see ``loaders`` for the contract.

    ``skipping`` off decodes every packet; the frames are the same.
    """
    for skip in (True, False) if skipping else (False,):
        with open_media(path) as container:
            one_pass = _Pass(path, container, asset, selection, skip)
            yield from one_pass.run()
        if one_pass.is_exact:
            return
        selection.start_over()


class _Pass:
    """One pass over the file."""

    def __init__(self, path: Path, container: Any, asset: Asset, selection: Selection, skip: bool) -> None:
        assert asset.video is not None
        self._path = path
        self._container = container
        self._stream = only(container, asset.video.stream_index)
        self._stream.thread_type = "AUTO"
        self._codec = self._stream.codec_context
        self._clock = Clock.of(asset.video)
        self._shifts = asset.video.clock_shifts
        self._end_us = asset.duration_us
        self._selection = selection
        self._pictures = PictureMaker(asset.video.sample_aspect_ratio)
        self._damage = Damage()
        self._order = Order(self._damage) if Order.is_needed(container, self._stream) else None
        self._skip = skip and self._order is None
        self._held: list[Any] = []
        self._held_bytes = 0
        self._start_us = 0
        self._latest_us: int | None = None
        """Latest time in the group so far."""
        self._feeding = True
        """Whether the packets of this group go to the decoder as they come."""
        self._previous_fed = True
        self._is_running = True
        """Whether the decoder has all packets since the keyframe that it began with."""
        self._expected_us: int | None = None
        """After a new beginning: the time that the first frame must have."""
        self.is_exact = True

    def run(self) -> Iterator[Found | None]:
        for packet in packets(self._container, self._stream, self._shifts):
            yield from self._take(packet) if packet.size else self._finish()
            yield from self._selection.take_complete()
            yield None
            if self._selection.is_settled or not self.is_exact:
                break
        self._damage.report(self._path)

    def _take(self, packet: Any) -> Iterator[Found | None]:
        time_us = None if packet.pts is None else self._clock.time_us(packet.pts)
        if self._skip and (time_us is None or (packet.is_keyframe and self._runs_back(time_us))):
            self._skip = False
        if time_us is None or not self._skip:
            yield from self._feed_held()
            yield from self._decode(packet)
        else:
            yield from self._sort_in(packet, time_us)

    def _sort_in(self, packet: Any, time_us: int) -> Iterator[Found | None]:
        """Decode the packet if its group is wanted; else hold it."""
        if packet.is_keyframe:
            yield from self._begin_group(time_us)
        self._latest_us = time_us if self._latest_us is None else max(self._latest_us, time_us)
        if self._feeding:
            yield from self._decode(packet)
            return
        self._held.append(packet)
        self._held_bytes += packet.size
        if self._is_needed(time_us):
            yield from self._feed_held()

    def _runs_back(self, keyframe_us: int) -> bool:
        return self._latest_us is not None and keyframe_us <= self._latest_us

    def _is_needed(self, time_us: int) -> bool:
        """Whether the held group must be decoded, by the part of it that is known."""
        leads = self._previous_fed and time_us < self._start_us
        too_large = len(self._held) > _HELD_PACKETS or self._held_bytes > _HELD_BYTES
        latest_us = self._start_us if self._latest_us is None else self._latest_us
        return leads or too_large or self._selection.wants(self._start_us, latest_us + 1)

    def _begin_group(self, start_us: int) -> Iterator[Found | None]:
        if not self._feeding:
            yield from self._close_group(start_us)
        self._previous_fed, self._feeding = self._feeding, False
        self._start_us, self._latest_us = start_us, None

    def _close_group(self, end_us: int | None) -> Iterator[Found | None]:
        """The held group is whole and lasts until ``end_us``: decode it or drop it."""
        if not self._selection.wants(self._start_us, end_us):
            yield from self._drain()
            if not self.is_exact:
                return
            self._selection.pass_by(self._start_us)
            if not self._selection.waits:
                self._held, self._held_bytes = [], 0
                return
        yield from self._feed_held()

    def _feed_held(self) -> Iterator[Found | None]:
        held, self._held, self._held_bytes = self._held, [], 0
        if held and not self._is_running:
            self._codec.flush_buffers()
            self._selection.pass_by(self._start_us)
            self._expected_us = None if held[0].is_discard else self._start_us
            self._is_running = True
        self._feeding = True
        for packet in held:
            yield from self._decode(packet)

    def _drain(self) -> Iterator[Found | None]:
        if self._is_running:
            yield from self._decode(None)
            self._is_running = False
            self.is_exact = self.is_exact and self._expected_us is None

    def _decode(self, packet: Any) -> Iterator[Found | None]:
        for frame in self._frames(packet):
            pts = stamp(frame)
            time_us = self._clock.time_us(pts)
            if self._expected_us is not None and time_us >= self._expected_us:
                self.is_exact = time_us == self._expected_us
                self._expected_us = None
            if not self.is_exact:
                return
            if time_us >= self._end_us:
                self._selection.end()
            else:
                self._selection.show(Candidate(pts, time_us, partial(self._pictures.image, frame)))
        yield from self._selection.take_complete()
        yield None

    def _frames(self, packet: Any) -> list[Any]:
        if self._order:
            return self._order.decode(self._codec, packet)
        return decode_packet(self._codec, packet, self._damage)

    def _finish(self) -> Iterator[Found | None]:
        if self._held:
            yield from self._close_group(None)
        yield from self._drain()
        if self.is_exact:
            self._selection.end()
