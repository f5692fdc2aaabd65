"""Base of all validated values: frozen, strict about unknown fields, serialised as canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen value whose unknown fields are errors; the docstring below a field is its description."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings", use_attribute_docstrings=True
    )


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(value: Any) -> str:
    """First 128 bits of SHA-256 over :func:`canonical_json`, as 32 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]
