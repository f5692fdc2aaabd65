"""From a stream's PTS to microseconds, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evicat.schemas.asset import VideoFacts
from evicat.schemas.span import US


def to_us(ticks: int, time_base: Fraction) -> int:
    """``ticks * time_base`` as the nearest whole microsecond; halves go up."""
    divisor = time_base.denominator
    return (2 * US * ticks * time_base.numerator + divisor) // (2 * divisor)


@dataclass(frozen=True, slots=True)
class Clock:
    """The timeline of an asset as one of its streams counts it: second 0 is ``origin_pts``."""

    time_base: Fraction
    origin_pts: int

    @classmethod
    def of(cls, video: VideoFacts) -> Clock:
        return cls(Fraction(video.time_base), video.origin_pts)

    def time_us(self, pts: int) -> int:
        """Microseconds on the asset's timeline; negative before its first frame."""
        return to_us(pts - self.origin_pts, self.time_base)
