"""Opening media files, and the written rules which of their streams are used.

Picture: never an attached picture (cover art, timed thumbnails, still images); then the default flag, then
the largest area, then the lowest index. Sound: the default flag, then more channels, then the lowest index.
Packets that are damaged and frames that the decoder itself calls corrupt are left out and counted.
"""

from __future__ import annotations

import errno
import logging
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evicat.schemas.asset import ClockShift
from evicat.schemas.errors import OutOfReachError, UnreadableMediaError

from .formats import check_format

_log = logging.getLogger(__name__)

_OPTIONS = {
    "protocol_whitelist": "file",
    # FFmpeg would take a clock that is set back for one that wraps, 26 hours later (see ``resets``).
    "correct_ts_overflow": "0",
}
LATE_STREAM = IndexError
"""What PyAV raises at the end of a file in which FFmpeg met a further stream on the way."""
DEVICE_ERRORS = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.ENOTCONN, errno.EACCES})
"""The medium or the way to it failed, not the data."""


def open_media(path: Path) -> Any:
    """Open a local media file; an ``av.container.InputContainer``, to be closed by the caller.

    Raises:
        UnreadableMediaError: no regular file, empty, not readable, not media, or a still picture.
    """
    import av

    _check_file(path)
    try:
        container = av.open(f"file:{path.absolute()}", metadata_errors="replace", options=_OPTIONS)
    except av.FFmpegError as error:
        if isinstance(error, OSError):
            raise OutOfReachError(f"{path}: {error.strerror}") from None
        raise UnreadableMediaError(f"{path}: not media that can be read: {error.strerror}") from None
    try:
        check_format(path, container.format.name)
    except UnreadableMediaError:
        container.close()
        raise
    return container


def _check_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise UnreadableMediaError(f"{path}: {'a folder' if stat.S_ISDIR(mode) else 'no regular file'}")
        with path.open("rb") as file:
            if not file.read(1):
                raise UnreadableMediaError(f"{path}: the file is empty")
    except OSError as error:
        raise OutOfReachError(f"{path}: {error.strerror}") from None


def pictures(container: Any) -> list[Any]:
    """Streams that may be the picture, best first."""
    from av.stream import Disposition

    attached = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
    found = [s for s in container.streams.video if s.codec_context and not s.disposition & attached]
    return sorted(found, key=lambda s: (not _is_default(s), -s.width * s.height, s.index))


def sounds(container: Any) -> list[Any]:
    """Streams that may be the sound, best first."""
    found = [s for s in container.streams.audio if s.codec_context]
    return sorted(found, key=lambda s: (not _is_default(s), -s.codec_context.channels, s.index))


def _is_default(stream: Any) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition.default)


def only(container: Any, index: int) -> Any:
    """The stream with this index; the demuxer is told to leave out all others."""
    from av.stream import Discard

    for stream in container.streams:
        if stream.index != index:
            stream.discard = Discard.all
    return container.streams[index]


def packets(container: Any, stream: Any = None, shifts: Sequence[ClockShift] = ()) -> Iterator[Any]:
    """Packets of one stream, or of all, in the order of the file; ends where its data is cut or broken.

    The last packet of a stream is empty and flushes its decoder. ``shifts`` are those of the stream's facts:
    where its clock is set anew, they put its packets on one timeline.

    Raises:
        UnreadableMediaError: the medium that holds the file fails; what it holds further on is unknown.
    """
    import av

    chosen = container.streams if stream is None else [stream]
    found = container.demux(*chosen)
    try:
        yield from _shifted(found, shifts) if shifts else found
    except av.FFmpegError as error:
        if error.errno in DEVICE_ERRORS:
            raise OutOfReachError(f"{container.name}: reading failed: {error.strerror}") from None
        _log.warning("%s: cannot be read to its end: %s", container.name, error.strerror)
        yield from _flushes(chosen)
    except LATE_STREAM:
        yield from _flushes(chosen)


