"""Films whose pictures say which frame they are, and whose sound clicks every half second."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from evicat.catalog.media.audio import read_audio
from evicat.catalog.media.frames import Wanted, decode_windows
from evicat.schemas.asset import Asset
from evicat.schemas.span import US, Span

FRAME_US = 40_000
RATE = 48_000
CELLS = 4
SIZE = 64
_CODECS = {
    "webm": ("libvpx-vp9", "libopus", {"deadline": "realtime", "cpu-used": "8"}),
    "avi": ("mpeg4", "libmp3lame", {}),
    "mpg": ("mpeg2video", "mp2", {}),
    "nut": ("mpeg4", "mp2", {}),
}
_ELSEWHERE = ("libx264", "aac", {"bf": "2", "g": "25"})


def draw(number: int) -> np.ndarray:
    """64 x 64 RGB whose 16 black or white blocks are the bits of ``number``."""
    bits = np.array([(number >> bit) & 1 for bit in range(CELLS * CELLS)], np.uint8).reshape(CELLS, CELLS)
    cell = SIZE // CELLS
    return np.repeat(np.kron(bits * 255, np.ones((cell, cell), np.uint8))[:, :, None], 3, axis=2)


def read(image: np.ndarray) -> int:
    """The number that :func:`draw` drew."""
    middles = [SIZE * (2 * i + 1) // (2 * CELLS) for i in range(CELLS)]
    bits = image[np.ix_(middles, middles)].mean(axis=2).ravel() > 127
    return sum(1 << bit for bit, is_set in enumerate(bits) if is_set)


def _clicks(seconds: float) -> np.ndarray:
    """Silence with 10 ms of 1 kHz from every half second on, the first at 0.5 s."""
    samples = np.zeros(round(seconds * RATE), np.float32)
    click = (0.8 * np.sin(2 * np.pi * 1000 * np.arange(RATE // 100) / RATE)).astype(np.float32)
    for start in range(RATE // 2, len(samples) - len(click), RATE // 2):
        samples[start : start + len(click)] = click
    return samples


def write_film(
    path: Path,
    *,
    seconds: float = 4.0,
    sound_seconds: float | None = None,
    first: int = 0,
    times_us: list[int] | None = None,
    format: str | None = None,
    options: dict[str, str] | None = None,
) -> Path:
    """A film of 25 pictures a second, numbered from ``first`` on, with clicks; both start at 0.

    ``times_us`` gives each picture a time of its own; ``options`` go to the muxer.
    """
    video, sound, encoder = _CODECS.get(path.suffix[1:], _ELSEWHERE)
    times = times_us or list(range(0, round(seconds * US), FRAME_US))
    with av.open(str(path), "w", format=format, options=options or {}) as container:
        pictures = container.add_stream(video, rate=25)
        pictures.width = pictures.height = SIZE
        pictures.pix_fmt, pictures.options = "yuv420p", encoder
        pictures.bit_rate = 1_000_000
        # MPEG-1, MPEG-2 and MPEG-4 know only whole frames; the others take any time.
        base = Fraction(1, 25) if video in ("mpeg4", "mpeg2video") else Fraction(1, 90_000)
        pictures.codec_context.time_base = base
        sounds = container.add_stream(sound, rate=RATE, layout="mono")
        size = sounds.codec_context.frame_size or 1024
        samples = _clicks(seconds if sound_seconds is None else sound_seconds)
        kind = av.AudioResampler(format=sounds.codec_context.format.name, layout="mono", rate=RATE)
        at = 0
        for number, time_us in enumerate([*times, 1 << 60]):
            while at < len(samples) and at * US < time_us * RATE:
                frame = av.AudioFrame.from_ndarray(samples[None, at : at + size], format="flt", layout="mono")
                frame.sample_rate, frame.time_base, frame.pts = RATE, Fraction(1, RATE), at
                for converted in kind.resample(frame):
                    converted.pts, converted.time_base = at, Fraction(1, RATE)
                    container.mux(sounds.encode(converted))
                at += size
            if number < len(times):
                picture = av.VideoFrame.from_ndarray(draw(first + number), format="rgb24")
                picture.pts, picture.time_base = round(time_us / US / base), base
                container.mux(pictures.encode(picture))
        container.mux(sounds.encode(None))
        container.mux(pictures.encode(None))
    return path


@dataclass(frozen=True)
class Found:
    """What came out of a film: ``(number, time in us)`` of every picture, and the times of the clicks."""

    pictures: list[tuple[int, int]]
    clicks_us: list[int]

    def picture_error_us(self, shift_us: int = 0) -> int:
        """The largest distance of a picture from where its number belongs, ``shift_us`` later."""
        return max(abs(number * FRAME_US + shift_us - time_us) for number, time_us in self.pictures)

    def click_error_us(self, shift_us: int = 0) -> int:
        """The largest distance of a click from the nearest half second, ``shift_us`` later."""
        half = US // 2
        return max(abs((time - shift_us + half // 2) % half - half // 2) for time in self.clicks_us)


def every_frame(path: Path, asset: Asset) -> list[tuple[int, int]]:
    """Number and time of every picture of the timeline."""
    instants = tuple(range(0, asset.duration_us, 2_000))
    whole = Span(0, asset.duration_us)
    ((_, frames),) = decode_windows(path, asset, [Wanted(whole, instants, SIZE)])
    return [(read(frame.image), frame.time_us) for frame in frames]


def find(path: Path, asset: Asset) -> Found:
    """All pictures and all clicks."""
    pieces = [piece.samples for piece in read_audio(path, asset)]
    samples = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    loud = np.flatnonzero(np.abs(samples) > 0.2)
    starts = loud[np.flatnonzero(np.diff(loud, prepend=-16_000) > 800)]
    return Found(every_frame(path, asset), [int(start) * US // 16_000 for start in starts])
