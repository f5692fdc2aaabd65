"""What can be measured of a window's pictures: light, colours and where they are, changes, motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from evicat.catalog.media.frame import Frame

from .colours import NEUTRAL, TERMS, colour_terms
from .sight_options import SightOptions

WIDTH: Final = 96
HEIGHT: Final = 54
_HISTOGRAM_BINS: Final = 8

Pixels = npt.NDArray[np.uint8]
Luma = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class Thumb:
    """A frame scaled to ``(HEIGHT, WIDTH, 3)`` whatever its shape; ``blank``: it is of one colour."""

    time_us: int
    pixels: Pixels
    luma: Luma
    blank: bool

    @property
    def brightness(self) -> float:
        return float(self.luma.mean())

    def __repr__(self) -> str:
        return f"Thumb(time_us={self.time_us}, brightness={self.brightness:.0f}, blank={self.blank})"


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour of a view: its share of the picture, and the place that most of it lies in (or ``""``)."""

    term: str
    share: float
    place: str


def thumb(frame: Frame, options: SightOptions) -> Thumb:
    """Scale a frame down; blank is decided on the full picture, where a thin line still counts."""
    import cv2

    pixels = cv2.resize(frame.image, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    return Thumb(frame.time_us, pixels, luma, _is_blank(frame.image, pixels, options))


def _is_blank(image: Pixels, small: Pixels, options: SightOptions) -> bool:
    median = np.median(small.reshape(-1, 3), axis=0)
    if _standing_out(small, median, options) > 0.1:
        return False
    return _standing_out(image, median, options) <= options.blank_share


def _standing_out(image: Pixels, median: npt.NDArray[np.float64], options: SightOptions) -> float:
    low = np.clip(median - options.blank_deviation, 0, 255).astype(np.uint8)
    high = np.clip(median + options.blank_deviation, 0, 255).astype(np.uint8)
    return float(((image < low) | (image > high)).any(axis=-1).mean())


def views(thumbs: Sequence[Thumb], options: SightOptions) -> list[list[Thumb]]:
    """Runs of neighbouring frames that show the same view, in time order."""
    runs: list[list[Thumb]] = []
    for item in thumbs:
        if runs and not is_change(runs[-1][-1], item, options):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def is_change(earlier: Thumb, later: Thumb, options: SightOptions) -> bool:
    """Whether two frames show different views: a cut (or a quick transition) lies between them."""
    if _difference(earlier, later) < options.change_difference:
        return False
    if earlier.blank and later.blank:
        return main_colour(earlier) != main_colour(later)
    return (
        correlation(earlier.luma, later.luma) < options.change_correlation
        and _colour_distance(earlier.pixels, later.pixels) >= options.change_colours
    )


def motion(view: Sequence[Thumb], options: SightOptions) -> list[Luma]:
    """Differences of each two neighbouring frames of a view, ``(HEIGHT, WIDTH)``; unclear ones left out."""
    return [
        _residual(earlier.luma, later.luma)
        for earlier, later in pairwise(view)
        if _difference(earlier, later) < options.change_difference
        or correlation(earlier.luma, later.luma) >= options.motion_correlation
    ]


def spot_difference(earlier: Thumb, later: Thumb) -> float:
    """Largest difference of brightness between two frames, over spots of 3 x 3."""
    import cv2

    return float(cv2.blur(np.abs(earlier.luma - later.luma), (3, 3)).max())


def colours(view: Sequence[Thumb], options: SightOptions) -> list[Colour]:
    """The colours of a view, largest share first; shares are means over its frames."""
    terms = np.stack([colour_terms(item.pixels) for item in view])
    found = []
    for index, name in enumerate(TERMS):
        where = (terms == index).mean(axis=0)
        needed = options.colour_share if name in NEUTRAL else options.accent_share
        if where.mean() >= needed:
            found.append(Colour(name, float(where.mean()), place(where, options)))
    return sorted(found, key=lambda colour: -colour.share)[: options.colours_named]


def main_colour(item: Thumb) -> str:
    """The colour term of most of a picture's pixels."""
    return TERMS[int(np.bincount(colour_terms(item.pixels).ravel(), minlength=len(TERMS)).argmax())]


def place(where: npt.NDArray[np.floating], options: SightOptions) -> str:
    """``at the top left``, ``in the middle``: where most of something lies; ``""`` where it is all over.

    ``where`` is its amount at every pixel, ``(HEIGHT, WIDTH)``, not all zero.
    """
    rows = where.reshape(3, HEIGHT // 3, WIDTH).sum(axis=(1, 2)) / where.sum()
    columns = where.reshape(HEIGHT, 3, WIDTH // 3).sum(axis=(0, 2)) / where.sum()
    vertical = _third(rows, options.place_share, ("top", "bottom"))
    horizontal = _third(columns, options.place_share, ("left", "right"))
    if (vertical, horizontal) == ("middle", "middle"):
        return "in the middle"
    sides = [side for side in (vertical, horizontal) if side not in ("", "middle")]
    if not sides or (len(sides) == 2 and " and " in "".join(sides)):
        return ""
    return f"{'at' if sides[0] == vertical else 'on'} the {' '.join(sides)}"


def _third(shares: npt.NDArray[np.floating], needed: float, names: tuple[str, str]) -> str:
    first, middle, last = (float(share) for share in shares)
    if first >= needed:
        return names[0]
    if last >= needed:
        return names[1]
    if middle >= needed:
        return "middle"
    both = min(first, last) >= needed / 2 and middle <= (1 - needed) / 2
    return f"{names[0]} and {names[1]}" if both else ""


def _difference(earlier: Thumb, later: Thumb) -> float:
    """Mean absolute difference over all pixels and channels; brightness alone misses red beside green."""
    return float(np.abs(earlier.pixels.astype(np.float32) - later.pixels).mean())


def correlation(earlier: Luma, later: Luma) -> float:
    """Pearson's correlation of two equal shapes; 0 where one of the two is flat."""
    one, two = earlier - earlier.mean(), later - later.mean()
    size = float(np.sqrt((one**2).sum() * (two**2).sum()))
    return float((one * two).sum()) / size if size > 0 else 0.0


def _residual(earlier: Luma, later: Luma) -> Luma:
    """Differences after the gain and offset of brightness that fit best: a fade is not a motion."""
    one, two = earlier - earlier.mean(), later - later.mean()
    power = float((one**2).sum())
    gain = float((one * two).sum()) / power if power > 0 else 0.0
    return np.asarray(np.abs(two - gain * one), dtype=np.float32)


def _colour_distance(earlier: Pixels, later: Pixels) -> float:
    """1 minus the Bhattacharyya overlap of two colour histograms (CIELAB, 8 x 8 x 8): 0 alike, 1 disjoint."""
    return 1 - float(np.sqrt(_histogram(earlier) * _histogram(later)).sum())


def _histogram(pixels: Pixels) -> npt.NDArray[np.float64]:
    import cv2

    lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB).reshape(-1, 3).astype(np.intp)
    steps = lab // (256 // _HISTOGRAM_BINS)
    index = steps @ np.array([_HISTOGRAM_BINS**2, _HISTOGRAM_BINS, 1])
    return np.bincount(index, minlength=_HISTOGRAM_BINS**3) / len(index)
