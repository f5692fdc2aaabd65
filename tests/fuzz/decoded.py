"""The pictures that a file holds, read straight through: the witness of the fuzz runs. Runs in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evicat.catalog.media.streams import Order, only, open_media, packets, stamp
from evicat.schemas.asset import Asset


def pts_of(path: Path, asset: Asset) -> Iterator[set[int] | None]:
    """PTS of all packets of the chosen picture.

    Which of them decode is not asked: FFmpeg's threads judge damaged pictures now one way, now another.
    """
    found = set()
    with open_media(path) as container:
        stream = only(container, asset.video.stream_index)
        by_order = Order.is_needed(container, stream)
        for packet in packets(container, stream, asset.video.clock_shifts):
            if packet.size:
                found.add(packet.dts if by_order else stamp(packet))
            yield None
    yield found
