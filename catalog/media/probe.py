"""The facts of a media file and of its timeline, found by reading it, not by believing its header.

The picture's origin is the first frame that really decodes, which edit lists, hidden pre-roll and broken
starts move away from the first packet. The end is where the last packet of the chosen picture and sound ends,
whichever is later. Where a file holds less than its header promises, the last frame that decodes is the
picture's end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError, UnreadableMediaError
from evicat.schemas.span import Span

from .clip import cut
from .clock import to_us
from .facts import Chosen, Facts
from .formats import is_signed
from .frames import Wanted, decode_steps
from .scan import FileScan, scan_packets
from .streams import Damage, decode_packet, decode_stream, only, open_media, packets, pictures, sounds
from .worker import WorkerPool

T = TypeVar("T")

_LAST_INSTANT_US = 1 << 60
_TRIAL_PACKETS = 32


def probe(
    path: Path, *, asset_id: str, size_bytes: int, source_id: str | None = None, clip: Span | None = None
) -> Asset:
    """Read the whole file once and state its facts.

    Args:
        asset_id: Identity of the file's bytes (``identity.hash_file``).
        source_id: Identity of what it was made from, where that is known; else the file is its own source.
        clip: In and out points on the file's own timeline: the facts of this cut, an asset of its own whose
            timeline begins at the first frame at or after the in point (at the in point, where there is no
            picture) and ends at the out point.

    Raises:
        UnreadableMediaError: not media, or nothing in it decodes.
        AssetError: the in point lies at or beyond the end, or the file is being written to.
    """
    steps = probe_steps(path, asset_id, size_bytes, source_id, clip)
    return next(asset for asset in steps if asset is not None)


def probe_isolated(
    pool: WorkerPool,
    path: Path,
    *,
    asset_id: str,
    size_bytes: int,
    source_id: str | None = None,
    clip: Span | None = None,
    timeout_s: float,
) -> Asset:
    """:func:`probe` in a worker process.

    Raises:
        DecodeStalledError: no progress for ``timeout_s`` seconds.
        DecoderCrashedError: the process died.
    """
    arguments = (path, asset_id, size_bytes, source_id, clip)
    (asset,) = pool.run(probe_steps, *arguments, timeout_s=timeout_s, about=path)
    return asset


def probe_steps(
    path: Path, asset_id: str, size_bytes: int, source_id: str | None, clip: Span | None
) -> Iterator[Asset | None]:
    """:func:`probe` with None as signs of life before the asset; what runs in a worker."""
    scan = yield from _result(scan_packets(path))
    picture, sound = yield from _chosen(path, scan)
    if scan.align(picture.index if picture else None, sound.index if sound else None):
        picture, sound = yield from _chosen(path, scan)
    with open_media(path) as container:
        facts = Facts(container, scan, picture, sound)
        asset = facts.asset(asset_id, size_bytes, source_id or asset_id)
    if "partial_file" in asset.flags:
        asset = yield from _end_where_it_decodes(path, asset, facts)
    if clip is not None:
        asset = yield from cut(path, asset, clip, sound_end_us=facts.sound_end_us)
    _check_size(path, size_bytes)
    yield asset


def _check_size(path: Path, size_bytes: int) -> None:
    """Facts of other bytes than those that were hashed would be kept under their identity."""
    found = path.stat().st_size
    if found != size_bytes:
        raise AssetError(
            f"{path}: it changed from {size_bytes} to {found} bytes while it was read; "
            "index it again when it is finished"
        )


def _result(steps: Iterator[T | None]) -> Generator[None, None, T]:
    """Hand on the signs of life of ``steps`` and return its one result."""
    results: list[T] = []
    for step in steps:
        if step is None:
            yield None
        else:
            results.append(step)
    return results[0]


def _chosen(path: Path, scan: FileScan) -> Generator[None, None, tuple[Chosen | None, Chosen | None]]:
    """The picture and the sound of the file."""
    picture = yield from _first_decoded(path, pictures, scan)
    sound = yield from _first_decoded(path, sounds, scan)
    if picture is None and sound is None:
        raise UnreadableMediaError(f"{path}: neither picture nor sound in it decodes")
    return picture, sound


def _first_decoded(
    path: Path, candidates: Callable[[Any], list[Any]], scan: FileScan
) -> Generator[None, None, Chosen | None]:
    """The first of the candidate streams that has packets and gives a frame."""
    with open_media(path) as container:
        indices = [stream.index for stream in candidates(container)]
    for index in indices:
        if index not in scan.streams or not scan.streams[index].presented:
            continue
        with open_media(path) as container:
            shifts = scan.streams[index].clock_shifts
            stream = only(container, index)
            # What comes first from a damaged start may depend on the number of threads.
            stream.codec_context.thread_count = 1
            first = yield from _first(decode_stream(path, container, stream, shifts))
            is_sure = is_signed(container.format.name)
        if first is not None and (is_sure or (yield from _mostly_decodes(path, index))):
            return Chosen(index, first, scan.streams[index])
    return None


def _first(frames: Iterator[Any]) -> Generator[None, None, Any]:
    for frame in frames:
        if frame is not None:
            return frame
        yield None
    return None


def _mostly_decodes(path: Path, index: int) -> Generator[None, None, bool]:
    """Whether most of the first packets of a stream decode."""
    damage, tried = Damage(), 0
    with open_media(path) as container:
        stream = only(container, index)
        for packet in islice(packets(container, stream), _TRIAL_PACKETS):
            decode_packet(stream.codec_context, packet, damage)
            tried += 1
            yield None
    return 2 * damage.packets < tried


def _end_where_it_decodes(path: Path, asset: Asset, facts: Facts) -> Generator[None, None, Asset]:
    """End a partial file with the last frame that decodes, or with its sound where that is later."""
    end_us = facts.sound_end_us or 0
    if asset.video is not None and facts.last_picture is not None:
        scan = facts.last_picture
        last_us = to_us(scan.last_pts or 0, scan.time_base) - asset.origin_us
        wanted = Wanted(Span(0, _LAST_INSTANT_US), (max(0, last_us),), max_width=16)
        endless = asset.model_copy(update={"duration_us": _LAST_INSTANT_US})
        _, frames = yield from _result(decode_steps(path, endless, [wanted]))
        shown = frames[-1] if frames else None
        lasts = scan.lasts(last_decodes=shown is not None and shown.pts == scan.last_pts)
        # What decoded alone may not decode again: then the timeline is as long as that one picture.
        end_us = max(end_us, (shown.time_us if shown else 0) + to_us(lasts, scan.time_base))
    end_us = max(end_us, facts.shortest_us)
    return asset.model_copy(update={"duration_us": end_us, "decoded_until_us": end_us})
