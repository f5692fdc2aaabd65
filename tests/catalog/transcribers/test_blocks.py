"""Blocks tile the sound, end in silence, and do not depend on how the sound comes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicat.catalog.transcribers.blocks import cut_blocks
from evicat.catalog.transcribers.vad import FRAME, find_speech

RATE = 16_000
US = 1_000_000


def pieces_of(samples: np.ndarray, length: int = 20 * RATE):
    for start in range(0, len(samples), length):
        yield start * US // RATE, samples[start : start + length]


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), np.float32)


@pytest.fixture(scope="module")
def talk(conversation) -> np.ndarray:
    """23.3 s of speech, from the first word on, without a long pause."""
    return conversation[round(6.69 * RATE) :]


def assert_tiles(blocks, samples, max_s):
    assert [b.start_us for b in blocks] == [0, *(b.end_us for b in blocks[:-1])]
    assert np.array_equal(np.concatenate([b.samples for b in blocks]), samples)
    assert blocks[-1].end_us == -(-len(samples) * US // RATE)
    assert all(0 < len(b.samples) <= max_s * RATE for b in blocks)
    for block in blocks:
        assert all(0 <= start < end <= len(block.samples) for start, end in block.speech)


def test_blocks_tile_the_sound_and_end_in_silence(talk):
    sound = np.concatenate([talk, silence(3), talk, silence(5), talk, silence(2)])
    blocks = list(cut_blocks(pieces_of(sound), max_block_s=40))
    assert_tiles(blocks, sound, 40)
    gaps_s = [(23.3, 26.3), (49.6, 54.6)]
    assert len(blocks) == 3
    for block, (low, high) in zip(blocks, gaps_s, strict=False):
        assert low < block.end_us / US < high
        tail = block.samples[-RATE // 5 :]
        assert np.abs(tail).max() == 0


def test_longest_silence_of_the_second_half_is_taken(talk):
    sound = np.concatenate([talk[: 8 * RATE], silence(6), talk[: 8 * RATE], silence(1.5)] * 3)
    first = next(iter(cut_blocks(pieces_of(sound), max_block_s=22)))
    assert 8 < first.end_us / US < 14


@pytest.fixture(scope="module")
def torrent(conversation) -> np.ndarray:
    """36 s of a voice that never pauses."""
    return np.tile(conversation[round(8.4 * RATE) : 11 * RATE], 14)


def test_without_any_silence_the_cut_lies_at_the_quietest_point(torrent):
    dip = slice(13 * RATE // FRAME * FRAME, (13 * RATE // FRAME + 6) * FRAME)
    sound = torrent.copy()
    sound[dip] *= 0.01
    blocks = list(cut_blocks(pieces_of(sound), max_block_s=20))
    assert_tiles(blocks, sound, 20)
    assert dip.start < len(blocks[0].samples) < dip.stop
    assert blocks[0].speech[-1][1] == len(blocks[0].samples)
    assert blocks[1].speech[0][0] == 0


def test_only_an_early_silence_is_taken_rather_than_none(torrent):
    sound = np.concatenate([torrent[: 4 * RATE], silence(1), torrent])
    first = next(iter(cut_blocks(pieces_of(sound), max_block_s=20)))
    assert 4 < first.end_us / US < 5


def test_silence_alone_gives_blocks_without_speech():
    sound = silence(95)
    blocks = list(cut_blocks(pieces_of(sound), max_block_s=30))
    assert_tiles(blocks, sound, 30)
    assert len(blocks) == 4
    assert all(block.speech == () for block in blocks)


def test_speech_of_blocks_is_that_of_the_sound(talk):
    sound = np.concatenate([silence(4), talk, silence(6), talk[: 10 * RATE], silence(4)])
    blocks = list(cut_blocks(pieces_of(sound), max_block_s=34))
    assert len(blocks) == 2
    found = [(b.start_us * RATE // US + s, b.start_us * RATE // US + e) for b in blocks for s, e in b.speech]
    assert found == list(find_speech(sound))


def test_no_sound_no_block():
    assert list(cut_blocks([])) == []
    assert list(cut_blocks([(0, np.zeros(0, np.float32))])) == []


def test_gap_between_pieces_is_silence(talk):
    pieces = [(2 * US, talk[: 5 * RATE]), (10 * US, talk[5 * RATE : 8 * RATE])]
    (block,) = cut_blocks(pieces)
    expected = np.concatenate([silence(2), talk[: 5 * RATE], silence(3), talk[5 * RATE : 8 * RATE]])
    assert np.array_equal(block.samples, expected)
    assert block.end_us == 13 * US


def test_times_that_fall_between_samples_shift_nothing(talk):
    lengths = [333, 1, 20_001, 7_777, 40_000]
    starts = np.cumsum([0, *lengths[:-1]])
    pieces = [
        (round(start * US / RATE), talk[start : start + n]) for start, n in zip(starts, lengths, strict=True)
    ]
    (block,) = cut_blocks(pieces)
    assert np.array_equal(block.samples, talk[: sum(lengths)])


@settings(max_examples=15)
@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=12))
def test_cuts_do_not_depend_on_the_pieces(conversation, lengths):
    sound = np.concatenate([conversation, silence(2.5), conversation[14 * RATE :]])
    steps = np.cumsum([0, *lengths])
    starts = [int(step) for step in steps if step < len(sound)]
    ends = [*starts[1:], len(sound)]
    pieces = [(round(a * US / RATE), sound[a:b]) for a, b in zip(starts, ends, strict=True)]
    got, expected = (list(cut_blocks(source, max_block_s=12)) for source in (pieces, [(0, sound)]))
    assert [(b.span, b.speech) for b in got] == [(b.span, b.speech) for b in expected]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(got, expected, strict=True))


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([(0, np.zeros(RATE, np.float32)), (500_000, np.zeros(RATE, np.float32))], "overlaps .* 500000 us"),
        ([(0, np.array([0, np.nan], np.float32))], "not finite"),
    ],
)
def test_impossible_pieces_are_refused(pieces, message):
    with pytest.raises(ValueError, match=message):
        list(cut_blocks(pieces))


def test_too_short_blocks_are_refused():
    with pytest.raises(ValueError, match=r"at least 0\.58 s, got 0\.1"):
        list(cut_blocks([], max_block_s=0.1))


def test_memory_does_not_grow_with_the_sound(talk):
    def peak(minutes: int) -> int:
        quiet = np.concatenate([talk[: 10 * RATE], silence(10)])
        tracemalloc.start()
        for _ in cut_blocks(((i * 20 * US, quiet) for i in range(3 * minutes)), max_block_s=60):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(12) < 1.2 * peak(3)
