"""The words by which engines say that a prompt is too long for them, or holds too many images."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = re.compile(
    r"context|longer than|too (?:long|large|many)|at most \d|exceed|maximum (?:number|length|input)|<= \d",
    re.IGNORECASE,
)
"""Of vLLM, SGLang, llama.cpp, TGI, Ollama and hosted servers. Where they mean something else, one more
request is sent, with half the images."""


def says_too_long(said: str) -> bool:
    """Whether a refusal means that a shorter prompt, or one with fewer images, may be answered."""
    return _WORDS.search(said) is not None
