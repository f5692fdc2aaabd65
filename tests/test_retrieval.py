"""The labelled questions of ``bench/retrieval.toml``, and how an answer is judged."""

import sys
from pathlib import Path

import av
import numpy as np
import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def retrieval():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(BENCH), *sys.path])
        import retrieval

        yield retrieval


def test_every_question_is_about_seconds_that_a_clip_has(retrieval, evicat_samples):
    asked = retrieval.queries()
    lengths = {}
    for name in retrieval.CLIPS:
        with av.open(str(evicat_samples / name)) as clip:
            lengths[name] = clip.duration / av.time_base
    assert {query.video for query in asked} == set(lengths)
    assert {query.about for query in asked} == {"look", "text", "thing"}
    assert len({query.ask for query in asked}) == len(asked) >= 20
    assert all(
        0 <= start < end <= lengths[query.video] + 0.1 for query in asked for start, end in query.spans
    )


@pytest.mark.parametrize(
    ("clip", "window", "is_right"),
    [
        ("a.mp4", (2, 4), True),
        ("a.mp4", (4, 6), False),
        ("b.mp4", (2, 4), False),
        ("a.mp4", (8, 10), True),
        ("a.mp4", (0, 30), True),
    ],
)
def test_an_answer_shares_half_of_the_shorter_span(retrieval, clip, window, is_right):
    query = retrieval.Query(ask="?", about="look", video="a.mp4", spans=((1.0, 4.5), (8.2, 8.8)))
    assert query.is_answered_by(clip, *window) is is_right


def test_scores_are_hits_and_reciprocal_ranks(retrieval):
    assert retrieval.scores(np.array([1, 4, 8, np.inf])).tolist() == [
        [1, 1, 1],
        [0, 1, 0.25],
        [0, 0, 0.125],
        [0, 0, 0],
    ]
    assert retrieval.interval(np.ones(5)) == "1.00 (1.00 to 1.00)"
