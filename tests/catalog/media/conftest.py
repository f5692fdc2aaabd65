"""Small media with known faults, made on demand, and clips whose pictures say which frame they are."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from evicat.catalog.media.frames import Wanted
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.catalog.media.worker import WorkerPool
from evicat.schemas.asset import Asset

GRID = 4
CELL = 16
SIZE = GRID * CELL


def counter_image(number: int) -> np.ndarray:
    """64 x 64 RGB whose 16 black or white blocks are the bits of ``number``."""
    bits = np.array([(number >> bit) & 1 for bit in range(GRID * GRID)], np.uint8).reshape(GRID, GRID)
    return np.repeat(np.kron(bits * 255, np.ones((CELL, CELL), np.uint8))[:, :, None], 3, axis=2)


def read_counter(image: np.ndarray) -> int:
    """The number that :func:`counter_image` drew; the picture may be scaled."""
    height, width = image.shape[:2]
    rows = [height * (2 * i + 1) // (2 * GRID) for i in range(GRID)]
    columns = [width * (2 * i + 1) // (2 * GRID) for i in range(GRID)]
    bits = image[np.ix_(rows, columns)].mean(axis=2).ravel() > 127
    return sum(1 << bit for bit, is_set in enumerate(bits) if is_set)


def write_counters(
    path: Path,
    times_ms: list[int],
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    options: dict[str, str] | None = None,
) -> Path:
    """A video whose k-th frame shows ``k`` and has PTS ``times_ms[k]``."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width = stream.height = SIZE
        stream.pix_fmt = pix_fmt
        stream.options = options or {}
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, time_ms in enumerate(times_ms):
            frame = av.VideoFrame.from_ndarray(counter_image(number), format="rgb24")
            frame.pts, frame.time_base = time_ms, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def facts(path: Path, **options: object) -> Asset:
    """The probed asset of a file."""
    asset_id, size_bytes = hash_file(path)
    return probe(path, asset_id=asset_id, size_bytes=size_bytes, **options)


def on_display(times_us: list[int], wanted: Wanted) -> list[int]:
    """Times of the frames of a window, by the written rule, one instant after another."""
    shown: list[int] = []
    for instant in wanted.times_us:
        before = [time for time in times_us if wanted.span.start_us <= time <= instant]
        after = [time for time in times_us if instant < time < wanted.span.end_us]
        found = before[-1:] or after[:1]
        shown += [time for time in found if time not in shown]
    return shown


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The functions of this file."""
    return SimpleNamespace(
        on_display=on_display,
        counter_image=counter_image,
        read_counter=read_counter,
        write_counters=write_counters,
        facts=facts,
    )


@pytest.fixture(scope="session")
def recipes() -> list[str]:
    """Names that ``make`` knows by themselves."""
    return list(RECIPES)


@pytest.fixture(scope="session")
def make(ffmpeg: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``make("name.mp4", "-f lavfi -i ...")`` runs ffmpeg once per name, in one folder, and returns the file.

    A name of ``RECIPES`` needs no arguments.
    """
    folder = tmp_path_factory.mktemp("media")
    (folder / "hi.srt").write_text(HI_SRT)
    (folder / "styled.ass").write_text(STYLED_ASS)

    def run(name: str, *arguments: str) -> Path:
        path = folder / name
        if not path.exists():
            for needed in NEEDS.get(name, ()):
                run(needed)
            words = [word for argument in arguments or (RECIPES[name],) for word in argument.split()]
            subprocess.run([ffmpeg, "-v", "error", "-y", *words, path], check=True, cwd=folder)
        return path

    return run


@pytest.fixture(scope="session")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool() as pool:
        yield pool


def _lavfi(seconds: float, *, size: str = "64x64", rate: int = 25) -> str:
    return f"-f lavfi -i testsrc2=s={size}:r={rate}:d={seconds}"


_X264 = "-c:v libx264 -pix_fmt yuv420p"

HI_SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Hi</i> there,
you &amp; I

2
00:00:03,000 --> 00:00:09,000
late
"""
STYLED_ASS = r"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.50,0:00:03.00,Default,,0,0,0,,{\an8\i1}Hallo,{\i0}\NWelt
Comment: 0,0:00:01.50,0:00:03.00,Default,,0,0,0,,note to self
Dialogue: 0,0:00:00.50,0:00:01.00,Default,,0,0,0,,{\p1}m 0 0 l 10 10{\p0}
"""

