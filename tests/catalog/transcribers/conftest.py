"""Thirty seconds of a real conversation, as samples."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def conversation(evicat_samples: Path) -> np.ndarray:
    """``(480000,)`` float32 at 16 kHz: two women on the telephone, silent until 6.69 s."""
    with wave.open(str(evicat_samples / "conversation.wav")) as reader:
        assert (reader.getframerate(), reader.getnchannels()) == (16_000, 1)
        data = reader.readframes(reader.getnframes())
    samples = np.frombuffer(data, dtype="<i2").astype(np.float32) / 32768
    samples.flags.writeable = False
    return samples
