"""Speech: our path over bare faster-whisper on the same sound, and half-silent over all-speech sound.

Bounds: 1.10 and 0.6. Bare means one call of the library with the same weights and options and its own VAD.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from media import conversation
from sides import compare, end

from evicat.catalog.recipes import load_recipe
from evicat.catalog.transcribers.clean import transcribe_pieces
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US

RATE = 16_000
PIECE = 20 * RATE
MINUTES = 5
Sound = npt.NDArray[np.float32]


def pieces(sound: Sound) -> Iterator[tuple[int, Sound]]:
    for start in range(0, len(sound), PIECE):
        yield start * US // RATE, sound[start : start + PIECE]


def main() -> None:
    from faster_whisper import WhisperModel

    speech = load_recipe("default").speech
    if speech is None:
        raise SystemExit("the default recipe has no speech")
    transcriber = load_transcriber(speech, Profile())
    from evicat.catalog.weights import resolve

    weights = resolve(speech.model, profile=Profile())
    bare_model = WhisperModel(weights.location, device="cpu", compute_type=speech.compute_type)
    with tempfile.TemporaryDirectory() as folder:
        talk = conversation(Path(folder), MINUTES)
        silent = talk.copy()
        for start in range(0, len(silent), 60 * RATE):
            silent[start : start + 30 * RATE] = 0

        def ours(sound: Sound) -> int:
            return sum(len(heard.segments) for _, heard in transcribe_pieces(transcriber, pieces(sound)))

        def bare() -> int:
            segments, _ = bare_model.transcribe(
                talk,
                language="en",
                beam_size=transcriber.options.beam_size,
                word_timestamps=True,
                condition_on_previous_text=False,
                temperature=0,
                vad_filter=True,
            )
            return len(list(segments))

        end(
            compare("speech path / bare faster-whisper", ours=lambda: ours(talk), other=bare, bound=1.10),
            compare(
                "half-silent / all-speech", ours=lambda: ours(silent), other=lambda: ours(talk), bound=0.6
            ),
        )


if __name__ == "__main__":
    main()