RECIPES = {
    "vfr.mp4": f"{_lavfi(4, rate=30)} -vf select='lt(t,2)+not(mod(n,10))' -fps_mode vfr {_X264}",
    "late.mkv": f"{_lavfi(4)} {_X264} -output_ts_offset 7",
    "late.mp4": f"{_lavfi(4)} {_X264} -output_ts_offset 7",
    "plain.ts": f"{_lavfi(4)} {_X264}",
    "src.mp4": f"{_lavfi(10)} {_X264} -g 250",
    "edts.mp4": "-ss 3.3 -i src.mp4 -c copy",
    "fast.mp4": "-i src.mp4 -c copy -movflags +faststart",
    "full.avi": f"{_lavfi(10)} -c:v mpeg4",
    "full.mkv": "-i src.mp4 -c copy",
    "cover.jpg": "-f lavfi -i color=red:s=64x64 -frames:v 1",
    "cover.m4a": "-f lavfi -i sine=d=3 -i cover.jpg -map 0 -map 1 -c:a aac -c:v copy"
    " -disposition:v:0 attached_pic",
    "cover_attach.mkv": f"{_lavfi(2)} {_X264} -attach cover.jpg -metadata:s:t:0 mimetype=image/jpeg"
    " -metadata:s:t:0 filename=cover.jpg",
    "audonly.mp4": "-f lavfi -i sine=d=3 -c:a aac",
    "twovid.mkv": "-f lavfi -i color=blue:s=32x32:r=25:d=2 -f lavfi -i testsrc2=s=128x128:r=25:d=2"
    f" -map 0 -map 1 {_X264} -disposition:v:0 0 -disposition:v:1 0",
    "twovid_default.mkv": "-i twovid.mkv -map 0 -c copy -disposition:v:0 default -disposition:v:1 0",
    "hole.mkv": f"{_lavfi(4)} -vf setpts='if(gte(N,50),PTS+60/TB,PTS)' -fps_mode vfr {_X264}",
    "single.mp4": f"-i cover.jpg {_X264}",
    "still4s.mp4": f"-loop 1 -i cover.jpg -t 4 -r 1 {_X264}",
    "moving.gif": _lavfi(1, rate=10),
    "wide.mp4": f"{_lavfi(2, size='128x64')} {_X264}",
    "rot90.mp4": "-display_rotation:v:0 90 -i wide.mp4 -c copy",
    "rot180.mp4": "-display_rotation:v:0 180 -i wide.mp4 -c copy",
    "rot270.mp4": "-display_rotation:v:0 270 -i wide.mp4 -c copy",
    "hflip.mp4": "-display_hflip:v:0 -i wide.mp4 -c copy",
    "vflip.mp4": "-display_vflip:v:0 -i wide.mp4 -c copy",
    "rot90_hflip.mp4": "-display_rotation:v:0 90 -display_hflip:v:0 -i wide.mp4 -c copy",
    "rot270_vflip.mp4": "-display_rotation:v:0 270 -display_vflip:v:0 -i wide.mp4 -c copy",
    "sar2.mp4": f"{_lavfi(1)} -vf setsar=2 {_X264}",
    "sar_half.mp4": f"{_lavfi(1)} -vf setsar=1/2 {_X264}",
    "aud_off.mkv": f"{_lavfi(8)} -itsoffset 4 -f lavfi -i sine=d=3 -map 0 -map 1 {_X264} -c:a pcm_s16le",
    "aud_gap.mkv": f"{_lavfi(8)} -f lavfi -i sine=d=8 -af aselect='not(between(t,2,5))' {_X264}"
    " -c:a pcm_s16le",
    "aud_long.mp4": f"{_lavfi(2)} -f lavfi -i sine=d=6 {_X264} -c:a aac",
    "aud_early.mkv": f"-itsoffset 2 {_lavfi(2)} -f lavfi -i sine=d=4 -map 0 -map 1 {_X264} -c:a pcm_s16le",
    "twoaudio.mkv": f"{_lavfi(2)} -f lavfi -i sine=d=2 -f lavfi -i anullsrc=r=16000:cl=stereo:d=2"
    f" -map 0 -map 1 -map 2 {_X264} -c:a pcm_s16le -metadata:s:a:0 language=deu -metadata:s:a:1 language=eng"
    " -disposition:a:0 0 -disposition:a:1 0",
    "hdr.mp4": f"{_lavfi(1)} -vf setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc"
    " -c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le",
    "vlast.mp4": f"-i hi.srt -f lavfi -i sine=d=2 {_lavfi(2)} -map 0 -map 1 -map 2"
    f" -c:s mov_text -c:a aac {_X264}",
    "subs.mkv": f"{_lavfi(4)} -i hi.srt -i styled.ass -map 0 -map 1 -map 2 {_X264} -c:s copy"
    " -metadata:s:s:0 language=eng -metadata:s:s:1 language=ger",
    "subs.mp4": f"{_lavfi(4)} -i hi.srt -map 0 -map 1 {_X264} -c:s mov_text -metadata:s:s:0 language=eng",
    "subs.webm": f"{_lavfi(4)} -i hi.srt -map 0 -map 1 -c:v libvpx -c:s webvtt -metadata:s:s:0 language=eng",
    "subs_late.mkv": f"{_lavfi(4)} -i hi.srt -map 0 -map 1 {_X264} -c:s copy -output_ts_offset 7",
    "sdr.mp4": f"{_lavfi(1)} {_X264}",
    "bt709.mp4": f"{_lavfi(1)} {_X264} -vf scale=out_color_matrix=bt709:out_range=full -colorspace bt709"
    " -color_range pc",
}
NEEDS = {
    "edts.mp4": ["src.mp4"],
    "fast.mp4": ["src.mp4"],
    "full.mkv": ["src.mp4"],
    "cover.m4a": ["cover.jpg"],
    "cover_attach.mkv": ["cover.jpg"],
    "twovid_default.mkv": ["twovid.mkv"],
    "single.mp4": ["cover.jpg"],
    "still4s.mp4": ["cover.jpg"],
    **{
        name: ["wide.mp4"]
        for name in (
            *("rot90.mp4", "rot180.mp4", "rot270.mp4"),
            *("hflip.mp4", "vflip.mp4", "rot90_hflip.mp4", "rot270_vflip.mp4"),
        )
    },
}


@pytest.fixture(scope="session")
def cut_off(make: Callable[..., Path]) -> Callable[..., Path]:
    """``cut_off("full.mkv")``: the first 60 % of the bytes of a made file."""

    def run(name: str, share: float = 0.6) -> Path:
        whole = make(name)
        path = whole.with_name(f"trunc_{name}")
        path.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
        return path

    return run
