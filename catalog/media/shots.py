"""Where one shot of a video ends and the next begins, found while its frames are decoded.

PySceneDetect's content detector says how much the picture changes from one frame to the next: the mean
difference of hue, saturation and brightness. A sudden change is a cut only if it lasts: behind a flash, the
picture is what it was before. (The library's own filter against flashes cuts where the flash begins.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from evicat.schemas.span import US

from .picture import Image

SHOTS_VERSION = 1
"""Bumped when the same frames begin to give other cuts, whether by this file or by PySceneDetect."""
DETECTOR = "pyscenedetect-content"
THRESHOLD = 27.0
"""Mean change per pixel, of 255, from which on a change is sudden: the detector's own default."""
LOOK_WIDTH = 128
"""Pixels; wider pictures are scaled down to this before they are compared, which also evens out noise."""
CALM_US = 250_000
"""A sudden change is judged when none has followed it for so long: flashes of a camera last less."""
RESTLESS_US = 1_000_000
"""Where changes go on and on, they are judged after so long."""


@dataclass(slots=True)
class _Jump:
    """A sudden change that is not judged so far."""

    at_us: int
    latest_us: int
    """Time of the latest sudden change that followed without calm."""
    before: Image


class Cuts:
    """Takes small pictures in time order and tells the cuts: times of the first frames of new shots."""

    def __init__(self) -> None:
        self._detector = _detector()
        self._latest: Image | None = None
        self._jump: _Jump | None = None
        self.settled_us = 0
        """All cuts before this have been told."""

    def show(self, time_us: int, image: Image) -> int | None:
        """Take the next picture, RGB; the time of the cut that is certain now, if one is."""
        image = self._as_before(np.ascontiguousarray(image[:, :, ::-1]))
        is_sudden = _changes(self._detector, time_us, image)
        before = image if self._latest is None else self._latest
        cut = None
        if self._jump and self._is_over(self._jump, time_us):
            cut = self._judge(self._jump, before if is_sudden else image)
        if is_sudden and self._jump:
            self._jump.latest_us = time_us
        elif is_sudden:
            self._jump = _Jump(time_us, time_us, before)
        self._latest = image
        self.settled_us = self._jump.at_us if self._jump else time_us + 1
        return cut

    def end(self) -> int | None:
        """There are no more pictures; the time of the last cut, if it was not told."""
        return self._judge(self._jump, self._latest) if self._jump else None

    @staticmethod
    def _is_over(jump: _Jump, time_us: int) -> bool:
        return time_us - jump.latest_us >= CALM_US or time_us - jump.at_us >= RESTLESS_US

    def _judge(self, jump: _Jump, after: Image | None) -> int | None:
        self._jump = None
        pair = _detector()
        _changes(pair, 0, jump.before)
        return jump.at_us if after is not None and _changes(pair, 1, after) else None

    def _as_before(self, image: Image) -> Image:
        """The picture in the size of the first one: streams may change theirs on the way."""
        if self._latest is None or self._latest.shape == image.shape:
            return image
        import cv2

        height, width = self._latest.shape[:2]
        resized: npt.NDArray[np.uint8] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        return resized


def _detector() -> Any:
    from scenedetect.detectors import ContentDetector

    return ContentDetector(threshold=THRESHOLD, min_scene_len=0)


def _changes(detector: Any, time_us: int, image: Image) -> bool:
    """Whether a picture (BGR) differs suddenly from the one that the detector saw before."""
    from scenedetect.common import FrameTimecode, Timecode

    time = FrameTimecode(Timecode(pts=time_us, time_base=Fraction(1, US)), fps=25.0)
    return bool(detector.process_frame(time, image))
