"""Zero-shot detection by models of the transformers library: OWL-ViT, OWLv2 and Grounding DINO.

Boxes come back in 1000 x 1000 of the picture that went in, whatever the model's processor made of it: OWLv2's
pads to a square before it scales.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evicat.catalog.boxes import SIDE, Corners
from evicat.catalog.devices import device_of
from evicat.catalog.weights import Weights
from evicat.schemas.errors import EngineDownError, RequestError, UsageError, first_line
from evicat.schemas.recipe import Profile

Image = npt.NDArray[np.uint8]
BATCH: Final = 8
"""Frames that a model looks at together."""
NAMES_AT_ONCE: Final = 8
"""Names in one prompt of Grounding DINO at most; fewer where they have more tokens than it reads, 256."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A name, and where in the picture it was found."""

    name: str
    corners: Corners
    """In 1000 x 1000; it may stick out of the picture."""
    confidence: float


class Detector(ABC):
    """A loaded model with its processor."""

    def __init__(self, model: Any, processor: Any, device: str) -> None:
        self._model, self._processor, self._device = model, processor, device

    def find(self, images: Sequence[Image], names: Sequence[str], confidence: float) -> list[list[Detection]]:
        """For each image what of ``names`` was found with more than this confidence.

        Raises:
            RequestError: the model's processor takes no pictures of this size.
            EngineDownError: torch fails, or has too little memory.
        """
        import torch

        found: list[list[Detection]] = []
        try:
            with torch.inference_mode():
                for start in range(0, len(images), BATCH):
                    found += self._find(list(images[start : start + BATCH]), list(names), confidence)
        except ValueError as error:  # such as a side that is scaled to nothing
            height, width = images[0].shape[:2]
            raise RequestError(
                f"the detector takes no frames of {width}x{height}: {first_line(error)}"
            ) from error
        except (RuntimeError, MemoryError) as error:
            raise EngineDownError(
                f"the detector on {self._device} has failed ({type(error).__name__}: {first_line(error)}); "
                "run the same command once more, with smaller frames or on another device if memory is short"
            ) from error
        return found

    def reads_whole(self, name: str) -> bool:
        """Whether the model takes in all of a name."""
        return True

    @abstractmethod
    def _find(self, images: list[Image], names: list[str], confidence: float) -> list[list[Detection]]: ...

    def _run(self, **given: Any) -> tuple[Any, Any]:
        """What goes into the model, and what comes out of it, on the CPU."""
        given |= {"input_data_format": "channels_last"}  # of few rows the library cannot tell
        inputs = self._processor(**given, truncation=True, return_tensors="pt").to(self._device)
        outputs = self._model(**inputs)
        outputs.logits, outputs.pred_boxes = outputs.logits.float().cpu(), outputs.pred_boxes.float().cpu()
        return inputs, outputs


class Owl(Detector):
    """OWL-ViT and OWLv2: each place in the picture is compared with every name, and gets the likeliest."""

    def reads_whole(self, name: str) -> bool:
        tokens = self._processor.tokenizer(name)["input_ids"]
        return len(tokens) <= int(self._model.config.text_config.max_position_embeddings)

    def _find(self, images: list[Image], names: list[str], confidence: float) -> list[list[Detection]]:
        _, outputs = self._run(images=images, text=[names] * len(images))
        results = self._processor.post_process_grounded_object_detection(
            outputs,
            threshold=confidence,
            target_sizes=[image.shape[:2] for image in images],
            text_labels=[names] * len(images),
        )
        return [_detections(result, image) for result, image in zip(results, images, strict=True)]


def _detections(result: Any, image: Image) -> list[Detection]:
    height, width = image.shape[:2]
    scale = np.array([SIDE / width, SIDE / height] * 2)
    corners = (result["boxes"].numpy() * scale).tolist()
    found = zip(result["text_labels"], corners, result["scores"].tolist(), strict=True)
    return [Detection(name, (box[0], box[1], box[2], box[3]), score) for name, box, score in found]


