"""The one form in which engines of this process write JSON, as ``llguidance`` is told of it."""

from __future__ import annotations

from typing import Any, Final

_FORM: Final = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As ``json.dumps`` writes it: a blank after each comma and colon, none elsewhere. Free blanks would let a
model write blanks without end."""


def guided(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema``, with the form in which answers by it are written."""
    return schema | {"x-guidance": _FORM}
