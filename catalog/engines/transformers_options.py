"""Settings of the engine ``transformers``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evicat.schemas.model import Model


class TransformersOptions(Model):
    """Settings of the engine ``transformers``, written under ``[engines."MODEL".options]`` of the profile.

    They say how fast, and in how much memory. ``dtype``, ``attention`` and ``structured`` may let another of
    two close tokens win, as another server would: keep them as they are for a whole catalog.
    """

    batch_size: int = Field(default=8, ge=1, le=1024)
    """Requests that are answered together, at most. More is faster on a GPU, and takes more memory. With a
    ``concurrency`` twice as high the next ones wait when these are answered."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Numbers that the weights are held in; ``auto``: as the checkpoint has them."""
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    """Which code computes attention; ``auto``: what the library takes for the model."""
    structured: Literal["grammar", "none"] = "grammar"
    """How answers come to have their form: each token is kept to the JSON schema of the request; or by the
    prompt alone. Every answer is checked against the schema afterwards, whichever it is."""
