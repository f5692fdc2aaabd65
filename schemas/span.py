"""Time: half-open spans in integer microseconds, and their printed form ``1:02:03.250``."""

from __future__ import annotations

import re
from dataclasses import dataclass

US = 1_000_000
_TIME = re.compile(r"(?:(?:(\d+):)?(\d{1,2}):)?(\d+(?:\.\d{1,6})?)")


def to_us(seconds: float) -> int:
    """Nearest whole microsecond of ``seconds``; the inverse of ``us / 1e6`` below 2**53 us."""
    return round(seconds * US)


def format_time(us: int) -> str:
    """``3723250000`` as ``1:02:03.250``; microseconds are shown only where milliseconds do not suffice."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    minutes, rest = divmod(us, 60 * US)
    hours, minutes = divmod(minutes, 60)
    seconds, fraction = divmod(rest, US)
    digits = f"{fraction // 1000:03d}" if fraction % 1000 == 0 else f"{fraction:06d}"
    return f"{sign}{hours}:{minutes:02d}:{seconds:02d}.{digits}"


def parse_time(text: str) -> int:
    """Microseconds of ``1:02:03.250``, ``02:03`` or ``63.5``.

    Raises:
        ValueError: the text is none of these, or its minutes or seconds pass 59 beside a larger unit.
    """
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError(f"not a time: {text!r}; write seconds (63.5) or [h:]mm:ss[.fff] (1:02:03.250)")
    hours, minutes, seconds = match.groups()
    if minutes is not None and float(seconds) >= 60:
        raise ValueError(f"not a time: {text!r}; seconds must be below 60")
    if hours is not None and int(minutes) >= 60:
        raise ValueError(f"not a time: {text!r}; minutes must be below 60")
    return (int(hours or 0) * 60 + int(minutes or 0)) * 60 * US + to_us(float(seconds))


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """Half-open interval ``[start_us, end_us)`` on an asset's own timeline, in microseconds.

    Raises:
        ValueError: ``start_us`` is negative, or ``end_us`` is not beyond ``start_us``.
    """

    start_us: int
    end_us: int

    def __post_init__(self) -> None:
        if self.start_us < 0:
            raise ValueError(f"start must be >= 0, got start={self.start_us / US}")
        if self.end_us <= self.start_us:
            raise ValueError(f"end must be > start, got start={self.start_us / US}, end={self.end_us / US}")

    @classmethod
    def from_seconds(cls, start: float, end: float) -> Span:
        return cls(to_us(start), to_us(end))

    @classmethod
    def parse(cls, text: str) -> Span:
        """``0:30.000-1:02:03.250``; also ``30:90`` in plain seconds, as ``--between`` takes it."""
        separator = "-" if "-" in text else ":"
        start, _, end = text.partition(separator)
        if text.count(separator) != 1:
            raise ValueError(
                f"not a span: {text!r}; write START-END (0:30-1:30) or START:END in seconds (30:90)"
            )
        return cls(parse_time(start), parse_time(end))

    @property
    def start_s(self) -> float:
        return self.start_us / US

    @property
    def end_s(self) -> float:
        return self.end_us / US

    @property
    def duration_us(self) -> int:
        return self.end_us - self.start_us

    def __contains__(self, time_us: int) -> bool:
        return self.start_us <= time_us < self.end_us

    def overlap_us(self, other: Span) -> int:
        """Length that both share; 0 where they only touch."""
        return max(0, min(self.end_us, other.end_us) - max(self.start_us, other.start_us))

    def clip(self, bounds: Span) -> Span | None:
        """The part inside ``bounds``, or None where there is none."""
        start, end = max(self.start_us, bounds.start_us), min(self.end_us, bounds.end_us)
        return Span(start, end) if end > start else None

    def __str__(self) -> str:
        return f"{format_time(self.start_us)}-{format_time(self.end_us)}"