class GroundingDino(Detector):
    """Grounding DINO: names stand in one text, and each box is compared with every token of it.

    The library tells which words a box is of, run together where several names have some; here each name has
    the score of its best token, and a box is of the name with the best score.
    """

    def _find(self, images: list[Image], names: list[str], confidence: float) -> list[list[Detection]]:
        found: list[list[Detection]] = [[] for _ in images]
        for some in self._prompts(names):
            for had, more in zip(found, self._find_some(images, some, confidence), strict=True):
                had += more
        return found

    def _prompts(self, names: Sequence[str]) -> Iterator[list[str]]:
        """The names of each prompt."""
        some: list[str] = []
        for name in names:
            if len(some) == NAMES_AT_ONCE or (some and not self._reads_all([*some, name])):
                yield some
                some = []
            some.append(name)
        if some:
            yield some

    def _reads_all(self, names: Sequence[str]) -> bool:
        tokens = self._processor.tokenizer(one_text(names)[0])["input_ids"]
        return len(tokens) <= int(self._model.config.max_text_len)

    def _find_some(self, images: list[Image], names: list[str], confidence: float) -> list[list[Detection]]:
        import torch
        from transformers.image_transforms import center_to_corners_format

        text, spans = one_text(names)
        inputs, outputs = self._run(images=images, text=[text] * len(images))
        tokens = self._tokens(text, spans, inputs["input_ids"].shape[1])
        scores = outputs.logits.sigmoid()
        by_name = torch.stack([scores[:, :, own].amax(-1) for own in tokens], -1)
        best, which = by_name.max(-1)
        corners: Any = center_to_corners_format(outputs.pred_boxes)
        found: list[list[Detection]] = []
        results = (part.tolist() for part in (corners * SIDE, which, best))
        for boxes, indices, sure in zip(*results, strict=True):
            scored = zip(boxes, indices, sure, strict=True)
            found.append(
                [Detection(names[i], tuple(box), score) for box, i, score in scored if score > confidence]
            )
        return found

    def _tokens(self, text: str, spans: Sequence[tuple[int, int]], count: int) -> list[list[int]]:
        """By name, which tokens of the text it has."""
        read = self._processor.tokenizer(text, return_offsets_mapping=True, truncation=True)
        offsets = read["offset_mapping"][:count]
        return [
            [index for index, (start, end) in enumerate(offsets) if start < last and first < end]
            for first, last in spans
        ]


def one_text(names: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """``a dog. a red mug.``, and from where to where in it each name stands. A full stop ends a name."""
    text, spans = "", []
    for name in names:
        bare = " ".join(name.lower().replace(".", " ").split())
        spans.append((len(text), len(text) + len(bare)))
        text += f"{bare}. "
    return text.rstrip(), spans


KINDS: Final[dict[str, type[Detector]]] = {
    "owlvit": Owl,
    "owlv2": Owl,
    "grounding-dino": GroundingDino,
    "mm-grounding-dino": GroundingDino,
}
"""By ``model_type`` of a model's configuration."""


def load_detector(weights: Weights, profile: Profile) -> Detector:
    """Load a model of any known kind.

    Raises:
        UsageError: it cannot be loaded on the profile's device, or is of another kind.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForZeroShotObjectDetection, AutoProcessor
    from transformers.utils import logging as transformers_logging

    device = device_of(profile)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if profile.threads:
        torch.set_num_threads(profile.threads)
    try:
        kind = AutoConfig.from_pretrained(weights.location, local_files_only=True).model_type
        if kind not in KINDS:
            raise UsageError(
                f"{weights.ref.name!r} is of type {kind!r}; a detector is of one of these: {', '.join(KINDS)}"
            )
        model = AutoModelForZeroShotObjectDetection.from_pretrained(
            weights.location, dtype=torch.float32, local_files_only=True
        )
        processor = AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            weights.location, local_files_only=True
        )
        return KINDS[kind](model.eval().to(device), processor, device)
    except (ImportError, OSError, RuntimeError, SafetensorError, ValueError) as error:
        raise UsageError(
            f"cannot load the detector {weights.ref.name!r} from {weights.location} on {device}: {error}"
        ) from error
