"""What every decoder keeps to: same PTS, same picture. A new one is picked up from its line in loaders.py."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from evicat.catalog.media.frames import Selection, Wanted, decode_windows, frame_times
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.loaders import DECODERS, load_decoder
from evicat.catalog.media.probe import probe
from evicat.schemas.errors import UnknownNameError, UnreadableMediaError
from evicat.schemas.grid import windows
from evicat.schemas.span import US, Span

TIMES_MS = [k * 40 for k in range(60)] + [3000 + k * 250 for k in range(20)]
"""Uneven, with B-frames and several groups of pictures; frame k is grey of value 3 k."""


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("decoders") / "film.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.options = {"g": "12", "bf": "3", "qp": "0", "x264-params": "open-gop=1:scenecut=0"}
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, time_ms in enumerate(TIMES_MS):
            frame = av.VideoFrame.from_ndarray(np.full((64, 96, 3), 3 * number, np.uint8), format="rgb24")
            frame.pts, frame.time_base = 5000 + time_ms, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    asset_id, size_bytes = hash_file(path)
    return path, probe(path, asset_id=asset_id, size_bytes=size_bytes)


@pytest.fixture(params=sorted(DECODERS))
def decoder(request: pytest.FixtureRequest) -> str:
    return request.param


def numbers(frames) -> list[int]:
    # FFmpeg's scaler rounds down: grey comes out up to 2 too dark.
    return [round((float(frame.image.mean()) + 1) / 3) for frame in frames]


def test_every_picture_is_the_frame_of_its_pts(film, decoder: str) -> None:
    path, asset = film
    spans = [span for seconds in (2, 5) for span in windows(asset.duration_us, seconds * US)]
    wanted = [Wanted(span, frame_times(span, 8), 96) for span in spans]
    result = dict(decode_windows(path, asset, wanted, decoder=decoder))
    assert sorted(result) == list(range(len(wanted)))
    for index, frames in result.items():
        assert frames
        assert [TIMES_MS[number] * 1000 for number in numbers(frames)] == [f.time_us for f in frames]
        assert [5000 + TIMES_MS[number] for number in numbers(frames)] == [f.pts for f in frames]
        assert all(frame.time_us in wanted[index].span for frame in frames)
        assert all(frame.image.shape == (64, 96, 3) for frame in frames)


def test_every_frame_can_be_had(film, decoder: str) -> None:
    path, asset = film
    wanted = Wanted(Span(0, asset.duration_us), tuple(time * 1000 for time in TIMES_MS), 48)
    ((_, frames),) = decode_windows(path, asset, [wanted], decoder=decoder)
    assert numbers(frames) == list(range(len(TIMES_MS)))


def test_one_late_frame_can_be_had(film, decoder: str) -> None:
    path, asset = film
    wanted = Wanted(Span(7 * US, 7_500_000), (7_400_000,), 48)
    ((_, (frame,)),) = decode_windows(path, asset, [wanted], decoder=decoder)
    assert (frame.time_us, numbers([frame])) == (7_250_000, [77])


def test_what_lies_outside_the_asset_is_not_shown(film, decoder: str) -> None:
    path, whole = film
    video = whole.video.model_copy(update={"origin_pts": 5400})
    asset = whole.model_copy(update={"video": video, "duration_us": US, "origin_us": 5_400_000})
    wanted = Wanted(Span(0, 3 * US), frame_times(Span(0, 3 * US), 200), 48)
    ((_, frames),) = decode_windows(path, asset, [wanted], decoder=decoder)
    assert numbers(frames) == list(range(10, 35))
    assert [frames[0].time_us, frames[-1].time_us] == [0, 960_000]


def test_it_shows_signs_of_life_and_settles_all(film, decoder: str) -> None:
    path, asset = film
    span = Span(5 * US, 6 * US)
    selection = Selection([Wanted(span, (5_900_000,), 48)])
    steps = list(load_decoder(decoder)(path, asset, selection))
    assert selection.is_settled
    assert [step[0] for step in steps if step is not None] == [0]
    assert None in steps


def test_an_unknown_decoder_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="unknown decoder 'guess'; known: decord, pyav"):
        load_decoder("guess")


def test_the_file_must_still_be_there(film, decoder: str) -> None:
    _, asset = film
    with pytest.raises(UnreadableMediaError, match=r"gone\.mkv"):
        list(decode_windows(Path("gone.mkv"), asset, [Wanted(Span(0, US), (0,), 48)], decoder=decoder))
