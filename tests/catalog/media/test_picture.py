"""Pictures are as a viewer sees them: compared with what ffmpeg makes of the same file."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog.media.frames import Wanted, decode_windows
from evicat.catalog.media.picture import displayed_size
from evicat.schemas.span import Span

TURNED = [
    "rot90.mp4",
    "rot180.mp4",
    "rot270.mp4",
    "hflip.mp4",
    "vflip.mp4",
    "rot90_hflip.mp4",
    "rot270_vflip.mp4",
]


def first_image(path: Path, asset, max_width: int = 8192) -> np.ndarray:
    ((_, (frame,)),) = decode_windows(path, asset, [Wanted(Span(0, asset.duration_us), (0,), max_width)])
    return frame.image


def by_ffmpeg(ffmpeg: Path, path: Path, *filters: str) -> np.ndarray:
    command = [
        ffmpeg,
        "-v",
        "error",
        "-i",
        path,
        *filters,
        "-frames:v",
        "1",
        "-c:v",
        "ppm",
        "-f",
        "image2pipe",
        "-",
    ]
    content = subprocess.run(command, check=True, capture_output=True).stdout
    magic, width, height, _, pixels = content.split(maxsplit=4)
    assert magic == b"P6"
    return np.frombuffer(pixels, np.uint8).reshape(int(height), int(width), 3)


def mean_difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


@pytest.mark.parametrize("name", TURNED)
def test_turned_pictures_equal_those_of_ffmpeg(make, kit, ffmpeg: Path, name: str) -> None:
    path = make(name)
    asset = kit.facts(path)
    image = first_image(path, asset)
    reference = by_ffmpeg(ffmpeg, path)
    assert image.shape == reference.shape == (asset.video.height, asset.video.width, 3)
    # ffmpeg turns before it converts; chroma then comes from the other neighbour.
    assert mean_difference(image, reference) < 4
    for other in (reference[::-1], reference[:, ::-1], reference[::-1, ::-1]):
        assert mean_difference(image, other) > 40


@pytest.mark.parametrize("name", ["wide.mp4", "bt709.mp4"])
def test_colours_equal_those_of_ffmpeg(make, kit, ffmpeg: Path, name: str) -> None:
    path = make(name)
    assert np.array_equal(first_image(path, kit.facts(path)), by_ffmpeg(ffmpeg, path))


@pytest.mark.parametrize(("name", "size"), [("sar2.mp4", (128, 64)), ("sar_half.mp4", (32, 64))])
def test_pixels_become_square(make, kit, ffmpeg: Path, name: str, size: tuple[int, int]) -> None:
    path = make(name)
    asset = kit.facts(path)
    assert (asset.video.width, asset.video.height) == size
    reference = by_ffmpeg(ffmpeg, path, "-vf", f"scale={size[0]}:{size[1]}")
    # ffmpeg scales before it converts.
    assert mean_difference(first_image(path, asset), reference) < 8
    assert mean_difference(first_image(path, asset), reference[:, ::-1]) > 40


@pytest.mark.parametrize(
    ("name", "max_width", "size"),
    [
        ("wide.mp4", 64, (64, 32)),
        ("wide.mp4", 127, (127, 64)),
        ("wide.mp4", 8192, (128, 64)),
        ("wide.mp4", 1, (1, 1)),
        ("rot90.mp4", 32, (32, 64)),
        ("sar2.mp4", 100, (100, 50)),
    ],
)
def test_width_is_bounded_and_never_stretched(make, kit, name: str, max_width: int, size) -> None:
    image = first_image(make(name), kit.facts(make(name)), max_width)
    assert image.shape == (size[1], size[0], 3)
    assert image.dtype == np.uint8
    assert image.flags.c_contiguous


def test_ten_bits_become_plausible_eight(make, kit) -> None:
    path = make("hdr.mp4")
    asset = kit.facts(path)
    assert asset.video.pixel_format == "yuv420p10le"
    assert asset.video.color_transfer == "smpte2084"
    image, same = first_image(path, asset), first_image(make("sdr.mp4"), kit.facts(make("sdr.mp4")))
    assert mean_difference(image, same) < 30  # the SDR picture was only declared to be PQ
    assert mean_difference(image[:, :, ::-1], same) > 25


@pytest.mark.parametrize(
    ("size", "aspect", "sideways", "shown"),
    [
        ((720, 576), Fraction(16, 15), False, (768, 576)),
        ((720, 576), Fraction(16, 15), True, (576, 768)),
        ((1440, 1080), Fraction(4, 3), False, (1920, 1080)),
        ((2, 2), Fraction(1, 100), False, (1, 2)),
    ],
)
def test_displayed_sizes(size, aspect: Fraction, sideways: bool, shown) -> None:
    assert displayed_size(*size, aspect, sideways=sideways) == shown
