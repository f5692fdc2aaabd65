"""Decoding by decord 0.6, with PyAV beside it as the witness of the times.

decord counts frames and knows their times only as float32 seconds from the first one; where a frame does not
decode it shows the next one in its place and says nothing. So the PTS come from PyAV, which decodes the same
frames without turning them into pictures: frame ``k`` must be the packet of the ``k``-th smallest PTS for
both. From the first frame where that does not hold, and for pictures that decord does not show as they are
meant, the asset is refused: no time is guessed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.errors import AssetError

from .clock import Clock
from .frames import Candidate, Found, Selection
from .picture import Image, PictureMaker, orientation
from .streams import decode_stream, only, open_media, packets, stamp

_FLOAT32_EPSILON = 2.0**-22
"""Relative error of decord's times: a product of two float32 numbers."""


def decode(path: Path, asset: Asset, selection: Selection) -> Iterator[Found | None]:
    """Bring the frames of ``asset`` to ``selection``; see ``loaders`` for the contract.

    Every frame up to the last wanted one is decoded, twice. Pictures that are scaled differ a little from
    those of ``pyav``, for decord has turned them into RGB before.

    Raises:
        AssetError: decord cannot tell this file's frames, or does not show them as they are meant.
    """
    video = asset.video
    assert video is not None
    clock, pictures = Clock.of(video), PictureMaker(video.sample_aspect_ratio)
    stamps = yield from _stamps(path, video)
    times = [*map(clock.time_us, stamps), asset.duration_us]
    images = _images(path, stamps, clock)
    with open_media(path) as container:
        witness = decode_stream(path, container, only(container, video.stream_index))
        for number, pts in enumerate(stamps):
            frame = yield from _next_frame(witness)
            _check(path, asset, frame, pts, is_first=number == 0)
            image, time_us = next(images), times[number]
            if 0 <= time_us < asset.duration_us:
                selection.pass_by(time_us)
                if selection.waits or selection.wants(time_us, times[number + 1]):
                    look = partial(pictures.image, frame)
                    selection.show(Candidate(pts, time_us, partial(_picture, pictures, image), look))
                yield from selection.take_complete()
            if selection.is_settled:
                return
    selection.end()
    yield from selection.take_complete()


def _picture(pictures: PictureMaker, image: Image, max_width: int) -> Image:
    import av

    return pictures.image(av.VideoFrame.from_ndarray(image, format="rgb24"), max_width)


def _stamps(path: Path, video: VideoFacts) -> Generator[None, None, list[int]]:
    """PTS of all packets of the picture, ascending."""
    found = []
    if video.clock_shifts:
        raise _refusal(path, "its clock is set anew on the way")
    with open_media(path) as container:
        if len(container.streams.video) > 1:
            raise _refusal(path, "it has several picture streams, and decord chooses one by itself")
        for packet in packets(container, only(container, video.stream_index)):
            if packet.size:
                found.append(packet.pts)
            yield None
    if None in found:
        raise _refusal(path, "it has packets without a time")
    return sorted(found)


def _images(path: Path, stamps: list[int], clock: Clock) -> Iterator[Image]:
    """All pictures, ``(height, width, 3)`` uint8, once decord has told the times of ``stamps``."""
    decord, error_class = _library()
    try:
        reader = decord.VideoReader(str(path.absolute()), decord.cpu(0), num_threads=0)
        _check_times(path, stamps, clock, reader.get_frame_timestamp(range(len(reader)))[:, 0])
        while True:
            # By number, decord would seek; in MPEG-4 with B-frames it then shows other frames.
            yield reader.next().asnumpy()
    except (error_class, StopIteration) as error:
        reason = (str(error).strip() or "it ends too early").splitlines()[-1]
        raise _refusal(path, f"decord cannot read it: {reason}") from None


def _check_times(path: Path, stamps: list[int], clock: Clock, told: npt.NDArray[np.float32]) -> None:
    known = (np.array(stamps) - stamps[0]) * float(clock.time_base)
    if len(told) != len(known):
        raise _refusal(path, f"decord counts {len(told)} frames, but it has {len(known)} packets of picture")
    wrong = np.flatnonzero(~np.isclose(told, known, rtol=_FLOAT32_EPSILON, atol=1e-6))
    if len(wrong):
        at = wrong[0]
        raise _refusal(path, f"decord says that frame {at} is at {told[at]} s, but it is at {known[at]} s")


def _next_frame(witness: Iterator[Any]) -> Generator[None, None, Any]:
    for frame in witness:
        if frame is not None:
            return frame
        yield None
    return None


def _check(path: Path, asset: Asset, frame: Any, pts: int, *, is_first: bool) -> None:
    if frame is None or stamp(frame) != pts:
        time_us = Clock.of(asset.video).time_us(pts) if asset.video else 0
        raise _refusal(path, f"its frame at {time_us / 1e6} s does not decode, and decord hides that")
    if is_first:
        _check_picture(path, asset, frame)


def _check_picture(path: Path, asset: Asset, frame: Any) -> None:
    """Refuse pictures that decord shows otherwise than they are meant.

    It turns by quarters and only what MP4 says of them, mirrors nothing, and gives other colours where a
    picture is interlaced or has more than 8 bits per colour.
    """
    import av

    if any(part.bits > 8 for part in av.VideoFormat(frame.format.name).components):
        raise _refusal(path, f"its pictures ({frame.format.name}) have more than 8 bits per colour")
    if asset.video is not None and asset.video.interlaced:
        raise _refusal(path, "its pictures are interlaced")
    quarters, swaps_sides, swaps_ends = orientation(frame)
    if swaps_sides != swaps_ends:
        raise _refusal(path, "its pictures are mirrored")
    if (quarters or swaps_sides) and not asset.container.startswith("mov,"):
        raise _refusal(path, f"its pictures are to be turned, and it is no MP4 but {asset.container!r}")


def _library() -> tuple[Any, type[Exception]]:
    import decord
    from decord._ffi.base import DECORDError

    decord.logging.set_level(decord.logging.QUIET)
    return decord, DECORDError


def _refusal(path: Path, why: str) -> AssetError:
    return AssetError(f"{path}: {why}; use the decoder 'pyav'")
