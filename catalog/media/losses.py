"""Whether a decoder lost a frame that it was given.

PyAV hides an error that comes behind a frame, and while a decoder is drained also all that would follow. But
decoders give frames in the order in which they are shown: a packet that is overtaken by the frame of a later
time, or is left over in the end, gave none.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Losses:
    """Follows what goes into a decoder and comes out of it, by PTS."""

    def __init__(self) -> None:
        self._inside: list[int] = []
        self._start: int | None = None
        self._has_fields = False
        self.seen = False
        """Whether anything was lost so far."""

    def restart(self) -> None:
        """The decoder begins anew."""
        self._inside, self._start = [], None

    def fed(self, pts: int) -> None:
        """A packet that has a frame. Those that are shown before the first one need not decode."""
        self._start = pts if self._start is None else self._start
        if pts >= self._start:
            heappush(self._inside, pts)

    def came(self, pts: int, *, is_field: bool) -> None:
        """A frame. Of interlaced ones each field may have a packet of its own: they are not counted."""
        self._has_fields = self._has_fields or is_field
        while self._inside and self._inside[0] <= pts:
            is_overtaken = heappop(self._inside) < pts
            self.seen = self.seen or (is_overtaken and not self._has_fields)

    def drained(self) -> None:
        """Nothing more comes out."""
        self.seen = self.seen or (bool(self._inside) and not self._has_fields)
        self.restart()
