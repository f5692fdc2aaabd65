"""The sound of an asset as one stream of samples, every sample where its PTS says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from evicat.catalog.transcribers.base import SAMPLE_RATE, Samples
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError
from evicat.schemas.span import US

from .clock import to_us
from .streams import Damage, decode_packet, only, open_media, packets, stamp
from .worker import WorkerPool

_PIECE_SAMPLES = 20 * SAMPLE_RATE
_JITTER_US = 20_000
"""PTS may be this far from what the samples before add up to; beyond it they are placed anew."""
_PREROLL_US = 1_000_000
"""Sound this long before second 0 is decoded, so that codecs have settled when it begins."""


@dataclass(frozen=True, eq=False, slots=True)
class AudioPiece:
    """Samples from one instant on: ``(n,)`` float32, 16 kHz, mono."""

    start_us: int
    samples: Samples

    def __repr__(self) -> str:
        return f"AudioPiece(start_us={self.start_us}, samples={len(self.samples)})"


def read_audio(path: Path, asset: Asset) -> Iterator[AudioPiece]:
    """Stream the chosen sound of ``asset`` on its timeline, in pieces of 20 s that follow without gap.

    Second 0 of the timeline is the first sample: a late start and gaps are silence, sound before second 0 is
    left out. The last piece ends with the sound or with the asset, whichever is earlier. Nothing comes for an
    asset without sound. Memory does not grow with its length.

    Raises:
        UnreadableMediaError: the file cannot be opened (any more).
    """
    return (piece for piece in audio_steps(path, asset) if piece is not None)


def read_audio_isolated(
    pool: WorkerPool, path: Path, asset: Asset, *, timeout_s: float
) -> Iterator[AudioPiece]:
    """:func:`read_audio` in a worker process.

    Raises:
        DecodeStalledError: no progress for ``timeout_s`` seconds.
        DecoderCrashedError: the process died.
    """
    return pool.run(audio_steps, path, asset, timeout_s=timeout_s, about=path)


def audio_steps(path: Path, asset: Asset) -> Iterator[AudioPiece | None]:
    """:func:`read_audio` with None as signs of life; what runs in a worker."""
    if asset.audio is None:
        return
    tape = _Tape(asset.duration_us * SAMPLE_RATE // US)
    run: _Run | None = None
    for frame, time_us in _timed_frames(path, asset):
        if frame is not None:
            time_us = time_us if time_us is not None else run.next_us if run else asset.audio.start_us
            if run is None or not run.continues(frame, time_us):
                if run is not None:
                    yield from tape.put(*run.flush())
                run = _Run(frame, time_us)
            yield from tape.put(*run.resample(frame))
        if tape.is_full:
            break
        yield None
    if run is not None:
        yield from tape.put(*run.flush())
    yield from tape.rest()


def _timed_frames(path: Path, asset: Asset) -> Iterator[tuple[Any, int | None]]:
    """Decoded frames with their time on the timeline, and ``(None, None)`` as signs of life."""
    assert asset.audio is not None
    damage = Damage()
    with open_media(path) as container:
        stream = only(container, asset.audio.stream_index)
        base = stream.time_base
        for packet in packets(container, stream, asset.audio.clock_shifts):
            pts = stamp(packet)
            is_early = pts is not None and to_us(pts, base) - asset.origin_us < -_PREROLL_US
            for frame in [] if is_early else decode_packet(stream.codec_context, packet, damage):
                yield frame, to_us(stamp(frame), base) - asset.origin_us
            yield None, None
    damage.report(path)


class _Run:
    """Frames that follow each other without gap, resampled as one."""

    def __init__(self, frame: Any, start_us: int) -> None:
        from av import AudioResampler

        self._resampler = AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
        self._format = _format_of(frame)
        self._start_us = start_us
        self._seconds = Fraction(0)
        self._position = (2 * start_us * SAMPLE_RATE + US) // (2 * US)

    @property
    def next_us(self) -> int:
        """Where the next frame lies if it follows without gap."""
        return self._start_us + round(self._seconds * US)

    def continues(self, frame: Any, time_us: int) -> bool:
        return self._format == _format_of(frame) and abs(time_us - self.next_us) <= _JITTER_US

    def resample(self, frame: Any) -> tuple[int, Samples]:
        """Position on the timeline, in samples, and the samples that are ready.

        Raises:
            AssetError: FFmpeg does not know what its channels are.
        """
        from av import FFmpegError

        self._seconds += Fraction(frame.samples, frame.sample_rate)
        try:
            return self._placed(self._resampler.resample(frame))
        except FFmpegError as error:
            layout = frame.layout.name
            raise AssetError(f"sound of layout {layout!r} cannot be made mono: {error.strerror}") from None

    def flush(self) -> tuple[int, Samples]:
        return self._placed(self._resampler.resample(None))

    def _placed(self, frames: list[Any]) -> tuple[int, Samples]:
        arrays = [frame.to_ndarray()[0] for frame in frames if frame is not None]
        samples = np.concatenate(arrays) if arrays else np.empty(0, np.float32)
        np.nan_to_num(samples, copy=False, nan=0.0, posinf=0.0, neginf=0.0)  # of float sound: silence instead
        position = self._position
        self._position += len(samples)
        return position, samples


def _format_of(frame: Any) -> tuple[str, str, int]:
    return frame.format.name, frame.layout.name, frame.sample_rate


class _Tape:
    """Takes samples by position, fills what is between with silence, and gives whole pieces."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._done = 0
        self._piece = np.zeros(_PIECE_SAMPLES, np.float32)
        self._filled = 0

    @property
    def is_full(self) -> bool:
        return self._done + self._filled >= self._length

    def put(self, position: int, samples: Samples) -> Iterator[AudioPiece]:
        """Place samples; what lies on samples already placed, or beyond the end, is left out."""
        at = self._done + self._filled
        samples = samples[max(0, at - position) : max(0, self._length - position)]
        if not len(samples):
            return
        yield from self._advance(max(0, position - at), None)
        yield from self._advance(len(samples), samples)

    def rest(self) -> Iterator[AudioPiece]:
        """The last piece, which may be shorter."""
        if self._filled:
            yield AudioPiece(self._done * US // SAMPLE_RATE, self._piece[: self._filled].copy())

    def _advance(self, count: int, samples: Samples | None) -> Iterator[AudioPiece]:
        taken = 0
        while taken < count:
            part = min(count - taken, len(self._piece) - self._filled)
            if samples is not None:
                self._piece[self._filled : self._filled + part] = samples[taken : taken + part]
            self._filled += part
            taken += part
            if self._filled == len(self._piece):
                yield AudioPiece(self._done * US // SAMPLE_RATE, self._piece)
                self._done += self._filled
                self._piece, self._filled = np.zeros(_PIECE_SAMPLES, np.float32), 0
