import numpy as np
import pytest

from evicat.catalog.describers.colours import TERMS, colour_terms, oklab


def term(*rgb):
    return TERMS[colour_terms(np.array(rgb, dtype=np.uint8))]


@pytest.mark.parametrize(
    ("rgb", "expected"),
    [
        ((255, 255, 255), (1.0, 0.0, 0.0)),
        ((255, 0, 0), (0.62796, 0.22486, 0.12585)),
        ((0, 255, 0), (0.86644, -0.23389, 0.17950)),
        ((0, 0, 255), (0.45201, -0.03246, -0.31153)),
    ],
)
def test_oklab_gives_the_published_values(rgb, expected):
    assert oklab(np.array(rgb, dtype=np.uint8)) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(
    ("name", "rgb"),
    [
        ("black", (0, 0, 0)),
        ("black", (8, 8, 12)),
        ("white", (255, 255, 255)),
        ("white", (245, 245, 220)),
        ("grey", (128, 128, 128)),
        ("grey", (190, 192, 195)),
        ("red", (255, 0, 0)),
        ("red", (128, 0, 0)),
        ("red", (220, 20, 60)),
        ("orange", (255, 140, 0)),
        ("yellow", (255, 255, 0)),
        ("yellow", (255, 215, 0)),
        ("green", (0, 255, 0)),
        ("green", (0, 60, 0)),
        ("green", (100, 130, 50)),
        ("blue", (0, 0, 255)),
        ("blue", (0, 0, 128)),
        ("blue", (135, 206, 235)),
        ("blue", (15, 22, 55)),
        ("purple", (128, 0, 128)),
        ("purple", (147, 112, 219)),
        ("pink", (255, 192, 203)),
        ("pink", (255, 105, 180)),
        ("brown", (139, 69, 19)),
        ("brown", (120, 90, 60)),
        ("brown", (210, 180, 140)),
    ],
)
def test_known_colours_get_the_name_that_people_use(name, rgb):
    assert term(*rgb) == name


def test_every_colour_has_one_term_and_the_shape_is_kept():
    steps = np.arange(0, 256, 15, dtype=np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps), axis=-1)
    found = colour_terms(cube)
    assert found.shape == cube.shape[:-1]
    assert set(found.ravel()) == set(range(len(TERMS)))
