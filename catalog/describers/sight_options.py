"""Every threshold of the ``sight`` describer."""

from __future__ import annotations

from pydantic import Field

from evicat.schemas.model import Model


class SightOptions(Model):
    """Thresholds, tuned by eye on films, street footage, animation, title cards and photographs.

    Brightness is luma (Rec. 601) from 0 to 255. Differences and correlations are between two pictures
    scaled to 96 x 54. The rule that names colours is fixed: see :mod:`.colours`.
    """

    blank_deviation: int = Field(default=24, ge=0, le=255)
    """A pixel stands out if a channel is further than this from the picture's median colour."""
    blank_share: float = Field(default=0.0002, ge=0, le=1)
    """A picture in which at most this share of the pixels stands out shows nothing: it is of one colour."""

    dark_below: float = Field(default=45, ge=0, le=255)
    """A picture with a mean brightness below this is dark."""
    dim_below: float = Field(default=75, ge=0, le=255)
    """Below this, it is dim."""
    bright_from: float = Field(default=150, ge=0, le=255)
    """From this on, it is bright."""
    brightness_step: float = Field(default=25, ge=0, le=255)
    """A view gets brighter or darker if its last frame differs this much from its first."""

    change_difference: float = Field(default=12, ge=0, le=255)
    """Two frames can show different views if their mean brightness difference reaches this, ..."""
    change_correlation: float = Field(default=0.6, ge=-1, le=1)
    """... their correlation stays below this (a change of light alone leaves it higher), ..."""
    change_colours: float = Field(default=0.12, ge=0, le=1)
    """... and the Bhattacharyya distance (1 - overlap) of their colour histograms reaches this
    (movement within one view stays below it)."""

    little_motion_from: float = Field(default=1, ge=0, le=255)
    """Little movement: mean difference of neighbouring frames of one view, their light made equal."""
    motion_from: float = Field(default=6, ge=0, le=255)
    """Movement: the same difference."""
    much_motion_from: float = Field(default=15, ge=0, le=255)
    """Much movement: the same difference."""
    motion_correlation: float = Field(default=0.3, ge=-1, le=1)
    """Frames that differ by ``change_difference`` and correlate less than this are not compared for motion:
    they may show different views in like colours."""

    colour_share: float = Field(default=0.1, gt=0, le=1)
    """Black, white, grey and brown are named from this share of the picture on."""
    accent_share: float = Field(default=0.02, gt=0, le=1)
    """Other colours are named from this share on."""
    colours_named: int = Field(default=5, ge=1, le=11)
    """Colours that are named at most."""
    place_share: float = Field(default=0.65, ge=0.34, le=1)
    """A colour (or the movement) is at the top, bottom, left or right if this share of it lies in that third
    of the picture."""

    ocr_frames: int = Field(default=4, ge=0, le=512)
    """Frames of a window that text is read in, at most; 0: none. A frame takes 0.15 to 0.3 s of one core."""
    ocr_change: float = Field(default=16, ge=0, le=255)
    """Text is read again where some spot (3 x 3 of 96 x 54) differs this much from the last frame read."""
    ocr_side: int = Field(default=480, ge=64, le=4096)
    """Longer side, in pixels, that a picture is scaled down to when text is searched in it."""
    ocr_confidence: float = Field(default=0.9, ge=0, le=1)
    """Lines read with less confidence are dropped."""
    ocr_confidence_short: float = Field(default=0.96, ge=0, le=1)
    """The same for short lines."""
    ocr_short: int = Field(default=4, ge=0)
    """Letters and digits of a short line, at most."""
    ocr_characters: int = Field(default=2, ge=1)
    """Letters and digits that a line needs: round things are read as ``O`` and ``C`` with high confidence."""

    text_likeness: float = Field(default=0.9, ge=0, le=1)
    """A text is seen in a frame that was not read if every piece of its box correlates this much with the
    frame in which it was read."""
    text_agreement: float = Field(default=0.8, ge=0, le=1)
    """Two readings of the same pixels are one text if their letters agree this much (Ratcliff and
    Obershelp's ratio) and their digits wholly."""
