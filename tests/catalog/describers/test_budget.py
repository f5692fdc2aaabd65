"""Frames and pixels stay within a stored budget (fault B34)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.describers.budget import Budget, evenly
from evicat.catalog.tokens import FAMILIES, text_tokens

QWEN3 = FAMILIES["qwen3-vl"]
QWEN25 = FAMILIES["qwen2.5-vl"]


def budget(family=QWEN3, frames=8, pixels=589_824, tokens=4000):
    return Budget(family, frames, pixels, tokens)


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(448, 252, 14 * 8), (640, 360, 20 * 12), (2, 2, 64), (2048, 8, 64), (33, 2048, 128)],
)
def test_a_picture_takes_a_token_per_32_x_32_pixels_and_at_least_64(width, height, tokens):
    assert QWEN3.picture_tokens(width, height) == tokens


def test_the_older_family_has_smaller_cells():
    assert QWEN25.picture_tokens(448, 252) == 16 * 9
    assert QWEN25.picture_tokens(2, 2) == 4


def test_words_count_by_their_bytes():
    assert text_tokens("") == 0
    assert text_tokens("four letters") == 4
    assert text_tokens("\u6f22\u5b57") == 2
    assert text_tokens("\ud800") == 1


@given(st.integers(0, 300), st.integers(1, 40))
def test_frames_are_thinned_evenly(count, wanted):
    chosen = evenly(range(count), wanted)
    assert len(chosen) == min(count, wanted)
    assert chosen == sorted(set(chosen))
    if len(chosen) >= 2:
        assert chosen[0] < count / 3
        assert chosen[-1] + 1 > count * 2 / 3
        steps = np.diff(chosen)
        assert steps.max() - steps.min() <= 1


@given(
    st.integers(1, 8192),
    st.integers(1, 8192),
    st.integers(1, 64),
    st.sampled_from([QWEN3, QWEN25]),
    st.integers(1024, 10**6),
)
def test_every_shape_gets_a_size_that_the_family_takes(width, height, shown, family, pixels):
    made = budget(family, frames=64, pixels=pixels, tokens=4096)
    size = made.size(width, height, shown)
    wide, high = made.canvas(*size)
    assert min(wide, high) >= family.cell
    assert max(wide, high) / min(wide, high) <= family.longest_aspect
    assert shown * family.picture_tokens(wide, high) <= 4096
    if max(width, height) >= family.cell:
        assert size[0] <= width
        assert size[1] <= height
        assert size[0] * size[1] <= pixels
    else:
        assert max(size) == family.cell


@pytest.mark.parametrize(
    ("width", "height", "canvas"), [(2, 2, (32, 32)), (2048, 8, (2048, 32)), (8, 2000, (32, 2000))]
)
def test_odd_shapes_are_padded_in_black_and_nothing_is_stretched(draw, width, height, canvas):
    (frame,) = draw.in_time([draw.picture((255, 255, 255), height=height, width=width)])
    (packed,) = budget(pixels=10**6).pack([frame], quality=90)
    assert (packed.width, packed.height) == canvas
    white = (packed.image > 128).all(axis=2).mean()
    shown = 1.0 if width == height else width * height / (canvas[0] * canvas[1])
    assert white == pytest.approx(shown, rel=0.2)


def test_large_frames_are_cut_in_number_and_in_pixels(draw):
    """120 frames of 4096 x 2160 where 8 images and 4,000 tokens of pictures are taken."""
    image = draw.picture((0, 80, 160), height=2160, width=4096)
    frames = draw.in_time([image] * 120, start_us=0, step_us=500_000)
    packed = budget().pack(frames, quality=90)
    assert len(packed) == 8
    assert {frame.taken for frame in packed} == {120}
    assert packed[0].time_s < 20
    assert packed[-1].time_s >= 40
    assert sum(QWEN3.picture_tokens(frame.width, frame.height) for frame in packed) <= 4000
    assert packed[0].width / packed[0].height == pytest.approx(4096 / 2160, rel=0.02)
    assert packed[0].width > 800, "the room is used"


def test_a_packed_frame_is_the_frame(draw):
    (frame,) = draw.in_time([draw.textured(1)], start_us=31_267_000)
    (packed,) = budget().pack([frame], quality=90)
    assert (packed.pts, packed.time_us, packed.time_s) == (frame.pts, frame.time_us, frame.time_s)
    assert (packed.width, packed.height) == (640, 360)
    assert np.abs(packed.image.astype(int) - frame.image).mean() < 4
    assert "640x360" in repr(packed)
    assert len(packed.jpeg) < frame.image.nbytes / 5
    with pytest.raises(AttributeError):
        packed.pts = 3


def test_no_frames_give_no_pictures():
    assert budget().pack([], quality=90) == ()
