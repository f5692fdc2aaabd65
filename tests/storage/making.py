"""Units, results and catalogs for the tests of the store, and a catalog's content as plain values."""

from __future__ import annotations

from evicat.schemas.asset import Asset, AudioFacts, SubtitleFacts, VideoFacts
from evicat.schemas.entry import Entry, FrameRef, Outcome, Vector, WindowResult
from evicat.schemas.identity import ModelRef, Producer, Unit, entry_id
from evicat.schemas.model import content_hash
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import US, Span
from evicat.storage.reader import Reader
from evicat.storage.tables import vectors_table

WINDOW_US = 10 * US
SIGHT = Producer(kind="local", scale="local-10s", component="sight", version=1)
MINILM = Producer(
    kind="embedding",
    scale="",
    component="minilm",
    version=2,
    model=ModelRef(name="all-MiniLM-L6-v2", digest="ab" * 32),
    options={"pooling": "mean"},
    reads=(SIGHT.producer_id,),
)
VECTORS = vectors_table(MINILM.model_copy(update={"reads": ()}).producer_id)


def unit(name: str = "one", *, inputs: str = "", producer: Producer = SIGHT) -> Unit:
    return Unit(
        asset_id=content_hash(name),
        producer_id=producer.producer_id,
        kind=producer.kind,
        scale=producer.scale,
        inputs_hash=inputs,
    )


def span(window: int) -> Span:
    return Span(window * WINDOW_US, (window + 1) * WINDOW_US)


def entry(of: Unit, window: int, text: str = "A man waits.", *, ordinal: int = 0) -> Entry:
    return Entry(
        entry_id=entry_id(of, span(window).start_us, ordinal),
        unit_id=of.unit_id,
        asset_id=of.asset_id,
        producer_id=of.producer_id,
        kind="local",
        scale=of.scale,
        span=span(window),
        text=text,
    )


def full_entry(of: Unit, window: int) -> Entry:
    """An entry that leaves no field at its default."""
    facts = {
        "record": '{"scene":"it\'s \\"x\\""}',
        "frames": (FrameRef(pts=1001, time_s=0.1 + 0.2), FrameRef(pts=-5, time_s=1e-6)),
        "time_base": "1/30000",
        "shown_width": 448,
        "shown_height": 252,
        "objects": (
            ObjectBox(
                time_s=1 / 3, name="sign", x1=0.1, y1=0, x2=1000, y2=999.9, confidence=0.7, source="ocr"
            ),
            ObjectBox(time_s=2.0, name="bus", x1=1, y1=2, x2=3, y2=4),
        ),
        "speaker": "she",
        "language": "zh-Hant",
        "flags": ("nothing_visible", "partial_file"),
        "prompt_tokens": 1200,
        "completion_tokens": 34,
        "boundary": "question",
        "condition_id": "c0ffee",
        "span": Span(1, 9_999_999),
    }
    return entry(of, window, "Il dit « c'est l'été »,\n然後離開\u2028了。").model_copy(update=facts)


def done(of: Unit, window: int, text: str = "A man waits.", *, entries: int = 1) -> WindowResult:
    made = tuple(entry(of, window, text, ordinal=number) for number in range(entries))
    return WindowResult(span=span(window), outcome=Outcome.DONE, entries=made, seconds=0.25, prompt_tokens=7)


def failed(window: int, message: str = "no answer") -> WindowResult:
    return WindowResult(
        span=span(window), outcome=Outcome.FAILED, error_class="Window", message=message, attempts=3
    )


def vector(of: Entry, numbers: tuple[float, ...] | None, *, part: int = 0) -> Vector:
    names = ("entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale", "span")
    return Vector(**{name: getattr(of, name) for name in names}, part=part, vector=numbers)


def embedded(window: int, entries: list[Entry], dimension: int = 4) -> WindowResult:
    """A result of an embedding unit: one vector per entry, which tells the texts apart."""
    vectors = tuple(vector(one, (float(len(one.text)), *[0.5] * (dimension - 1))) for one in entries)
    return WindowResult(
        span=span(window), outcome=Outcome.DONE if entries else Outcome.EMPTY, vectors=vectors
    )


def asset(name: str = "one", *, decoded_until_us: int | None = None, windows: int = 4) -> Asset:
    return Asset(
        asset_id=content_hash(name),
        source_id=content_hash(name),
        size_bytes=12345,
        container="matroska,webm",
        duration_us=windows * WINDOW_US,
        origin_us=80_000,
        decoded_until_us=decoded_until_us,
        video=VideoFacts(
            stream_index=0,
            codec="h264",
            width=640,
            height=360,
            time_base="1/90000",
            origin_pts=7200,
            frame_count=1000,
        ),
        audio=AudioFacts(stream_index=1, codec="aac", sample_rate=48000, channels=2, start_us=-21333),
        subtitles=(SubtitleFacts(stream_index=2, codec="subrip", language="en"),),
        clip=Span(1, 2),
        flags=("rotated",),
    )


def content(uri) -> dict[str, list[dict]]:
    """All rows of a catalog at its head, by table, in the order of their keys."""
    reader = Reader.open(uri)
    return {name: sorted(reader.dataset(name).to_table().to_pylist(), key=_order) for name in reader.names()}


def _order(row: dict) -> list[str]:
    keys = ("entry_id", "unit_id", "embed_unit_id", "part", "name", "asset_id", "facts")
    return [*(str(row.get(name)) for name in keys), f"{row.get('start_s') or 0:020.6f}"]