def _flushes(chosen: Iterable[Any]) -> Iterator[Any]:
    """The empty packets that end streams."""
    import av

    for each in chosen:
        flush = av.Packet()
        flush.stream = each
        yield flush


def _shifted(found: Iterator[Any], shifts: Sequence[ClockShift]) -> Iterator[Any]:
    """Packets of one stream with ``shifts`` added to their times."""
    number, ticks, later = 0, 0, deque(shifts)
    for packet in found:
        if packet.size:
            while later and later[0].packet <= number:
                ticks = later.popleft().ticks
            number += 1
            packet.pts = None if packet.pts is None else packet.pts + ticks
            packet.dts = None if packet.dts is None else packet.dts + ticks
        yield packet


class Damage:
    """Counts what one pass over a stream had to leave out."""

    def __init__(self) -> None:
        self.packets = 0
        self.frames = 0
        self.errors = 0
        """How often the decoder said so, which may be later than it was given the damaged packet."""

    def report(self, path: Path) -> None:
        """Log the counts, where there are any."""
        if self.packets or self.frames:
            message = "%s: left out %d packets that do not decode and %d damaged frames"
            _log.warning(message, path, self.packets, self.frames)


def decode_packet(codec: Any, packet: Any, damage: Damage) -> list[Any]:
    """Whole frames that the decoder gives for a packet; an empty or missing packet flushes it."""
    import av

    if packet is not None and packet.is_corrupt:
        damage.packets += 1
        return []
    try:
        frames = codec.decode(packet if packet is not None and packet.size else None)
    except av.FFmpegError:
        damage.packets += 1
        damage.errors += 1
        return []
    whole = [frame for frame in frames if not frame.is_corrupt and stamp(frame) is not None]
    damage.frames += len(frames) - len(whole)
    damage.errors += len(frames) - len(whole)
    return whole


class Order:
    """Times of frames by their order, for AVI: it states which picture is shown how long, but no times.

    FFmpeg counts its packets, and where frames are stored in another order than they are shown, their PTS are
    those of the order of storage. Frames leave the decoder in the order in which they are shown, so the k-th
    of them has the k-th time.
    """

    def __init__(self, damage: Damage) -> None:
        self._damage = damage
        self._lost = 0
        self._times: deque[int] = deque()

    @staticmethod
    def is_needed(container: Any, stream: Any) -> bool:
        """Whether the PTS of this stream are not those of its pictures."""
        is_avi: bool = container.format.name == "avi" and stream.type == "video"
        return is_avi and bool(stream.codec_context.has_b_frames)

    def decode(self, codec: Any, packet: Any) -> list[Any]:
        """As :func:`decode_packet`, with the right times."""
        if packet is not None and packet.size and packet.dts is not None:
            self._times.append(packet.dts)
        frames = decode_packet(codec, packet, self._damage)
        lost = self._damage.packets + self._damage.frames
        for _ in range(min(lost - self._lost, len(self._times))):
            self._times.pop()
        self._lost = lost
        frames = frames[: len(self._times)]
        for frame in frames:
            frame.pts = self._times.popleft()
        return frames


def stamp(item: Any) -> Any:
    """PTS of a packet or frame; its DTS where the file holds no PTS (AVI); None where it has no time."""
    return item.pts if item.pts is not None else item.dts


def decode_stream(
    path: Path, container: Any, stream: Any, shifts: Sequence[ClockShift] = ()
) -> Iterator[Any]:
    """Whole frames of a stream from the start of the file, with None after every packet as a sign of life."""
    damage = Damage()
    order = Order(damage) if Order.is_needed(container, stream) else None
    for packet in packets(container, stream, shifts):
        if order:
            yield from order.decode(stream.codec_context, packet)
        else:
            yield from decode_packet(stream.codec_context, packet, damage)
        yield None
    damage.report(path)
