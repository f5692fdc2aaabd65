"""The whole way of one asset, usable without any scheduler.

    with Kit(load_recipe("default"), Profile()) as kit, Store.open(uri, write=True) as store:
        build(Path("film.mp4"), kit, store)

``flows/ingest.py`` runs the same stages for a library.
"""

from __future__ import annotations

from pathlib import Path

from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import read_facts
from evicat.catalog.stages import embed, narrate, see, transcribe
from evicat.schemas.asset import Asset
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span

STAGES = (transcribe, see, narrate, embed)
"""In this order: each reads what those before it wrote."""


def probe(path: Path, kit: Kit, *, source_id: str | None = None, clip: Span | None = None) -> Asset:
    """Identity and facts of a media file, or of the cut ``clip`` of it.

    Raises:
        AssetError: the file cannot be read, or is no media.
    """
    asset_id, size_bytes = hash_file(path)
    timeout_s = kit.profile.decode_timeout_seconds
    return read_facts(
        kit.workers,
        path,
        asset_id=asset_id,
        size_bytes=size_bytes,
        source_id=source_id,
        clip=clip,
        timeout_s=timeout_s,
    )


def build(path: Path, kit: Kit, sink: Sink) -> Job:
    """Make everything that the kit's recipe asks for of one file, and that ``sink`` does not hold yet.

    Raises:
        AssetError: the file cannot be read, or is no media. What fails later is an outcome in the ledger.
    """
    for producer in kit.sources:
        sink.add_producer(producer)
    asset = probe(path, kit)
    sink.add_asset(asset)
    job = plan(asset, path, kit)
    for stage in STAGES:
        stage(job, kit, sink)
    return job
