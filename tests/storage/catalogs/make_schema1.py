"""Makes ``schema1/``, a tiny catalog of schema 1, with the code of a commit that wrote that schema.

    git worktree add /tmp/old 0bf04ad
    PYTHONPATH=/tmp/old/.typing python tests/storage/catalogs/make_schema1.py tests/storage/catalogs/schema1
    git worktree remove /tmp/old

It holds two short videos, seen by two versions of one describer (the newer one wrote last, but stands first
in ``producers``), a narrative, speech, one window that failed, and vectors of four numbers.
"""

from __future__ import annotations

import shutil
import sys
from datetime import timedelta
from pathlib import Path

import lance

from evicat.schemas.asset import Asset, AudioFacts, VideoFacts
from evicat.schemas.entry import Entry, FrameRef, Outcome, Vector, WindowResult
from evicat.schemas.identity import ModelRef, Producer, Unit, entry_id
from evicat.schemas.model import content_hash
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import US, Span
from evicat.storage.head import read_head, write_head
from evicat.storage.layout import SCHEMA, Layout
from evicat.storage.store import Store

NEW_SIGHT = Producer(kind="local", scale="local-10s", component="sight", version=2)
OLD_SIGHT = Producer(kind="local", scale="local-10s", component="sight", version=1)
DIGEST = Producer(
    kind="narrative", scale="narrative-20s", component="digest", version=1, reads=(NEW_SIGHT.producer_id,)
)
SPEECH = Producer(kind="speech", scale="speech", component="faster-whisper", version=1)
MODEL = ModelRef(name="all-MiniLM-L6-v2", digest="ab" * 32)
EMBEDDERS = {
    source.kind: Producer(
        kind="embedding", scale="", component="minilm", version=1, model=MODEL, reads=(source.producer_id,)
    )
    for source in (NEW_SIGHT, SPEECH)
}
TEXTS = {
    "sight 1": ("a man", "a man walks"),
    "sight 2": ("A man waits at a bus stop.", "A red bus arrives.", "A man boards the bus."),
    "digest 1": ("A man waits for a bus and boards it.",),
    "faster-whisper 1": ("Is this the bus to town?", "Yes, it is."),
}
LENGTHS_S = {"walk.mp4": 20, "day/bus.mp4": 30}


def unit(name: str, producer: Producer) -> Unit:
    return Unit(
        asset_id=content_hash(name),
        producer_id=producer.producer_id,
        kind=producer.kind,
        scale=producer.scale,
    )


def windows(name: str, producer: Producer) -> list[Span]:
    seconds = 20 if producer is DIGEST else 10
    end = LENGTHS_S[name]
    return [Span(at * US, min(at + seconds, end) * US) for at in range(0, end, seconds)]


def entry(of: Unit, span: Span, text: str) -> Entry:
    return Entry(
        entry_id=entry_id(of, span.start_us, 0),
        unit_id=of.unit_id,
        asset_id=of.asset_id,
        producer_id=of.producer_id,
        kind=of.kind,
        scale=of.scale,
        span=span,
        text=text,
        frames=() if of.kind == "speech" else (FrameRef(pts=span.start_us * 9 // 100, time_s=span.start_s),),
        time_base="" if of.kind == "speech" else "1/90000",
        language="en" if of.kind == "speech" else None,
    )


def write(store: Store, name: str, producer: Producer) -> list[Entry]:
    """One unit; where the texts end, a window of sight failed, and the others found nothing."""
    of = unit(name, producer)
    texts = iter(TEXTS[f"{producer.component} {producer.version}"])
    made = []
    store.open(of)
    for span in windows(name, producer):
        text = next(texts, None)
        if text:
            made.append(entry(of, span, text))
            result = WindowResult(span=span, outcome=Outcome.DONE, entries=(made[-1],), seconds=0.5)
        elif producer is OLD_SIGHT:
            result = WindowResult(
                span=span, outcome=Outcome.FAILED, error_class="Window", message="no answer", attempts=3
            )
        else:
            result = WindowResult(span=span, outcome=Outcome.EMPTY, seconds=0.25)
        store.write(of, result)
    store.close(of, complete=True)
    return made


def embed(store: Store, name: str, source: Producer, entries: list[Entry]) -> None:
    of = unit(name, EMBEDDERS[source.kind])
    vectors = tuple(
        Vector(
            **{
                field: getattr(each, field)
                for field in ("entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale", "span")
            },
            part=0,
            vector=(0.5, 0.5, -0.5, 0.5 if "bus" in each.text else -0.5),
        )
        for each in entries
    )
    store.open(of)
    whole = Span(0, LENGTHS_S[name] * US)
    store.write(of, WindowResult(span=whole, outcome=Outcome.DONE, vectors=vectors))
    store.close(of, complete=True)


def video(name: str) -> Asset:
    return Asset(
        asset_id=content_hash(name),
        source_id=content_hash(name),
        size_bytes=1_000_000,
        container="mov,mp4,m4a,3gp,3g2,mj2",
        duration_us=LENGTHS_S[name] * US,
        origin_us=0,
        video=VideoFacts(
            stream_index=0,
            codec="h264",
            width=640,
            height=360,
            time_base="1/90000",
            origin_pts=0,
            frame_count=25 * LENGTHS_S[name],
        ),
        audio=AudioFacts(stream_index=1, codec="aac", sample_rate=48000, channels=2, start_us=0),
    )


def make(folder: Path) -> None:
    with Store.connect(folder, write=True, create=True) as store:
        store.add_root(Root("media", "folder", "/media/example"))
        for producer in (NEW_SIGHT, OLD_SIGHT, DIGEST, SPEECH, *EMBEDDERS.values()):
            store.add_producer(producer)
        for number, name in enumerate(LENGTHS_S, start=1):
            stamp = FileStamp(1_000_000, number, number, number)
            store.add_name(VideoName("media", name, content_hash(name), name, stamp))
            store.add_asset(video(name))
            write(store, name, OLD_SIGHT)
        store.commit(force=True)
        for name in LENGTHS_S:
            for source in (NEW_SIGHT, DIGEST, SPEECH):
                entries = write(store, name, source)
                if source.kind in EMBEDDERS:
                    embed(store, name, source, entries)
    _slim(folder)
    shutil.rmtree(folder / "work")  # locks and journals: nothing of them is left after a finished run
    (folder / "staged").rmdir()


def _slim(folder: Path) -> None:
    """Compact everything, and leave only the versions that the head then names."""
    layout = Layout.of(folder)
    versions = {}
    for name in read_head(layout.head).tables:
        table = lance.dataset(layout.table(name))
        table.optimize.compact_files()
        table.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        versions[name] = table.version
    write_head(layout.head, read_head(layout.head).following(versions))


if __name__ == "__main__":
    if SCHEMA != 1:
        sys.exit(f"this evicat writes schema {SCHEMA}; put the code of schema 1 in front (see above)")
    make(Path(sys.argv[1]))
