"""Cutting the sound of an asset, at silences, into blocks that are transcribed one by one.

A whole-file transcription takes memory that grows with the file (4 GB for an hour). The cuts depend on the
sound alone, not on how it comes in pieces, so a run that is taken up again cuts the same blocks. Bump
``CLEAN_VERSION`` when a rule here changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicat.catalog.transcribers.base import SAMPLE_RATE, Samples, Stretches
from evicat.catalog.transcribers.vad import (
    FRAME,
    FRAMES_PER_S,
    PORTION,
    SILENCE_BELOW,
    Probabilities,
    VoiceActivity,
    stretches,
)
from evicat.schemas.span import US, Span

Piece = tuple[int, Samples]
"""Start on the timeline in microseconds, and the samples from there on."""

MAX_BLOCK_S = 300
_MIN_PAUSE = round(0.3 * FRAMES_PER_S)
"""Frames of silence that a cut may lie in; the stops inside a word are shorter."""
_LEAD = round(0.5 * FRAMES_PER_S)
"""Frames of silence left before the next speech where there are enough: more than the pad of a stretch."""
_SMOOTH = 7
"""Frames (0.2 s) over which loudness is averaged for a hard cut: about a syllable."""
_JITTER = 1
"""Samples by which the start of a piece may be off: microseconds do not hold every sample's time."""


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Sound of ``[start_us, end_us)``: ``samples`` is ``(n,)`` float32, ``speech`` are ranges of it."""

    start_us: int
    end_us: int
    samples: Samples
    speech: Stretches

    @property
    def span(self) -> Span:
        return Span(self.start_us, self.end_us)

    def __repr__(self) -> str:
        return f"Block({self.span}, samples={len(self.samples)}, speech={self.speech})"


def cut_blocks(pieces: Iterable[Piece], max_block_s: float = MAX_BLOCK_S) -> Iterator[Block]:
    """Blocks that tile the timeline from 0 to the end of the sound; no sound, no block.

    Pieces come in order of time; what lies between two counts as silence. At most a block is held. It ends
    in the longest silence of its second half, else in the last one of its first half, else, where
    ``max_block_s`` seconds hold no silence at all, at the quietest point of its second half.

    Raises:
        ValueError: a piece overlaps the one before it, or holds samples that are not finite.
    """
    max_frames = int(max_block_s * FRAMES_PER_S)
    if max_frames < 2 * _MIN_PAUSE:
        raise ValueError(
            f"max_block_s must be at least {2 * _MIN_PAUSE / FRAMES_PER_S:.2f} s, got {max_block_s}"
        )
    voice, limit = VoiceActivity(), max_frames * FRAME
    held: list[Samples] = []
    known: list[Probabilities] = []
    start = count = 0
    for portion in _portions(pieces):
        held.append(portion)
        known.append(voice.probabilities(portion))
        count += len(portion)
        while count > limit:
            samples, activity = np.concatenate(held), np.concatenate(known)
            cut = _cut(activity[:max_frames], samples)
            end = cut * FRAME
            yield _block(start, samples[:end], activity[:cut])
            held, known = [samples[end:].copy()], [activity[cut:]]
            start, count = start + end, count - end
    if count:
        yield _block(start, np.concatenate(held), np.concatenate(known))


def _block(start: int, samples: Samples, activity: Probabilities) -> Block:
    speech = stretches(activity, len(samples))
    return Block(_to_us(start), _to_us(start + len(samples)), samples, speech)


def _to_us(sample: int) -> int:
    return -(-sample * US // SAMPLE_RATE)


def _portions(pieces: Iterable[Piece]) -> Iterator[Samples]:
    """The sound from 0 on in arrays of ``PORTION`` samples; only the last is shorter."""
    portion, filled = np.zeros(PORTION, dtype=np.float32), 0
    for samples in _gapless(pieces):
        taken = 0
        while taken < len(samples):
            part = samples[taken : taken + PORTION - filled]
            portion[filled : filled + len(part)] = part
            taken, filled = taken + len(part), filled + len(part)
            if filled == PORTION:
                yield portion
                portion, filled = np.zeros(PORTION, dtype=np.float32), 0
    if filled:
        yield portion[:filled]


def _gapless(pieces: Iterable[Piece]) -> Iterator[Samples]:
    position = 0
    for start_us, samples in pieces:
        gap = round(start_us * SAMPLE_RATE / US) - position
        if gap < -_JITTER:
            overlap_us = -gap * US // SAMPLE_RATE
            raise ValueError(f"the piece at {start_us} us overlaps the one before it by {overlap_us} us")
        if not np.isfinite(samples).all():
            raise ValueError(f"the piece at {start_us} us holds samples that are not finite")
        while gap > _JITTER:
            silence = np.zeros(min(gap, PORTION), dtype=np.float32)
            gap, position = gap - len(silence), position + len(silence)
            yield silence
        yield samples
        position += len(samples)


def _cut(activity: Probabilities, samples: Samples) -> int:
    """Number of frames of the block that ends here: more than 0, at most ``len(activity)``."""
    half = len(activity) // 2
    pauses = [(max((first + end) // 2, end - _LEAD), end - first) for first, end in _pauses(activity)]
    late = [(length, cut) for cut, length in pauses if cut >= half]
    if late:
        return max(late)[1]
    if pauses:
        return pauses[-1][0]
    frames = samples[: len(activity) * FRAME].reshape(-1, FRAME)
    energy = np.convolve(np.einsum("ij,ij->i", frames, frames), np.ones(_SMOOTH), mode="same")
    return half + int(np.argmin(energy[half:-_SMOOTH]))


def _pauses(activity: Probabilities) -> list[tuple[int, int]]:
    """Half-open ranges of frames that are silent for at least ``_MIN_PAUSE``."""
    silent: npt.NDArray[np.int8] = np.pad(activity < SILENCE_BELOW, 1).astype(np.int8)
    steps = np.diff(silent)
    ranges = zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True)
    return [(first, end) for first, end in ranges if end - first >= _MIN_PAUSE]
