"""The default decoder: one sequential pass by PyAV, in which stretches that nobody wants are not decoded.

A group of pictures runs from one keyframe to the next. Packets are held until it is clear that a wanted
instant lies in their group (then they are decoded) or that none does (then they are dropped, and the decoder
starts anew at a later keyframe). Nothing seeks, so nothing depends on a container's index. Where a file
breaks what this rests on - a keyframe that does not decode by itself, times that run back - all of it is
decoded.

What a decoder fills in or loses beside damage depends on how many threads it has. So the first pass stops at
the first sign of damage, and from shortly before it on everything is decoded by one thread: a file gives the
same frames on every machine, and a whole one pays nothing for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evicat.schemas.asset import Asset

from .clock import Clock
from .frames import Candidate, Found, Selection
from .losses import Losses
from .picture import PictureMaker
from .streams import Damage, Order, decode_packet, only, open_media, packets, stamp

_HELD_PACKETS = 600
_HELD_BYTES = 32 << 20
"""A group that grows beyond either is decoded whether it is wanted or not: memory stays bounded."""
_STRICT = {"err_detect": "explode"}
"""The decoder reports damage that it would pass over or paint over."""
_NEVER_REPORTS = frozenset({"vp8"})
"""Codecs whose decoder reads any bytes as some picture."""
_INSIDE_PACKETS = 64
"""A decoder holds fewer than this: FFmpeg takes 16 threads by itself, and reorders 16 frames."""


def decode(
    path: Path, asset: Asset, selection: Selection, *, skipping: bool = True
) -> Iterator[Found | None]:
    """Bring the frames of ``asset`` to ``selection``; see ``loaders`` for the contract.

    ``skipping`` off decodes every packet; the frames are the same.
    """
    skip_until: int | None = None if skipping else 0
    strict = asset.video is not None and asset.video.codec not in _NEVER_REPORTS
    while True:
        with open_media(path) as container:
            one_pass = _Pass(path, container, asset, selection, skip_until=skip_until, strict=strict)
            yield from one_pass.run()
        if one_pass.is_exact:
            return
        if one_pass.is_damaged:
            strict = False
            if skip_until is None and not one_pass.is_open:
                skip_until = one_pass.damaged_from
        else:
            skip_until = 0
        selection.start_over()


class _Pass:
    """One pass over the file."""

    def __init__(
        self,
        path: Path,
        container: Any,
        asset: Asset,
        selection: Selection,
        *,
        skip_until: int | None,
        strict: bool,
    ) -> None:
        """``skip_until``: from which packet on nothing is skipped; ``strict``: stop at a sign of damage."""
        assert asset.video is not None
        self._path = path
        self._container = container
        self._stream = only(container, asset.video.stream_index)
        self._codec = self._stream.codec_context
        self._strict = strict
        if strict:
            self._stream.thread_type = "AUTO"
            self._codec.options = _STRICT
        else:
            self._codec.thread_count = 1
        self._clock = Clock.of(asset.video)
        self._shifts = asset.video.clock_shifts
        self._end_us = asset.duration_us
        self._selection = selection
        self._pictures = PictureMaker(asset.video.sample_aspect_ratio)
        self._damage = Damage()
        self._losses = Losses()
        self._order = Order(self._damage) if Order.is_needed(container, self._stream) else None
        self._skip_until = skip_until
        self._skip = skip_until != 0 and self._order is None
        self._number = 0
        """Packets of the file so far."""
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
        self._leading_us: int | None = None
        """In the group of a new beginning: what is shown before this builds on a group that is not there."""
        self.is_exact = True
        self.is_damaged = False
        self.is_open = False
        """Whether it began with a group that builds on an absent one: a decoder may report that as damage."""

    @property
    def damaged_from(self) -> int:
        """A packet before the damage: when that is noticed, the decoder has taken in some that follow it."""
        return max(0, self._number - _INSIDE_PACKETS - len(self._held))

    def run(self) -> Iterator[Found | None]:
        for packet in packets(self._container, self._stream, self._shifts):
            yield from self._take(packet) if packet.size else self._finish()
            yield from self._selection.take_complete()
            yield None
            if self._selection.is_settled or not self.is_exact:
                break
        if self.is_exact:
            self._damage.report(self._path)

    def _take(self, packet: Any) -> Iterator[Found | None]:
        self._number += 1
        time_us = None if packet.pts is None else self._clock.time_us(packet.pts)
        if self._skip and (time_us is None or (packet.is_keyframe and self._runs_back(time_us))):
            self._skip = False
        if self._number == self._skip_until:
            self._skip = False
        if time_us is None or not self._skip:
            yield from self._feed_held()
            yield from self._decode(packet)
        elif packet.is_keyframe or not self._leads(packet):
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
        self._leading_us = 0 if self._number == 1 and start_us == 0 else None

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
            self._losses.restart()
            self._selection.pass_by(self._start_us)
            self._expected_us = None if held[0].is_discard else self._start_us
            self._leading_us = self._start_us
            self._is_running = True
        self._feeding = True
        for packet in held:
            if not self._leads(packet):
                yield from self._decode(packet)
            if not self.is_exact:
                return

    def _leads(self, packet: Any) -> bool:
        is_leading = self._leading_us is not None and self._clock.time_us(packet.pts) < self._leading_us
        self.is_open = self.is_open or is_leading
        return is_leading

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
            self._losses.came(pts, is_field=frame.interlaced_frame)
            self._look_for_damage()
            if not self.is_exact:
                return
            if time_us >= self._end_us:
                self._selection.end()
            else:
                self._selection.show(Candidate(pts, time_us, partial(self._pictures.image, frame)))
        if packet is None:
            self._losses.drained()
        self._look_for_damage()
        if not self.is_exact:
            return
        yield from self._selection.take_complete()
        yield None

    def _look_for_damage(self) -> None:
        if self._strict and (self._damage.errors or self._losses.seen):
            self.is_damaged, self.is_exact = True, False

    def _frames(self, packet: Any) -> list[Any]:
        if self._order:
            return self._order.decode(self._codec, packet)
        if packet is not None and packet.pts is not None and not (packet.is_corrupt or packet.is_discard):
            self._losses.fed(packet.pts)
        return decode_packet(self._codec, packet, self._damage)

    def _finish(self) -> Iterator[Found | None]:
        if self._held:
            yield from self._close_group(None)
        yield from self._drain()
        if self.is_exact:
            self._selection.end()
