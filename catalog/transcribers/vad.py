"""Voice activity, streamed: the Silero model that faster-whisper carries, its state kept between portions.

``faster_whisper.vad`` runs the same model over one whole array; here memory does not grow with the sound.
Where a number differs from the library's, the reason is given. Bump ``CLEAN_VERSION`` when one changes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evicat.catalog.transcribers.base import SAMPLE_RATE, Samples, Stretches

FRAME = 512
"""Samples of one probability (32 ms); the model knows no other length."""
FRAMES_PER_S = SAMPLE_RATE / FRAME
PORTION = 125 * FRAME
"""Samples (4 s) that the model is asked about at once."""

Probabilities = npt.NDArray[np.float32]

SPEECH_FROM = 0.4
"""A frame with this probability begins speech, or goes on with it. The library takes 0.5 and 0.35, which lost
the first words of a telephone call after silence; what is not speech, Whisper itself can still doubt."""
SILENCE_BELOW = 0.25
"""A frame below this may end speech; between the two, what was goes on."""
_MIN_SILENCE = round(2.0 * FRAMES_PER_S)
"""Frames. Shorter pauses stay inside a stretch: the model needs a sentence whole."""
_MIN_SPEECH = 3
"""Frames, 96 ms, chosen: no word is shorter, clicks are. faster-whisper takes a single frame."""
_PAD = round(0.4 * SAMPLE_RATE)
"""Samples added on both sides, for soft first and last sounds; less than half of the shortest silence."""

_FORGET_BELOW = 0.2
"""After a portion that stays below this the state starts afresh. The library keeps it, and the longer a
silence was, the less the model believes the speech after it: 0.54 at once, 0.42 after 200 s."""
_CONTEXT = 64
_STATE_SHAPE = (1, 1, 128)


class VoiceActivity:
    """Probabilities of speech for sound that comes in portions; one object per sound."""

    def __init__(self) -> None:
        from faster_whisper.vad import get_vad_model

        self._session = get_vad_model().session
        self._before = np.zeros(_CONTEXT, dtype=np.float32)
        self._forget()

    def _forget(self) -> None:
        self._h = np.zeros(_STATE_SHAPE, dtype=np.float32)
        self._c = np.zeros(_STATE_SHAPE, dtype=np.float32)

    def probabilities(self, portion: Samples) -> Probabilities:
        """One per frame of ``portion``: shape ``(ceil(n / FRAME),)``.

        A portion has ``PORTION`` samples; the last may have fewer, and is filled up with silence.
        """
        frames = np.pad(portion, (0, -len(portion) % FRAME)).reshape(-1, FRAME)
        tails = np.vstack([self._before, frames[:, -_CONTEXT:]])
        self._before = tails[-1]
        inputs = {"input": np.hstack([tails[:-1], frames]), "h": self._h, "c": self._c}
        found, self._h, self._c = self._session.run(None, inputs)
        if found.max() < _FORGET_BELOW:
            self._forget()
        return np.asarray(found, dtype=np.float32)


def stretches(probabilities: Probabilities, sample_count: int) -> Stretches:
    """Ranges of samples with speech, at least 2 s apart, inside ``[0, sample_count)``."""
    found: list[tuple[int, int]] = []
    start = silent_from = None
    for frame, probability in enumerate(probabilities.tolist()):
        if probability >= SPEECH_FROM:
            start = frame if start is None else start
            silent_from = None
        elif start is not None and probability < SILENCE_BELOW:
            silent_from = frame if silent_from is None else silent_from
            if frame - silent_from >= _MIN_SILENCE:
                found.append((start, silent_from))
                start = silent_from = None
    if start is not None:
        found.append((start, len(probabilities) if silent_from is None else silent_from))
    return tuple(
        (max(0, first * FRAME - _PAD), min(sample_count, end * FRAME + _PAD))
        for first, end in found
        if end - first >= _MIN_SPEECH
    )


def find_speech(samples: Samples) -> Stretches:
    """Ranges of ``samples`` with speech, for sound that is at hand as a whole."""
    voice = VoiceActivity()
    portions = [samples[at : at + PORTION] for at in range(0, len(samples), PORTION)]
    found = [voice.probabilities(portion) for portion in portions]
    return stretches(np.concatenate(found), len(samples)) if found else ()
