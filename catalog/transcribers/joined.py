"""The stretches of speech of a block, joined for an engine, and its words put back to their true times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evicat.catalog.transcribers.base import SAMPLE_RATE, RawWord, Samples, Stretches

if TYPE_CHECKING:
    from faster_whisper.vad import SpeechTimestampsMap


def join(samples: Samples, speech: Stretches) -> Samples:
    """``(n,)`` float32: the stretches of ``samples``, one after another."""
    return np.concatenate([samples[start:end] for start, end in speech])


class TrueTimes:
    """From times in the joined sound to times in the block that it was taken from; both in seconds."""

    def __init__(self, speech: Stretches) -> None:
        from faster_whisper.vad import SpeechTimestampsMap

        chunks = [{"start": start, "end": end} for start, end in speech]
        self._clock: SpeechTimestampsMap = SpeechTimestampsMap(chunks, SAMPLE_RATE, time_precision=6)
        self._speech = speech

    def word(self, start_s: float, end_s: float, text: str, probability: float | None = None) -> RawWord:
        """A word of the joined sound, at its true times.

        Its middle decides to which stretch it belongs, so that both its times lie in the same one.
        """
        index = self._clock.get_chunk_index((start_s + end_s) / 2)
        first, last = (sample / SAMPLE_RATE for sample in self._speech[index])
        start, end = (
            min(max(float(self._clock.get_original_time(time, index)), first), last)
            for time in (start_s, end_s)
        )
        return RawWord(start, end, text, probability)
