"""A span of an asset as a small video file of its own, for colleagues and slides."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from evicat.catalog.media.audio import read_audio_isolated
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Wanted, read_windows
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.transcribers.base import SAMPLE_RATE
from evicat.schemas.asset import Asset
from evicat.schemas.errors import UsageError
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US, Span

_CLOCK = 90_000
"""Units a second of the written picture stream."""
_PIECE_US = US // 2
"""Pictures of so much time are held at once."""
_BT709, _LIMITED = 1, 1
"""As FFmpeg numbers them; a player of untagged pictures would guess by their size."""
_MOST_RATE = 120
"""Pictures a second that are looked for at most."""


def write_clip(
    path: Path, asset: Asset, span: Span, target: Path, workers: WorkerPool, profile: Profile
) -> None:
    """Write ``span`` of an asset as MP4: upright pictures (H.264) at their times, 16 kHz mono sound (AAC).

    Second 0 of the file is the start of the span.

    Raises:
        UsageError: the target does not end in ``.mp4``, exists, or its folder does not.
        AssetError: the asset cannot be decoded.
    """
    import av

    if target.suffix.lower() != ".mp4":
        raise UsageError(f"a clip is an MP4 file: name {target.with_suffix('.mp4')}, not {target}")
    if target.exists() or not target.parent.is_dir():
        raise UsageError(f"{target} exists already" if target.exists() else f"{target.parent} is no folder")
    part = target.with_name(f".{target.name}.part.mp4")
    try:
        with av.open(str(part), "w", options={"movflags": "+faststart"}) as container:
            picture = _picture_stream(container, asset)
            sound = container.add_stream("aac", rate=SAMPLE_RATE, layout="mono") if asset.audio else None
            if picture is None and sound is None:
                raise UsageError(f"{path} has neither picture nor sound to cut")
            if picture is not None:
                frames = _frames(path, asset, span, workers, profile)
                _encode_pictures(container, picture, frames, span)
            if sound is not None:
                _encode_sound(container, sound, _samples(path, asset, span, workers, profile))
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def _picture_stream(container: Any, asset: Asset) -> Any:
    if asset.video is None:
        return None
    rate = Fraction(asset.video.average_rate or 25).limit_denominator(1001)
    stream = container.add_stream("libx264", rate=rate, options={"crf": "20", "preset": "veryfast"})
    stream.width, stream.height = (max(2, size // 2 * 2) for size in (asset.video.width, asset.video.height))
    stream.pix_fmt = "yuv420p"
    stream.codec_context.time_base = Fraction(1, _CLOCK)
    for what in ("colorspace", "color_primaries", "color_trc"):
        setattr(stream.codec_context, what, _BT709)
    stream.codec_context.color_range = _LIMITED
    return stream


def _frames(path: Path, asset: Asset, span: Span, workers: WorkerPool, profile: Profile) -> Iterator[Frame]:
    """The frame on display when the span begins, and all that come in it, each once, in time order."""
    assert asset.video is not None
    step_us = max(1, round(US / min(2 * (asset.video.average_rate or 30), _MOST_RATE)))
    starts = range(span.start_us, span.end_us, _PIECE_US)
    pieces = [Span(start, min(start + _PIECE_US, span.end_us)) for start in starts]
    on_display = Wanted(Span(0, span.start_us + 1), (span.start_us,), asset.video.width)
    wanted = [
        on_display,
        *(
            Wanted(piece, tuple(range(piece.start_us, piece.end_us, step_us)), asset.video.width)
            for piece in pieces
        ),
    ]
    found = read_windows(
        workers, path, asset, wanted, timeout_s=profile.decode_timeout_seconds, decoder=profile.decoder
    )
    shown_us = -1
    for _, frames in found:
        for frame in frames:
            if frame.time_us > shown_us:
                yield frame
                shown_us = frame.time_us


def _encode_pictures(container: Any, stream: Any, frames: Iterator[Frame], span: Span) -> None:
    """The first picture lasts from second 0 on; the last is written again where it lasts for long."""
    length = span.duration_us * _CLOCK // US
    step = round(_CLOCK / stream.codec_context.framerate)
    last, frame = -1, None
    for frame in frames:
        at = round((frame.time_us - span.start_us) * _CLOCK / US)
        last = max(last + 1, at) if last >= 0 else 0
        container.mux(stream.encode(_picture(frame, stream, last)))
    if frame is not None and last + 2 * step <= length:
        container.mux(stream.encode(_picture(frame, stream, length - step)))
    container.mux(stream.encode(None))


def _picture(frame: Frame, stream: Any, pts: int) -> Any:
    import av

    image = np.ascontiguousarray(frame.image[: stream.height, : stream.width])
    made = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(
        width=stream.width, height=stream.height, format="yuv420p", dst_colorspace="ITU709"
    )
    made.pts, made.time_base = pts, Fraction(1, _CLOCK)
    return made


def _samples(
    path: Path, asset: Asset, span: Span, workers: WorkerPool, profile: Profile
) -> Iterator[np.ndarray[Any, np.dtype[np.float32]]]:
    """The samples of a span: what lies before it is not decoded."""
    assert asset.audio is not None
    sound = asset.audio.model_copy(update={"start_us": asset.audio.start_us - span.start_us})
    moved = {"origin_us": asset.origin_us + span.start_us, "duration_us": span.duration_us, "audio": sound}
    part = asset.model_copy(update=moved)
    for piece in read_audio_isolated(workers, path, part, timeout_s=profile.decode_timeout_seconds):
        yield piece.samples


def _encode_sound(
    container: Any, stream: Any, samples: Iterator[np.ndarray[Any, np.dtype[np.float32]]]
) -> None:
    import av

    position = 0
    for piece in samples:
        made = av.AudioFrame.from_ndarray(piece[np.newaxis], format="fltp", layout="mono")
        made.sample_rate = SAMPLE_RATE
        made.pts, made.time_base = position, Fraction(1, SAMPLE_RATE)
        position += len(piece)
        container.mux(stream.encode(made))
    container.mux(stream.encode(None))
