"""Opening media files, and the written rules which of their streams are used.

Picture: never an attached picture (cover art, timed thumbnails, still images); then the default flag, then
the largest area, then the lowest index. Sound: the default flag, then more channels, then the lowest index.
Packets that are damaged and frames that the decoder itself calls corrupt are left out and counted.
"""

from __future__ import annotations

import errno
import logging
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evicat.schemas.errors import UnreadableMediaError

_log = logging.getLogger(__name__)

_NOT_MEDIA = frozenset({"concat", "dash", "hls", "image2", "image2pipe", "imf", "sdp", "tty"})
"""Formats that are a picture, plain text, or a list of other files, whose bytes are not this file's."""

_DEVICE_ERRORS = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.ENOTCONN, errno.EACCES})
"""The medium or the way to it failed, not the data."""


def open_media(path: Path) -> Any:
    """Open a local media file; an ``av.container.InputContainer``, to be closed by the caller.

    Raises:
        UnreadableMediaError: no regular file, empty, not readable, not media, or a still picture.
    """
    import av

    _check_file(path)
    try:
        container = av.open(
            f"file:{path.absolute()}", metadata_errors="replace", options={"protocol_whitelist": "file"}
        )
    except av.FFmpegError as error:
        raise UnreadableMediaError(f"{path}: not media that can be read: {error.strerror}") from None
    name = container.format.name
    if name in _NOT_MEDIA or name.endswith("_pipe"):
        container.close()
        raise UnreadableMediaError(f"{path}: not a video or sound file, but {name!r}")
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
        raise UnreadableMediaError(f"{path}: {error.strerror}") from None


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


def packets(container: Any, stream: Any = None) -> Iterator[Any]:
    """Packets of one stream, or of all, in the order of the file; ends where its data is cut or broken.

    The last packet of a stream is empty and flushes its decoder.

    Raises:
        UnreadableMediaError: the medium that holds the file fails; what it holds further on is unknown.
    """
    import av

    chosen = container.streams if stream is None else [stream]
    try:
        yield from container.demux(*chosen)
    except av.FFmpegError as error:
        if error.errno in _DEVICE_ERRORS:
            raise UnreadableMediaError(f"{container.name}: reading failed: {error.strerror}") from None
        _log.warning("%s: cannot be read to its end: %s", container.name, error.strerror)
        for each in chosen:
            flush = av.Packet()
            flush.stream = each
            yield flush


class Damage:
    """Counts what one pass over a stream had to leave out."""

    def __init__(self) -> None:
        self.packets = 0
        self.frames = 0

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
        return []
    whole = [frame for frame in frames if not frame.is_corrupt and stamp(frame) is not None]
    damage.frames += len(frames) - len(whole)
    return whole


def stamp(item: Any) -> Any:
    """PTS of a packet or frame; its DTS where the file holds no PTS (AVI); None where it has no time."""
    return item.pts if item.pts is not None else item.dts


def decode_stream(path: Path, container: Any, stream: Any) -> Iterator[Any]:
    """Whole frames of a stream from the start of the file, with None after every packet as a sign of life."""
    damage = Damage()
    for packet in packets(container, stream):
        yield from decode_packet(stream.codec_context, packet, damage)
        yield None
    damage.report(path)
