"""Names of colours: the eleven basic colour terms of English (Berlin and Kay, 1969), by a fixed rule.

Each pixel is turned into OKLab (B. Ottosson, "A perceptual color space for image processing", 2020), where
equal hue angles look like equal hues, also in blue. The rule, with lightness L (0 to 1), chroma C and hue
angle h in degrees, first match wins:

===========  =====================================================================================
black        L < 0.15, or L < 0.25 and C < 0.035
white        L >= 0.87 and C < 0.04
grey         C < 0.03
red          15 <= h < 42, except light ones (L >= 0.70: pink) and dull dark ones (C < 0.10, L < 0.60: brown)
orange       42 <= h < 80 where L >= 0.62 and C >= 0.11; else brown
yellow       80 <= h < 118 where L >= 0.72 and C >= 0.08; else brown below 100 degrees, green above
green        118 <= h < 180
blue         180 <= h < 288
purple       288 <= h < 345, except light ones from 310 degrees (L >= 0.68: pink)
pink         345 <= h < 375 where L >= 0.60; else red
===========  =====================================================================================
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

TERMS: Final = (
    "black",
    "white",
    "grey",
    "red",
    "orange",
    "yellow",
    "green",
    "blue",
    "purple",
    "pink",
    "brown",
)

NEUTRAL: Final = frozenset({"black", "white", "grey", "brown"})
"""Terms of which a small share catches no eye."""

_LINEAR: Final = np.array(
    [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in np.arange(256) / 255],
    dtype=np.float32,
)
_TO_LMS: Final = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    dtype=np.float32,
)
_TO_LAB: Final = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ],
    dtype=np.float32,
)


def oklab(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """OKLab of sRGB pixels: shape ``(..., 3)`` uint8 to ``(..., 3)`` float32, L from 0 to 1."""
    lms = np.cbrt(_LINEAR[rgb] @ _TO_LMS.T)
    return np.asarray(lms @ _TO_LAB.T, dtype=np.float32)


def colour_terms(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """The term of every pixel, as an index into :data:`TERMS`: shape ``(..., 3)`` to ``(...)``."""
    lab = oklab(rgb)
    light = lab[..., 0]
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    hue = np.degrees(np.arctan2(lab[..., 2], lab[..., 1])) % 360
    hue = np.where(hue < 15, hue + 360, hue)
    rule: list[tuple[npt.NDArray[np.bool_], str]] = [
        ((light < 0.15) | ((light < 0.25) & (chroma < 0.035)), "black"),
        ((light >= 0.87) & (chroma < 0.04), "white"),
        (chroma < 0.03, "grey"),
        ((hue < 42) & (light >= 0.70), "pink"),
        ((hue < 42) & (light < 0.60) & (chroma < 0.10), "brown"),
        (hue < 42, "red"),
        ((hue < 80) & (light >= 0.62) & (chroma >= 0.11), "orange"),
        (hue < 80, "brown"),
        ((hue < 118) & (light >= 0.72) & (chroma >= 0.08), "yellow"),
        (hue < 100, "brown"),
        (hue < 180, "green"),
        (hue < 288, "blue"),
        ((hue < 345) & (hue >= 310) & (light >= 0.68), "pink"),
        (hue < 345, "purple"),
        (light >= 0.60, "pink"),
    ]
    indices = [np.intp(TERMS.index(term)) for _, term in rule]
    return np.select([where for where, _ in rule], indices, default=np.intp(TERMS.index("red")))
