"""Sends damaged files through probe, pictures, sound and subtitles, and checks what comes out.

    python tests/fuzz/run.py --cases 2000 --first 0

A damaged file may be refused, or end the worker that reads it, but nothing else: the parent lives on, nothing
takes longer than its time limit, and every picture that is shown is one of the file's, on the timeline.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import corpus
import decoded

from evicat.catalog.media.audio import read_audio_isolated
from evicat.catalog.media.frames import Wanted, frame_times, read_windows
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe_isolated
from evicat.catalog.media.subtitles import SubtitleTrack, read_track_isolated
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.transcribers.base import SAMPLE_RATE
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError
from evicat.schemas.grid import windows
from evicat.schemas.span import US

TIMEOUT_S = 20.0
_MOST_WINDOWS = 60
LONGEST_US = 24 * 3600 * US
"""No damage may make a film of 1.6 s longer than a day; longer timelines are counted."""


@contextmanager
def _ended_by(tally: Counter[str], stage: str) -> Iterator[None]:
    """An error of the file ends a stage and is counted; any other one is a fault of ours."""
    try:
        yield
    except AssetError as error:
        tally[f"{stage}: {error.error_class}"] += 1
        if error.error_class in ("DecodeStalled", "DecoderCrashed"):
            tally[f"{stage}: {error.error_class}: {str(error).rpartition(': ')[2][:80]}"] += 1


def check(path: Path, pool: WorkerPool, tally: Counter[str]) -> None:
    """Everything that is made of one file."""
    asset_id, size_bytes = hash_file(path) if path.stat().st_size else ("0" * 32, 0)
    asset: Asset | None = None
    with _ended_by(tally, "probe"):
        asset = probe_isolated(pool, path, asset_id=asset_id, size_bytes=size_bytes, timeout_s=TIMEOUT_S)
        tally["probe: asset"] += 1
    if path.suffix == ".srt":
        with _ended_by(tally, "side-car"):
            track = SubtitleTrack(path=path)
            whole = asset or _sixty_seconds(size_bytes)
            read_track_isolated(pool, path, whole, track, timeout_s=TIMEOUT_S)
            tally["side-car: read"] += 1
    if asset is None:
        return
    assert asset.duration_us > 0
    tally["timeline too long"] += asset.duration_us > LONGEST_US
    for stage in (_pictures, _sound, _subtitles):
        with _ended_by(tally, stage.__name__.strip("_")):
            stage(path, asset, pool)
            tally[f"{stage.__name__.strip('_')}: read"] += 1


def _sixty_seconds(size_bytes: int) -> Asset:
    return Asset(
        asset_id="0" * 32,
        source_id="0" * 32,
        size_bytes=size_bytes,
        container="none",
        duration_us=60 * US,
        origin_us=0,
    )


def _pictures(path: Path, asset: Asset, pool: WorkerPool) -> None:
    if asset.video is None:
        return
    length_us = max(US // 2, asset.duration_us // _MOST_WINDOWS)
    spans = windows(asset.duration_us, length_us)
    looks = [Wanted(span, frame_times(span, 4), 64) for span in spans]
    shown = dict(read_windows(pool, path, asset, looks, timeout_s=TIMEOUT_S))
    (whole,) = pool.run(decoded.pts_of, path, asset, timeout_s=TIMEOUT_S, about=path)
    assert sorted(shown) == list(range(len(spans)))
    for index, frames in shown.items():
        times = [frame.time_us for frame in frames]
        assert times == sorted(set(times))
        assert all(time in spans[index] and time < asset.duration_us for time in times)
        assert {frame.pts for frame in frames} <= whole, (path, index)


def _sound(path: Path, asset: Asset, pool: WorkerPool) -> None:
    at = 0
    for piece in read_audio_isolated(pool, path, asset, timeout_s=TIMEOUT_S):
        assert piece.start_us * SAMPLE_RATE == at * US
        at += len(piece.samples)
        if at > 600 * SAMPLE_RATE:
            return
    assert at * US <= asset.duration_us * SAMPLE_RATE


def _subtitles(path: Path, asset: Asset, pool: WorkerPool) -> None:
    for facts in asset.subtitles[:4]:
        track = SubtitleTrack(stream_index=facts.stream_index)
        read_track_isolated(pool, path, asset, track, timeout_s=TIMEOUT_S)


def run(first: int, cases: int, *, keep: Path | None = None) -> Counter[str]:
    """The tally of ``cases`` damaged files; files that stall or crash a decoder are copied to ``keep``."""
    tally: Counter[str] = Counter()
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), before]))
    logging.disable(logging.WARNING)
    try:
        with tempfile.TemporaryDirectory() as folder, WorkerPool() as pool:
            seeds = corpus.write_seeds(Path(folder))
            for case in range(first, first + cases):
                path = corpus.damaged(seeds, case, Path(folder))
                started, bad = time.perf_counter(), _bad(tally)
                try:
                    check(path, pool, tally)
                except Exception as error:  # noqa: BLE001 - every fault of ours is to be found, not the first
                    tally[f"FAULT: {type(error).__name__}: {_where(error)}"] += 1
                tally["cases"] += 1
                tally["slower than 10 s"] += time.perf_counter() - started > 10
                if keep and _bad(tally) > bad:
                    (keep / path.name).write_bytes(path.read_bytes())
                path.unlink()
    finally:
        logging.disable(logging.NOTSET)
        os.environ["PYTHONPATH"] = before
    return tally


def _where(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(place.filename).name}, line {place.lineno}: {str(error)[-150:]}"


def _bad(tally: Counter[str]) -> int:
    names = ("FAULT", "DecodeStalled", "DecoderCrashed", "too long")
    return sum(count for what, count in tally.items() if any(name in what for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for files that stall or crash a decoder")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    tally = run(options.first, options.cases, keep=options.keep)
    for what, count in sorted(tally.items()):
        print(f"{count:6} {what}")
    print(f"{time.perf_counter() - started:.0f} s")
    sys.exit(1 if any(what.startswith("FAULT") for what in tally) else 0)


if __name__ == "__main__":
    main()
