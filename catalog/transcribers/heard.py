"""Which language is heard: detected on speech alone, for each block anew, and never fixed for a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evicat.catalog.transcribers.base import SAMPLE_RATE, Samples

DETECTED = 30 * SAMPLE_RATE
"""Samples that Whisper detects a language from."""
SURE_LANGUAGE_FROM = 0.5
"""Chosen: below it, all other languages together are as likely."""


class Heard(NamedTuple):
    """A language, and its probability; None: it was given, not detected."""

    language: str
    probability: float | None = None


def heard_at_ends(sound: Samples, detect: Callable[[Samples], Heard]) -> list[Heard]:
    """The language of the first and of the last 30 s of speech; one answer where there is no more."""
    ends = [sound[:DETECTED], sound[-DETECTED:]] if len(sound) > DETECTED else [sound]
    return [detect(end) for end in ends]


def is_one_language(heard: list[Heard]) -> bool:
    """Whether all agree and are sure."""
    languages = {each.language for each in heard}
    return len(languages) == 1 and all((each.probability or 0) >= SURE_LANGUAGE_FROM for each in heard)
