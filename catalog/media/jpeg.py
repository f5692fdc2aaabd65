"""Pictures as JPEG files."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evicat.schemas.errors import UsageError


def jpeg(image: npt.NDArray[np.uint8], quality: int, *, sharp: bool = False) -> bytes:
    """An RGB picture as a JPEG file; ``sharp``: colours at full resolution, so that drawn lines stay thin.

    Raises:
        UsageError: the format has no place for such a size.
    """
    import cv2

    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    if sharp:
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    is_made, encoded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    if not is_made:
        raise UsageError(f"a picture of {image.shape[1]}x{image.shape[0]} cannot be a JPEG file")
    return bytes(encoded)
