"""What a request asks for: query parameters that are known, given once, and within their bounds."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from starlette.datastructures import QueryParams

from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.span import US, parse_time
from evicat.viewer.app_catalogs import Place

MOST_CHARACTERS = 1_000
"""Of a query, or of a name."""
PLACE: Final = ("at", "view")
"""Parameters that every page has."""
_AT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Asked:
    """The parameters of one request.

    Raises:
        UsageError: one is unknown, or stands there twice.
    """

    def __init__(self, params: QueryParams, known: Collection[str] = ()) -> None:
        names = [name for name, _ in params.multi_items()]
        known = [*known, *PLACE]
        for name in names:
            if name not in known:
                raise UnknownNameError("parameter", name[:100], known)
            if names.count(name) > 1:
                raise UsageError(f"parameter {name} stands there twice")
        self._params = params
        self.place = Place(self._at(), self.text("view") or None)

    def _at(self) -> str | None:
        at = self.text("at")
        if at and not _AT.fullmatch(at):
            raise UsageError(f"at must be the name of a snapshot or the number of a head, got {at[:100]!r}")
        return at or None

    def text(self, name: str, most: int = MOST_CHARACTERS) -> str:
        """Characters, without blanks at both ends; empty where it is left out.

        Raises:
            UsageError: more than ``most`` of them, or control characters.
        """
        text = self._params.get(name, "").strip()
        if len(text) > most:
            raise UsageError(f"{name} has {len(text)} characters; at most {most} are taken")
        if _CONTROL.search(text):
            raise UsageError(f"{name} holds control characters")
        return text

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``.

        Raises:
            UsageError: it is none.
        """
        text = self._params.get(name, "").strip()
        if not text:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise UsageError(f"{name} must be a whole number from {low} to {high}, got {text[:100]!r}")
        return int(text)

    def time(self, name: str) -> float | None:
        """Seconds, of ``63.5`` or ``1:02:03``; None where it is left out.

        Raises:
            UsageError: it is no time.
        """
        text = self.text(name)
        try:
            return parse_time(text) / US if text else None
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None

    def one_of(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of ``choices``.

        Raises:
            UnknownNameError: it is none; names them.
        """
        text = self.text(name) or default
        if text not in choices:
            raise UnknownNameError(name, text[:100], list(choices))
        return text
