"""Which guesses of FFmpeg about what a file is are believed.

FFmpeg guesses by content and by name, and says nothing of how sure it is. A few random bytes are at times
taken for a game's sound or for karaoke graphics, and a raw stream for whatever its name says. So only formats
that begin with a signature, or are a chain of headers, are believed as they are. Any other one must be what
the name says or a chain of frames, and most of its first packets must decode.
"""

from __future__ import annotations

from pathlib import Path

from evicat.schemas.errors import UnreadableMediaError

_NOT_MEDIA = frozenset({"concat", "dash", "hls", "image2", "image2pipe", "imf", "sdp", "tty"})
"""Formats that are a picture, plain text, or a list of other files, whose bytes are not this file's."""
_SIGNED = {
    *("aiff", "amr", "ape", "asf", "au", "avi", "caf", "dsf", "flv", "gif", "gxf", "ivf", "matroska", "mov"),
    *("mpc8", "mpeg", "mpegts", "mxf", "nut", "ogg", "rm", "swf", "tta", "w64", "wav", "webp", "wtv", "wv"),
}
"""Formats with a signature or a chain of headers."""
_CHAINED = {
    *("aac", "ac3", "dts", "eac3", "flac", "h264", "hevc", "m4v", "mp3", "mpegvideo", "obu", "truehd"),
}
"""Raw streams that are known by one valid frame after another, whatever the name says."""


def check_format(path: Path, name: str) -> None:
    """Refuse what is no video or sound file, or was only guessed to be one.

    Raises:
        UnreadableMediaError: with the format that FFmpeg took it for.
    """
    if name in _NOT_MEDIA or name.endswith("_pipe"):
        raise UnreadableMediaError(f"{path}: not a video or sound file, but {name!r}")
    if not is_signed(name) and name not in _CHAINED and path.suffix.lower() not in _suffixes(name):
        known_by = " or ".join(sorted(_suffixes(name)))
        advice = f"; if it is, end its name with {known_by}" if known_by else ""
        raise UnreadableMediaError(
            f"{path}: not media that can be read; "
            f"its content may be {name!r}, its name says otherwise{advice}"
        )


def is_signed(name: str) -> bool:
    """Whether FFmpeg's guess needs no further proof."""
    return not _SIGNED.isdisjoint(name.split(","))


def _suffixes(name: str) -> set[str]:
    import av

    return {f".{each}" for each in av.ContainerFormat(name, "r").extensions}
