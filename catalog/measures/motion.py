"""Frames against motion: seconds in which the picture changes, and which of them no describer was shown.

The pictures of each video are compared twice a second at a low width, in one pass over its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Wanted, read_windows
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.query import Catalog
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US, Span

from .card import CARD_SCHEMA, Looked, card_of, lost_note, shown_producers

STEP_US = 500_000
"""So often pictures are compared."""
LOOK_WIDTH = 64
"""Pixels; what is scaled down so far shows no noise of the camera."""
DIFFERS = 16
"""A pixel has changed where it is so much brighter or darker, of 255 (chosen)."""
CHANGED = 0.01
"""The picture changes where this share of its pixels has (chosen)."""
_PASS_US = 60 * US
"""Pictures are handed over for so much of a video at once."""
Seconds = npt.NDArray[np.bool_]
"""For each second of a video."""


def against_motion(
    catalog: Catalog,
    video: str | None = None,
    *,
    profile: Profile | None = None,
    media_roots: Sequence[str | Path] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> Looked:
    """``unseen_share`` and ``unseen_s`` of each producer that was shown frames.

    What was shown are the frames that entries cite: a window that failed has shown nothing. ``tell`` hears
    which video is looked at. A video whose file is not found or cannot be decoded is a note.

    Raises:
        UsageError: no such video.
    """
    entries = catalog.entries(video, kind=["local", "narrative", "objects"])
    entries = entries.filter(pl.col("frames").list.len() > 0)
    videos = entries.select("asset_id", "video").unique("asset_id", maintain_order=True)
    moving: dict[str, Seconds] = {}
    notes = []
    files = catalog.media_files(media_roots)
    with WorkerPool() as workers:
        for asset_id, name in videos.iter_rows():
            tell(name)
            asset = catalog.asset(asset_id)
            path = files.find(asset) if asset else None
            if asset is None or path is None:
                notes.append(
                    f"{name}: its file was not found; name the folder that holds it with --media-root"
                )
                continue
            try:
                moving[asset_id] = moving_seconds(workers, path, asset, profile or Profile())
            except AssetError as error:
                notes.append(f"{name}: {error}")
    cards = [CARD_SCHEMA.to_frame()]
    for producer in shown_producers(catalog).to_dicts():
        own = entries.filter(pl.col("producer_id") == producer["producer_id"])
        cards.append(card_of(producer, _unseen(own, moving)))
    return Looked(pl.concat(cards), (*notes, *lost_note(len(notes), len(videos))), len(notes))


def moving_seconds(workers: WorkerPool, path: Path, asset: Asset, profile: Profile) -> Seconds:
    """Whether the picture changes, for each second of ``asset``'s timeline.

    Raises:
        AssetError: the file cannot be decoded.
    """
    moving = np.zeros(-(-asset.duration_us // US), bool)
    for before, after in pairwise(_pictures(workers, path, asset, profile)):
        if _differs(before, after):
            moving[before.time_us // US] = True
    return moving


def _pictures(workers: WorkerPool, path: Path, asset: Asset, profile: Profile) -> Iterator[Frame]:
    whole = Span(0, asset.duration_us)
    starts = range(0, whole.end_us, _PASS_US)
    spans = [Span(start, min(start + _PASS_US, whole.end_us)) for start in starts]
    wanted = [Wanted(each, tuple(range(each.start_us, each.end_us, STEP_US)), LOOK_WIDTH) for each in spans]
    timeout_s = profile.decode_timeout_seconds
    found = read_windows(workers, path, asset, wanted, timeout_s=timeout_s, decoder=profile.decoder)
    return (frame for _, frames in found for frame in frames)


def _differs(before: Frame, after: Frame) -> bool:
    if before.image.shape != after.image.shape:
        return True
    luma = [frame.image.mean(axis=2) for frame in (before, after)]
    return bool((np.abs(luma[0] - luma[1]) > DIFFERS).mean() >= CHANGED)


def _unseen(own: pl.DataFrame, moving: dict[str, Seconds]) -> Iterator[tuple[str, float, int]]:
    unseen = count = 0
    longest = 0.0
    for asset_id, *_ in own.select("asset_id").unique(maintain_order=True).iter_rows():
        if asset_id not in moving:
            continue
        moves = moving[asset_id]
        frames = own.filter(pl.col("asset_id") == asset_id)["frames"].explode().struct.field("time_s")
        times = frames.unique().sort().to_numpy()
        shown = np.zeros_like(moves)
        shown[times[times < len(moves)].astype(int)] = True
        unseen += int((moves & ~shown).sum())
        count += int(moves.sum())
        longest = max([longest, *_gaps_with_motion(times, moves)])
    yield "unseen_share", unseen / max(count, 1), count
    yield "unseen_s", longest, count


def _gaps_with_motion(times: npt.NDArray[np.float64], moves: Seconds) -> Iterator[float]:
    """Seconds between two shown frames, or one and an end of the video, where a second within has motion."""
    for before, after in pairwise([0.0, *times, float(len(moves))]):
        if moves[int(before) : int(np.ceil(after))].any():
            yield float(after - before)
