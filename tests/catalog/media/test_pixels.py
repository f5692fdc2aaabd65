"""Known colours come out as they went in, whatever the file does to them on the way."""

from __future__ import annotations

import subprocess
from pathlib import Path

import av
import numpy as np
import pytest

from evicat.catalog.media import hdr
from evicat.catalog.media.frames import Wanted, decode_windows
from evicat.catalog.media.picture import first_field, on_black
from evicat.schemas.span import Span

COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (128, 128, 128), (200, 120, 40)]
WEIGHTS = {1: (0.2126, 0.0722), 5: (0.299, 0.114), 9: (0.2627, 0.0593)}
"""Red and blue weights of the luma of BT.709, BT.601 and BT.2020 by their codes in H.273."""
LIMITED, FULL = 1, 2


def bars(width: int = 140, height: int = 40) -> np.ndarray:
    """Vertical bars of ``COLOURS``, RGB."""
    columns = np.repeat(np.array(COLOURS, np.uint8), width // len(COLOURS), axis=0)
    return np.broadcast_to(columns, (height, *columns.shape)).copy()


def colours_of(image: np.ndarray) -> np.ndarray:
    """The colour in the middle of each bar."""
    step = image.shape[1] / len(COLOURS)
    return np.array([image[image.shape[0] // 2, int((bar + 0.5) * step)] for bar in range(len(COLOURS))], int)


def to_yuv(rgb: np.ndarray, matrix: int, colour_range: int, bits: int = 8) -> np.ndarray:
    """``(3, height, width)`` Y'CbCr of R'G'B' in 0 to 1 (ITU-T H.273, equations 8.3)."""
    red, blue = WEIGHTS[matrix]
    luma = red * rgb[..., 0] + (1 - red - blue) * rgb[..., 1] + blue * rgb[..., 2]
    cb, cr = (rgb[..., 2] - luma) / (2 - 2 * blue), (rgb[..., 0] - luma) / (2 - 2 * red)
    scale = 1 << (bits - 8)
    if colour_range == FULL:
        top = (1 << bits) - 1
        planes = luma * top, cb * top + 128 * scale, cr * top + 128 * scale
    else:
        planes = (219 * luma + 16) * scale, (224 * cb + 128) * scale, (224 * cr + 128) * scale
    return np.round(np.stack(planes)).clip(0, (1 << bits) - 1)


def write(path: Path, frames: list[av.VideoFrame], codec: str = "ffv1", **stream: object) -> Path:
    with av.open(str(path), "w") as container:
        track = container.add_stream(codec, rate=5)
        track.width, track.height = frames[0].width, frames[0].height
        track.pix_fmt = frames[0].format.name
        for name, value in stream.items():
            setattr(track.codec_context, name, value)
        for number, frame in enumerate(frames):
            frame.pts = number
            container.mux(track.encode(frame))
        container.mux(track.encode())
    return path


def yuv_frame(rgb: np.ndarray, matrix: int, colour_range: int, *, tagged: bool = True) -> av.VideoFrame:
    frame = av.VideoFrame.from_ndarray(to_yuv(rgb / 255, matrix, colour_range).astype(np.uint8), "yuv444p")
    if tagged:
        frame.colorspace, frame.color_range = matrix, colour_range
    return frame


def first_image(kit, path: Path, max_width: int = 8192) -> np.ndarray:
    asset = kit.facts(path)
    ((_, (frame,)),) = decode_windows(path, asset, [Wanted(Span(0, asset.duration_us), (0,), max_width)])
    return frame.image


@pytest.mark.parametrize("matrix", [1, 5, 9])
@pytest.mark.parametrize("colour_range", [LIMITED, FULL])
def test_stated_matrix_and_range(kit, tmp_path, matrix, colour_range) -> None:
    frames = [yuv_frame(bars(), matrix, colour_range) for _ in range(3)]
    path = write(tmp_path / "bars.mkv", frames, colorspace=matrix, color_range=colour_range)
    assert np.abs(colours_of(first_image(kit, path)) - COLOURS).max() <= 3


@pytest.mark.parametrize(
    ("size", "matrix"), [((140, 40), 5), ((1400, 40), 1), ((140, 720), 1), ((1050, 576), 5)]
)
def test_an_unstated_matrix_is_taken_as_players_take_it(kit, tmp_path, size, matrix) -> None:
    frames = [yuv_frame(bars(*size), matrix, LIMITED, tagged=False) for _ in range(3)]
    path = write(tmp_path / "bars.mkv", frames)
    assert np.abs(colours_of(first_image(kit, path)) - COLOURS).max() <= 3


def pq_signal(light: np.ndarray) -> np.ndarray:
    """The PQ signal of cd/m2 (SMPTE ST 2084, equation 5.2), computed apart from what is tested."""
    power = (light / 10000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375


class TestHdr:
    def test_light_up_to_the_knee_stays_as_it_is(self) -> None:
        light = np.array([0.0, 5.0, 40.0, 100.0, 160.0])
        signal = np.round(pq_signal(light) * 65535).astype(np.uint16)
        grey = np.repeat(signal[None, :, None], 3, axis=2)
        linear = light / 203
        expected = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055) * 255
        assert np.abs(hdr.to_sdr(grey, hdr.PQ, hdr.BT2020)[0, :, 0] - expected).max() <= 1.5

    @pytest.mark.parametrize("transfer", [hdr.PQ, hdr.HLG])
    def test_brighter_is_never_darker_and_never_clips_before_the_top(self, transfer) -> None:
        ramp = np.repeat(np.arange(0, 65536, 64, np.uint16)[None, :, None], 3, axis=2)
        shown = hdr.to_sdr(ramp, transfer, hdr.BT2020)[0, :, 0].astype(int)
        assert (np.diff(shown) >= 0).all()
        assert shown[0] == 0
        assert 245 <= shown[-1] <= 255

    def test_hues_stay_in_a_file(self, kit, tmp_path) -> None:
        light = bars().astype(float) / 255 * 200
        planes = to_yuv(pq_signal(light), 9, LIMITED, bits=16).astype(np.uint16)
        frames = []
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(planes.transpose(1, 2, 0), "yuv444p16le")
            frame.colorspace, frame.color_range, frame.color_trc, frame.color_primaries = 9, LIMITED, 16, 9
            frames.append(frame)
        tags = {"colorspace": 9, "color_range": LIMITED, "color_trc": 16, "color_primaries": 9}
        path = write(tmp_path / "pq.mkv", frames, **tags)
        shown = colours_of(first_image(kit, path))
        assert kit.facts(path).video.color_transfer == "smpte2084"
        assert [int(colour.argmax()) for colour in shown[:3]] == [0, 1, 2]
        for grey in (shown[3], shown[4], shown[5]):
            assert grey.max() - grey.min() <= 3
        assert shown[3].min() > 220
        assert shown[4].max() <= 3

    def test_another_transfer_is_refused(self) -> None:
        with pytest.raises(ValueError, match="got 1"):
            hdr.to_sdr(np.zeros((1, 1, 3), np.uint16), 1, 1)


class TestAlpha:
    def test_black_stands_behind_what_is_transparent(self) -> None:
        pixels = np.array([[[200, 100, 50, 255], [200, 100, 50, 0], [200, 100, 50, 128]]], np.uint8)
        assert on_black(pixels).tolist() == [[[200, 100, 50], [0, 0, 0], [100, 50, 25]]]

    @pytest.mark.parametrize(
        ("suffix", "codec", "pixels"), [(".mov", "png", "rgba"), (".mkv", "ffv1", "yuva420p")]
    )
    def test_a_transparent_red_is_not_red(self, kit, tmp_path, suffix, codec, pixels) -> None:
        image = np.zeros((32, 64, 4), np.uint8)
        image[:, :32] = 255, 0, 0, 255
        image[:, 32:] = 255, 0, 0, 0
        frames = [av.VideoFrame.from_ndarray(image, "rgba").reformat(format=pixels) for _ in range(3)]
        shown = first_image(kit, write(tmp_path / f"alpha{suffix}", frames, codec))
        assert shown[16, 8, 0] > 240
        assert shown[16, 56].max() < 8

    def test_a_gif_with_a_transparent_colour(self, kit, tmp_path, ffmpeg) -> None:
        path = tmp_path / "alpha.gif"
        source = "color=c=red@0.0:s=64x64:r=5:d=1,format=rgba"
        palette = "split[a][b];[a]palettegen=reserve_transparent=1[p];[b][p]paletteuse"
        command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", source, "-vf", palette, path]
        subprocess.run(command, check=True)
        assert first_image(kit, path).max() < 8


class TestInterlaced:
    def test_one_moment_is_shown_and_no_comb(self, kit, tmp_path) -> None:
        frames = []
        for number in range(4):
            image = np.zeros((64, 96, 3), np.uint8)
            image[0::2, 8 + number * 8 : 24 + number * 8] = 255
            image[1::2, 12 + number * 8 : 28 + number * 8] = 255
            frames.append(av.VideoFrame.from_ndarray(image, "rgb24").reformat(format="yuv420p"))
        path = tmp_path / "fields.mkv"
        with av.open(str(path), "w") as container:
            track = container.add_stream(
                "mpeg2video", rate=25, options={"flags": "+ildct+ilme", "qscale": "1"}
            )
            track.width, track.height, track.pix_fmt = 96, 64, "yuv420p"
            for frame in frames:
                container.mux(track.encode(frame))
            container.mux(track.encode())
        asset = kit.facts(path)
        assert asset.video.interlaced
        image = first_image(kit, path).astype(int)
        assert image.shape == (64, 96, 3)
        assert np.abs(np.diff(image[8:56, 16:24, 0], axis=0)).max() < 40  # the comb would be 255

    @pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p10le", "rgb24", "nv12"])
    @pytest.mark.parametrize("height", [64, 66, 35])
    def test_the_even_lines_make_the_field(self, pixels, height) -> None:
        image = np.zeros((height, 48, 3), np.uint8)
        image[0::2] = 200, 200, 200
        if pixels != "rgb24" and height % 2:
            height -= 1
            image = image[:height]
        frame = av.VideoFrame.from_ndarray(image, "rgb24").reformat(format=pixels)
        field = first_field(frame)
        assert (field.width, field.height, field.format.name) == (48, (height + 1) // 2, pixels)
        assert field.to_ndarray(format="gray").min() > 190


def test_a_stream_that_changes_its_size(kit, tmp_path) -> None:
    path = tmp_path / "sizes.ts"
    parts = []
    for number, size in enumerate([(96, 64), (64, 96)]):
        frames = [yuv_frame(np.full((size[1], size[0], 3), 90, np.uint8), 5, LIMITED) for _ in range(10)]
        frames = [frame.reformat(format="yuv420p") for frame in frames]
        part = write(tmp_path / f"{number}.ts", frames, "libx264")
        parts.append(part.read_bytes())
    path.write_bytes(b"".join(parts))
    asset = kit.facts(path)
    wanted = [Wanted(Span(0, asset.duration_us), (0, asset.duration_us - 1), 48)]
    ((_, frames),) = decode_windows(path, asset, wanted)
    assert {frame.image.shape for frame in frames} <= {(32, 48, 3), (72, 48, 3)}
    assert frames[0].image.shape == (32, 48, 3)


def test_odd_shapes_are_never_empty(kit, tmp_path) -> None:
    for width, height in ((2048, 8), (8, 2048), (2, 2)):
        frame = av.VideoFrame.from_ndarray(np.full((height, width, 3), 60, np.uint8), "rgb24")
        path = write(tmp_path / f"{width}.mkv", [frame.reformat(format="yuv444p")] * 1)
        image = first_image(kit, path, max_width=448)
        assert image.shape[1] == min(width, 448)
        assert image.shape[0] >= 1
