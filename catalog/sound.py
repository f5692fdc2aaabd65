"""Which sound stream of an asset is listened to.

By default it is the asset's own: the default stream, then the one with most channels, then the first
(``media/streams.py``). A recipe may ask for another one by language or by number. The number counts the sound
streams of the file from 0, as ``ffmpeg -map 0:a:N`` does, and must be there. Languages are a preference:
streams of a preferred language first, then of unknown language, then others; among equals the default rule.
Streams that do not decode are passed over, unless one was asked for by its number.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from evicat.catalog.media.clock import to_us
from evicat.catalog.media.languages import language_rank
from evicat.catalog.media.scan import FileScan, scan_packets
from evicat.catalog.media.streams import decode_stream, only, open_media, sounds, stamp
from evicat.catalog.media.worker import WorkerPool
from evicat.schemas.asset import Asset, AudioFacts, ClockShift
from evicat.schemas.errors import AssetError
from evicat.schemas.recipe import SpeechOptions


def listened_to(
    pool: WorkerPool, path: Path, asset: Asset, speech: SpeechOptions, *, timeout_s: float
) -> Asset:
    """``asset`` with the sound stream that ``speech`` asks for as its ``audio``; found in a worker process.

    Raises:
        AssetError: the file has no such stream, or it does not decode.
        DecodeStalledError: no progress for ``timeout_s`` seconds.
        DecoderCrashedError: the process died.
    """
    if asset.audio is None or (not speech.audio_language and speech.audio_index is None):
        return asset
    arguments = (path, asset, speech.audio_language, speech.audio_index)
    (audio,) = pool.run(sound_steps, *arguments, timeout_s=timeout_s, about=path)
    return asset.model_copy(update={"audio": audio})


def sound_steps(
    path: Path, asset: Asset, languages: tuple[str, ...], index: int | None
) -> Iterator[AudioFacts | None]:
    """The chosen stream, after None as signs of life; what runs in a worker."""
    scan = (yield from _scanned(path)) if _has_shifts(asset) else None
    for stream_index in _candidates(path, languages, index):
        shifts = _shifts(scan, asset, stream_index)
        with open_media(path) as container:
            stream = only(container, stream_index)
            for frame in decode_stream(path, container, stream, shifts):
                if frame is not None:
                    yield _facts(stream, frame, asset).model_copy(update={"clock_shifts": shifts})
                    return
                yield None
    asked = "no sound stream" if index is None else f"the sound stream of audio_index = {index}"
    raise AssetError(f"{path}: {asked} could be decoded")


def _candidates(path: Path, languages: tuple[str, ...], index: int | None) -> list[int]:
    """Indices in the file of the streams that may be taken, best first."""
    with open_media(path) as container:
        if index is None:
            ranked = sorted(sounds(container), key=lambda stream: language_rank(stream.language, languages))
            return [stream.index for stream in ranked]
        every = [stream.index for stream in container.streams.audio]
    if index >= len(every):
        raise AssetError(
            f"{path}: the recipe asks for audio_index = {index}, but the file has {len(every)} sound "
            "stream(s), counted from 0"
        )
    return [every[index]]


def _scanned(path: Path) -> Generator[None, None, FileScan | None]:
    scan = None
    for step in scan_packets(path):
        scan = step
        yield None
    return scan


def _has_shifts(asset: Asset) -> bool:
    return any(stream and stream.clock_shifts for stream in (asset.video, asset.audio))


def _shifts(scan: FileScan | None, asset: Asset, stream_index: int) -> tuple[ClockShift, ...]:
    """What puts the packets of a stream on the timeline of ``asset``, where its file's clock is set anew."""
    if scan is None:
        return ()
    picture, own = (stream.stream_index if stream else None for stream in (asset.video, asset.audio))
    scan.align(picture, own)
    scan.follow(stream_index, own if picture is None else picture)
    return scan.streams[stream_index].clock_shifts


def _facts(stream: Any, frame: Any, asset: Asset) -> AudioFacts:
    start_us = to_us(stamp(frame), stream.time_base) - asset.origin_us
    return AudioFacts(
        stream_index=stream.index,
        codec=stream.codec_context.codec.canonical_name,
        sample_rate=frame.sample_rate,
        channels=frame.layout.nb_channels,
        start_us=max(0, start_us) if asset.clip else start_us,
        language=None if stream.language in (None, "", "und") else stream.language,
    )
