"""The whole way of one asset, usable without any scheduler.

    with Kit(load_recipe("default"), Profile()) as kit, Store.connect(uri, write=True, create=True) as store:
        build(Path("film.mp4"), kit, store)

``flows/ingest.py`` runs the same stages for a library.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe_isolated
from evicat.catalog.seeing import see
from evicat.catalog.sources import single
from evicat.catalog.stages import embed, narrate, transcribe
from evicat.catalog.supporting import support
from evicat.schemas.asset import Asset
from evicat.schemas.naming import FileStamp
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span

Stage = Callable[[Job, Kit, Sink], None]

STAGES: tuple[Stage, ...] = (transcribe, see, narrate, support, embed)
"""In this order: each reads what those before it wrote."""


def probe(
    path: Path,
    kit: Kit,
    asset_id: str,
    size_bytes: int,
    *,
    source_id: str | None = None,
    clip: Span | None = None,
) -> Asset:
    """Facts of a media file, or of the cut ``clip`` of it; ``asset_id`` is that of the whole file.

    Raises:
        AssetError: the file cannot be read, or is no media.
    """
    return probe_isolated(
        kit.workers,
        path,
        asset_id=asset_id,
        size_bytes=size_bytes,
        source_id=source_id,
        clip=clip,
        timeout_s=kit.profile.decode_timeout_seconds,
    )


def build(path: Path, kit: Kit, sink: Sink) -> Job:
    """Make everything that the kit's recipe asks for of one file, and that ``sink`` does not hold yet.

    Raises:
        AssetError: the file cannot be read, or is no media. What fails later is an outcome in the ledger.
    """
    for producer in kit.producers:
        sink.add_producer(producer)
    source, asset_id, size_bytes = single(path), *hash_file(path)
    asset = probe(path, kit, asset_id, size_bytes)
    sink.add_asset(asset)
    sink.add_root(source.own_root)
    sink.add_name(source.naming(asset_id, FileStamp.of(path.stat())))
    job = plan(asset, path, kit)
    for stage in STAGES:
        stage(job, kit, sink)
    return job
