"""Reading text in pictures: RapidOCR with the weights that its wheel carries; nothing is downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evicat.catalog.media.frame import Frame
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.records import ObjectBox

from .looks import Thumb, spot_difference
from .sight_options import SightOptions
from .words import one_line

SMALLEST_SIDE_PX: Final = 16
"""Pictures that are lower or narrower hold no legible line."""

_WEIGHTS: Final = ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx")


@dataclass(frozen=True, slots=True)
class OcrWeights:
    """The two weight files, text search and text reading, and a digest over both."""

    search: Path
    read: Path
    digest: str


@lru_cache(maxsize=1)
def packaged_weights() -> OcrWeights:
    """Find the weights inside the installed package, without importing it.

    Raises:
        UsageError: the package is missing, or of a release that carries other weights.
    """
    spec = find_spec("rapidocr")
    folders = list(spec.submodule_search_locations or []) if spec else []
    search, read = (Path(folders[0] if folders else "") / "models" / name for name in _WEIGHTS)
    if not (search.is_file() and read.is_file()):
        raise UsageError(
            f"no {' and '.join(_WEIGHTS)} in the installed rapidocr; "
            "install it with: pip install 'rapidocr>=3.9', or set ocr_frames = 0 in the options of 'sight'"
        )
    digest = hashlib.sha256()
    for path in (search, read):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return OcrWeights(search, read, digest.hexdigest())


def ocr_model() -> ModelRef:
    """The packaged weights as a model; reads the files for their digest, loads nothing."""
    return ModelRef(name="PP-OCRv6-small", digest=packaged_weights().digest)


def frames_to_read(thumbs: Sequence[Thumb], options: SightOptions) -> list[int]:
    """Indices of the frames to read: those that changed since the last one, evenly thinned to the budget.

    Blank frames hold no text and are left out.
    """
    changed: list[int] = []
    for index, item in enumerate(thumbs):
        if item.blank:
            continue
        if not changed or spot_difference(thumbs[changed[-1]], item) >= options.ocr_change:
            changed.append(index)
    if len(changed) <= options.ocr_frames:
        return changed
    steps = (np.arange(options.ocr_frames) + 0.5) * len(changed) / max(options.ocr_frames, 1)
    return [changed[int(step)] for step in steps]


class TextReader:
    """Finds lines of upright text in a frame. Weights load at the first call."""

    def __init__(self, options: SightOptions, threads: int) -> None:
        """``threads`` 0: all cores."""
        self._options = options
        self._threads = threads
        self._engine: Any = None

    def read(self, frame: Frame) -> list[ObjectBox]:
        """The lines of a frame that are sure enough, from top to bottom, each with its box."""
        if min(frame.image.shape[:2]) < SMALLEST_SIDE_PX:
            return []
        found = self._load()(np.ascontiguousarray(frame.image[:, :, ::-1]))
        if not found.txts:
            return []
        lines = zip(found.txts, found.scores, found.boxes, strict=True)
        boxes = [_box(frame, one_line(text), float(score), corners) for text, score, corners in lines]
        kept = [box for box in boxes if box and self._is_sure(box)]
        return sorted(kept, key=lambda box: (box.y1, box.x1, box.name))

    def _is_sure(self, box: ObjectBox) -> bool:
        options = self._options
        characters = sum(character.isalnum() for character in box.name)
        short = characters <= options.ocr_short
        needed = options.ocr_confidence_short if short else options.ocr_confidence
        return characters >= options.ocr_characters and (box.confidence or 0) >= needed

    def _load(self) -> Any:
        if self._engine is None:
            from rapidocr import RapidOCR

            weights = packaged_weights()
            threads = self._threads or -1
            self._engine = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,
                    "Global.text_score": 0.0,
                    "Det.model_path": str(weights.search),
                    "Det.limit_side_len": self._options.ocr_side,
                    "Det.limit_type": "max",
                    "Rec.model_path": str(weights.read),
                    "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                }
            )
        return self._engine


def _box(frame: Frame, text: str, score: float, corners: npt.NDArray[np.float32]) -> ObjectBox | None:
    """The upright box around four corners, in 1000 x 1000; None where nothing of it lies in the picture."""
    height, width = frame.image.shape[:2]
    across = np.clip(corners[:, 0] * (1000 / width), 0, 1000)
    down = np.clip(corners[:, 1] * (1000 / height), 0, 1000)
    x1, x2, y1, y2 = (round(float(v), 1) for v in (across.min(), across.max(), down.min(), down.max()))
    if x2 <= x1 or y2 <= y1 or not text:
        return None
    return ObjectBox(
        time_s=frame.time_s,
        name=text[:500],
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        confidence=round(min(max(score, 0.0), 1.0), 3),
        source="ocr",
    )
