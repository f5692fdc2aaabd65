"""Boxes drawn on pictures: where their lines lie, to the pixel."""

import numpy as np
import pytest

from evicat.catalog.drawn_boxes import draw_boxes, edges
from evicat.schemas.records import ObjectBox


def box(x1, y1, x2, y2, name="a"):
    return ObjectBox(time_s=0.0, name=name, x1=x1, y1=y1, x2=x2, y2=y2)


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        ((250, 250, 500, 500), (160, 90, 319, 179)),
        ((0, 0, 1000, 1000), (0, 0, 639, 359)),
        ((999.9, 999.9, 1000, 1000), (639, 359, 639, 359)),
        ((0, 0, 0.1, 0.1), (0, 0, 0, 0)),
    ],
)
def test_edges_are_the_outermost_pixels_of_the_box(corners, expected):
    assert edges(box(*corners), 640, 360) == expected


@pytest.mark.parametrize("size", [(640, 360), (1920, 1080), (100, 300)])
def test_lines_lie_around_the_box_and_their_inner_edge_on_it(size):
    width, height = size
    plain = np.full((height, width, 3), 100, np.uint8)
    drawn = draw_boxes(plain, [box(250, 500, 750, 900)])
    row = drawn[round(0.7 * height)]
    marked = np.nonzero((row != 100).any(axis=1))[0]
    left, _, right, _ = edges(box(250, 500, 750, 900), width, height)
    inner = [at for at in marked if left <= at <= right]
    assert inner == [left, right]
    assert len(marked) == 2 * max(1, width // 400)
    assert (plain == 100).all()


def test_names_have_colours_of_their_own_and_labels_inside_the_picture():
    plain = np.full((360, 640, 3), 100, np.uint8)
    two = draw_boxes(plain, [box(100, 0, 200, 500), box(400, 300, 600, 900, "b"), box(700, 300, 900, 900)])
    left, other, again = two[100, 64], two[250, 256], two[250, 448]
    assert (left == again).all()
    assert (left != other).any()
    assert (two[0:60, 64:128] == 0).all(axis=2).any(), "the label of the topmost box stands below its edge"


def test_without_boxes_a_picture_stays_as_it_is():
    plain = np.random.default_rng(0).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    assert (draw_boxes(plain, []) == plain).all()
