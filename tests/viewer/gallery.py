"""A small catalog with everything that a page can show, hostile texts among it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe as probe_file
from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, FrameRef, Link, Outcome, Support, WindowResult
from evicat.schemas.errors import UnreadableMediaError
from evicat.schemas.identity import ModelRef, Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.records import (
    CastMember,
    Entity,
    LocalRecord,
    NarrativeRecord,
    ObjectBox,
    SpeechSegment,
    Word,
)
from evicat.schemas.span import US, Span
from evicat.storage.store import Store

VIDEO = '<img src=x onerror=alert(1)> "it\'s" & co.mp4'
OTHER = "plain.mp4"
BROKEN = "broken.mp4"
HOSTILE = (
    "<script>window.ran = 1</script>",
    "</script><script>window.ran = 2</script>",
    '"><img src=x onerror="window.ran = 3">',
    "<!--<script>",
    "javascript:window.ran=4 {{ 7 * 7 }} ${7 * 7} \u2028 \u2029",
)
RTL = "رجل يحمل مظلة"
EMOJI = "A dancer 💃🏽 spins 👩‍👩‍👧 twice"
LONG = "An endless description of a corridor. " * 270

LOCAL = Producer(
    kind="local",
    scale="local-2s",
    component="sight",
    version=2,
    model=ModelRef(name='models/<i>"tiny"</i>', digest="ab" * 32),
    options={"frames": {"per_window": 2}, "prompt": HOSTILE[1]},
)
SPEECH = Producer(kind="speech", scale="speech", component="subtitles", version=1)
NARRATIVE = Producer(
    kind="narrative",
    scale="narrative-4s",
    component="digest",
    version=2,
    reads=(LOCAL.producer_id, SPEECH.producer_id),
)
SUPPORTS = Producer(
    kind="support",
    scale="supports",
    component="supports",
    version=1,
    reads=(LOCAL.producer_id, SPEECH.producer_id, NARRATIVE.producer_id),
)
MAKERS = (LOCAL, SPEECH, NARRATIVE, SUPPORTS)


@dataclass(frozen=True)
class Gallery:
    """The catalog, the folder of its media, and ids of entries that tests ask for."""

    uri: str
    media: Path
    asset_ids: dict[str, str]
    narratives: tuple[str, ...]
    locals: tuple[str, ...]
    speech: tuple[str, ...]


def make_gallery(folder: Path, ffmpeg: Path) -> Gallery:
    """Two videos of 8 s and one that is broken."""
    media = folder / "media"
    media.mkdir()
    _film(ffmpeg, media / VIDEO, "testsrc2=size=320x180:rate=10:duration=8")
    _film(ffmpeg, media / OTHER, "color=navy:size=96x64:rate=5:duration=8")
    (media / BROKEN).write_bytes(b"no film")
    uri = folder / "gallery.catalog"
    with Store.connect(uri, write=True, create=True) as store:
        store.add_root(Root("media", "folder", str(media)))
        for maker in MAKERS:
            store.add_producer(maker)
        assets = {name: _added(store, media / name) for name in (VIDEO, OTHER)}
        broken, size = hash_file(media / BROKEN)
        _name(store, media / BROKEN, broken)
        store.add_video_failed(broken, size, UnreadableMediaError(f"no media: {HOSTILE[0]}"))
        told = _Told(store, assets[VIDEO])
        written = told.everything()
        _Told(store, assets[OTHER]).plain()
    ids = {name: asset.asset_id for name, asset in assets.items()} | {BROKEN: broken}
    return Gallery(str(uri), media, ids, *written)


def _film(ffmpeg: Path, path: Path, picture: str) -> None:
    sound = "sine=frequency=300:duration=8"
    inputs = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
    coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "10", "-c:a", "aac", "-shortest"]
    subprocess.run([str(ffmpeg), "-loglevel", "error", *inputs, *coded, str(path)], check=True)


def _added(store: Store, path: Path) -> Asset:
    asset_id, size = hash_file(path)
    asset = probe_file(path, asset_id=asset_id, size_bytes=size)
    store.add_asset(asset)
    _name(store, path, asset_id)
    return asset


def _name(store: Store, path: Path, asset_id: str) -> None:
    store.add_name(VideoName("media", path.name, asset_id, path.name, FileStamp.of(path.stat())))


class _Told:
    """Writes down what is told of one asset of 8 s."""

    def __init__(self, store: Store, asset: Asset) -> None:
        self.store, self.asset = store, asset

    def plain(self) -> None:
        record = LocalRecord(scene="a dark blue picture")
        unit = self._unit(LOCAL)
        entries = [self._entry(unit, Span(0, 8 * US), record.scene, record=record.model_dump_json())]
        self._write(unit, {Span(0, 8 * US): entries})

    def everything(self) -> tuple[tuple[str, ...], ...]:
        """Ids of narratives, local entries and speech."""
        local, speech, narrative = map(self._unit, (LOCAL, SPEECH, NARRATIVE))
        seen = [self._seen(local, number, text) for number, text in enumerate((HOSTILE[0], RTL, LONG))]
        failed = WindowResult(
            span=Span(6 * US, 8 * US),
            outcome=Outcome.FAILED,
            error_class="Truncated",
            message=f"the answer was cut: {HOSTILE[2]}",
            attempts=3,
        )
        self._write(local, {entry.span: [entry] for entry in seen}, failed)
        heard = [self._heard(speech, *line) for line in self._lines()]
        self._write(speech, {Span(0, 8 * US): heard})
        told = [self._narrated(narrative, number, seen) for number in range(2)]
        self._write(narrative, {entry.span: [entry] for entry in told})
        self._supports(told, seen, heard)
        return tuple(tuple(entry.entry_id for entry in made) for made in (told, seen, heard))

    def _lines(self) -> list[tuple[float, float, str, dict[str, object]]]:
        doubted = {"flags": ("unsure_speech",)}
        return [
            (0.5, 1.4, "Mind the gap.", {"speaker": HOSTILE[2], "language": "en"}),
            (1.5, 2.5, HOSTILE[1], {}),
            (4.2, 5.0, EMOJI, doubted),
            (6.1, 6.4, "door slams", {"kind": "sound"}),
        ]

    def _seen(self, unit: Unit, number: int, text: str) -> Entry:
        span = Span(2 * number * US, 2 * (number + 1) * US)
        times = (span.start_s + 0.5, span.start_s + 1.5)
        box = ObjectBox(
            time_s=times[1], name=HOSTILE[2], x1=100, y1=200, x2=450, y2=700, confidence=0.875, source="ocr"
        )
        record = LocalRecord(
            scene=text[:400],
            place="a platform" if number else HOSTILE[3],
            people=(Entity(descriptor="the man with the bag", details=("grey coat",)),),
            screen_text=("EXIT", HOSTILE[4]) if number == 0 else (),
            boxes=(box,) if number == 0 else (),
        )
        tick = 1_000_000 // 10
        frames = tuple(FrameRef(pts=self._pts(time_s), time_s=time_s) for time_s in times)
        assert all(round(time_s * US) % tick == 0 for time_s in times)
        return self._entry(
            unit,
            span,
            text,
            record=record.model_dump_json(),
            frames=frames,
            time_base=self.asset.video.time_base,
            shown_width=320,
            shown_height=180,
            objects=record.boxes,
            flags=("frames_dropped",) if number == 1 else (),
        )

    def _pts(self, time_s: float) -> int:
        """PTS of the frame that begins at ``time_s``."""
        above, below = map(int, self.asset.video.time_base.split("/"))
        return self.asset.video.origin_pts + round(time_s * below / above)

    def _heard(self, unit: Unit, start_s: float, end_s: float, text: str, more: dict[str, object]) -> Entry:
        words = text.split()
        step = (end_s - start_s) / len(words)
        record = SpeechSegment(
            kind=more.get("kind", "speech"),
            start_s=start_s,
            end_s=end_s,
            text=text,
            source="subtitles",
            words=tuple(
                Word(
                    start_s=start_s + at * step,
                    end_s=start_s + (at + 1) * step,
                    text=word,
                    probability=0.9 - 0.5 * (at % 2),
                )
                for at, word in enumerate(words)
            ),
        )
        return self._entry(
            unit, Span.from_seconds(start_s, end_s), text, record=record.model_dump_json(), **more
        )

    def _narrated(self, unit: Unit, number: int, seen: list[Entry]) -> Entry:
        span = Span(4 * number * US, 4 * (number + 1) * US)
        text = f"A man waits on a platform, part {number + 1}. He seems to be late. {HOSTILE[2]}."
        cast = CastMember(
            name="the man with the bag", descriptor=HOSTILE[0], first_seen_s=0.0, last_seen_s=span.end_s
        )
        rests_on = tuple(entry.entry_id for entry in seen if entry.span.overlap_us(span))
        record = NarrativeRecord(narrative=text, cast=(cast,), rests_on=rests_on)
        return self._entry(unit, span, text, record=record.model_dump_json())

    def _supports(self, told: list[Entry], seen: list[Entry], heard: list[Entry]) -> None:
        unit = self._unit(SUPPORTS)
        sentences = [
            ("A man waits on a platform.", "observed", ((seen[0], 0.75), (heard[0], 0.5))),
            ("He seems to be late.", "inferred", ()),
        ]
        supports = tuple(
            Support(
                entry_id=narrative.entry_id,
                sentence=number,
                unit_id=narrative.unit_id,
                asset_id=narrative.asset_id,
                producer_id=narrative.producer_id,
                span=narrative.span,
                text=text,
                role=role,
                rests_on=tuple(Link(entry_id=entry.entry_id, score=score) for entry, score in links),
            )
            for narrative in told[:1]
            for number, (text, role, links) in enumerate(sentences)
        )
        result = WindowResult(span=Span(0, 8 * US), outcome=Outcome.DONE, supports=supports)
        self.store.open(unit)
        self.store.write(unit, result)
        self.store.close(unit, complete=True)

    def _unit(self, maker: Producer) -> Unit:
        return Unit(
            asset_id=self.asset.asset_id,
            producer_id=maker.producer_id,
            kind=maker.kind,
            scale=maker.scale,
        )

    def _entry(self, unit: Unit, span: Span, text: str, **fields: object) -> Entry:
        kind = fields.pop("kind", unit.kind)
        return Entry(
            entry_id=entry_id(unit, span.start_us, 0),
            unit_id=unit.unit_id,
            asset_id=unit.asset_id,
            producer_id=unit.producer_id,
            kind=kind,
            scale=unit.scale,
            span=span,
            text=text,
            **fields,
        )

    def _write(self, unit: Unit, entries: dict[Span, list[Entry]], *others: WindowResult) -> None:
        self.store.open(unit)
        for span, made in entries.items():
            self.store.write(unit, WindowResult(span=span, outcome=Outcome.DONE, entries=tuple(made)))
        for result in others:
            self.store.write(unit, result)
        self.store.close(unit, complete=True)
