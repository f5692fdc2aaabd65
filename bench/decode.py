"""Decoding for a recipe of 4 s x 8 and 30 s x 16 frames, against the ffmpeg command line.

ffmpeg gives as many frames (`fps` filter), scaled alike, as raw RGB into the void. decord, the other
side of the third ratio, gives the same frames by index. Bounds: in process over ffmpeg 1.15 and over decord
0.9, through a worker process over ffmpeg 1.30.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import av
from imageio_ffmpeg import get_ffmpeg_version
from media import FFMPEG, real_film
from sides import compare, end

from evicat.catalog.media.frames import Wanted, decode_windows, frame_times, read_windows
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.catalog.media.worker import WorkerPool
from evicat.schemas.asset import Asset
from evicat.schemas.grid import windows
from evicat.schemas.span import US

MINUTES = 10
WIDTH = 448
HEIGHT = 252
BATCH = 64
"""Frames that decord is asked for at once."""


def wanted(asset: Asset) -> list[Wanted]:
    """All windows of both scales."""
    scales = ((4, 8), (30, 16))
    return [
        Wanted(span, frame_times(span, count), WIDTH)
        for seconds, count in scales
        for span in windows(asset.duration_us, seconds * US)
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, WorkerPool() as pool:
        film = Path(folder) / "film.mp4"
        real_film(film, MINUTES)
        asset_id, size_bytes = hash_file(film)
        asset = probe(film, asset_id=asset_id, size_bytes=size_bytes)
        looks = wanted(asset)
        shown = {frame.pts for _, frames in decode_windows(film, asset, looks) for frame in frames}
        rate = len(shown) / (asset.duration_us / US)
        print(
            f"ffmpeg {get_ffmpeg_version()}, swscale bicubic, {len(shown)} frames of {WIDTH}x{HEIGHT}",
            flush=True,
        )

        def in_process() -> int:
            return sum(len(frames) for _, frames in decode_windows(film, asset, looks))

        def isolated() -> int:
            return sum(len(frames) for _, frames in read_windows(pool, film, asset, looks, timeout_s=60))

        def ffmpeg() -> None:
            scale = ["-vf", f"fps={rate},scale={WIDTH}:{HEIGHT}", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
            subprocess.run([*FFMPEG, "-i", str(film), *scale], stdout=subprocess.DEVNULL, check=True)

        wanted_pts = sorted(shown)

        def decord() -> int:
            from decord import VideoReader, cpu

            reader = VideoReader(str(film), ctx=cpu(0), width=WIDTH, height=HEIGHT)
            runs = [indexes[start : start + BATCH] for start in range(0, len(indexes), BATCH)]
            return sum(len(reader.get_batch(run)) for run in runs)

        with av.open(str(film)) as container:
            pts = sorted(packet.pts for packet in container.demux(video=0) if packet.pts is not None)
        indexes = [pts.index(each) for each in wanted_pts]
        end(
            compare("decode in process / decord", ours=in_process, other=decord, bound=0.9),
            compare("decode in process / ffmpeg", ours=in_process, other=ffmpeg, bound=1.15),
            compare("decode in a worker / ffmpeg", ours=isolated, other=ffmpeg, bound=1.30),
        )


if __name__ == "__main__":
    main()
