import cv2
import numpy as np
import pytest

from evicat.catalog.media.frame import Frame


def picture(colour=(0, 0, 0), *, height=360, width=640):
    return np.full((height, width, 3), colour, dtype=np.uint8)


def write(image, text, *, at=(60, 200), size=1.2, colour=(255, 255, 255)):
    written = image.copy()
    return cv2.putText(written, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, colour, 2, cv2.LINE_AA)


def textured(seed, *, height=360, width=640):
    """A picture of soft blobs in many colours, another one for every seed."""
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 16, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def in_time(images, *, start_us=0, step_us=1_200_000):
    return tuple(
        Frame(pts=index, time_us=start_us + index * step_us, image=image)
        for index, image in enumerate(images)
    )


class Draw:
    """Made pictures with known content."""

    picture = staticmethod(picture)
    write = staticmethod(write)
    textured = staticmethod(textured)
    in_time = staticmethod(in_time)


@pytest.fixture(scope="session")
def draw():
    return Draw
