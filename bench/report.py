"""The report page of two hours: how large it is, what it takes to write, and how it opens in Chromium.

Local entries of 10 s with 8 frames, narratives of a minute with 16, a line of speech every 5 s, and supports.
Bounds: 8 MB; 2.0 of decoding the film once; two seconds until the page can be used; of a walk by keys a tenth
of a second a step, in the median; a second for a search.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import media
from sides import compare, end, keep

from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.catalog.query import Catalog
from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, FrameRef, Link, Outcome, Support, WindowResult
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.records import LocalRecord, NarrativeRecord, SpeechSegment, Word
from evicat.schemas.span import US, Span
from evicat.storage.store import Store
from evicat.viewer.report import video_report, write_report

LIMIT_BYTES, LIMIT_RATIO, READY_S, STEP_S, SEARCH_S = 8_000_000, 2.0, 2.0, 0.1, 1.0
STEPS = 15
LOCAL = Producer(kind="local", scale="local-10s", component="bench", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="bench", version=1)
NARRATIVE = Producer(kind="narrative", scale="narrative-60s", component="bench", version=1)
SUPPORTS = Producer(kind="support", scale="supports", component="bench", version=1)
TEXT = """a man woman dog child walks stands holds looks turns red grey wooden open wet door street umbrella
table window near under behind toward slowly again while rain light voices"""
CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
]


class Writer:
    """Writes down what is told of one film."""

    def __init__(self, store: Store, asset: Asset) -> None:
        if asset.video is None:
            raise ValueError("the film has no picture")
        self._store, self._asset, self._video = store, asset, asset.video
        self._random, self._words = random.Random(0), TEXT.split()

    def write(self) -> None:
        seen = [self._entry(LOCAL, span, 8) for span in self._spans(10)]
        told = [self._entry(NARRATIVE, span, 16) for span in self._spans(60)]
        heard = [self._entry(SPEECH, span, 0) for span in self._spans(5)]
        for maker, entries in ((LOCAL, seen), (NARRATIVE, told), (SPEECH, heard)):
            results = [WindowResult(span=e.span, outcome=Outcome.DONE, entries=(e,)) for e in entries]
            self._unit(maker, results)
        supports = tuple(support for narrative in told for support in self._supports(narrative, seen + heard))
        whole = Span(0, self._asset.duration_us)
        self._unit(SUPPORTS, [WindowResult(span=whole, outcome=Outcome.DONE, supports=supports)])

    def _spans(self, seconds: int) -> Iterator[Span]:
        step, length = seconds * US, self._asset.duration_us
        return (Span(start, min(start + step, length)) for start in range(0, length, step))

    def _unit(self, maker: Producer, results: list[WindowResult]) -> None:
        unit = self._of(maker)
        self._store.add_producer(maker)
        self._store.open(unit)
        for result in results:
            self._store.write(unit, result)
        self._store.close(unit, complete=True)

    def _of(self, maker: Producer) -> Unit:
        return Unit(
            asset_id=self._asset.asset_id,
            producer_id=maker.producer_id,
            kind=maker.kind,
            scale=maker.scale,
        )

    def _entry(self, maker: Producer, span: Span, frames: int) -> Entry:
        unit = self._of(maker)
        text = self._text({"local": 45, "narrative": 110}.get(maker.kind, 10))
        shown = tuple(self._frame(span, (2 * k + 1) / (2 * frames)) for k in range(frames))
        return Entry.model_validate(
            {
                "entry_id": entry_id(unit, span.start_us, 0),
                "unit_id": unit.unit_id,
                "asset_id": unit.asset_id,
                "producer_id": unit.producer_id,
                "kind": maker.kind,
                "scale": maker.scale,
                "span": span,
                "text": text,
                "record": self._record(maker, span, text),
                "frames": shown,
                "time_base": self._video.time_base if frames else "",
                "shown_width": 448 if frames else None,
                "shown_height": 252 if frames else None,
            }
        )

    def _record(self, maker: Producer, span: Span, text: str) -> str:
        if maker is LOCAL:
            lists = {name: (self._text(6), self._text(6)) for name in ("actions", "changes", "screen_text")}
            return LocalRecord(scene=self._text(12), place=self._text(4), **lists).model_dump_json()
        if maker is NARRATIVE:
            return NarrativeRecord(narrative=text).model_dump_json()
        step = (span.end_s - span.start_s) / 10
        words = tuple(
            Word(
                start_s=span.start_s + k * step,
                end_s=span.start_s + (k + 1) * step,
                text=word,
                probability=0.9,
            )
            for k, word in enumerate(text.split())
        )
        segment = SpeechSegment(
            start_s=span.start_s, end_s=span.end_s, text=text, words=words, source="bench"
        )
        return segment.model_dump_json()

    def _supports(self, narrative: Entry, entries: list[Entry]) -> Iterator[Support]:
        near = [entry for entry in entries if entry.span.overlap_us(narrative.span)]
        for number in range(6):
            links = self._random.sample(near, min(3, len(near)))
            yield Support(
                entry_id=narrative.entry_id,
                sentence=number,
                unit_id=narrative.unit_id,
                asset_id=narrative.asset_id,
                producer_id=narrative.producer_id,
                span=narrative.span,
                text=self._text(18),
                role="observed",
                rests_on=tuple(Link(entry_id=each.entry_id, score=0.5) for each in links),
            )

    def _frame(self, span: Span, part: float) -> FrameRef:
        """The frame of the film, 25 in a second, that begins before this part of the span."""
        index = int((span.start_us + part * span.duration_us) * 25 / US)
        ticks = round(Fraction(index, 25) / Fraction(self._video.time_base))
        return FrameRef(pts=self._video.origin_pts + ticks, time_s=index / 25)

    def _text(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, k=words)).capitalize()


def make(folder: Path, minutes: int) -> tuple[Path, Path]:
    """The film, and a catalog of it."""
    film, uri = folder / "film.mp4", folder / "catalog"
    media.real_film(film, minutes)
    asset_id, size = hash_file(film)
    asset = probe(film, asset_id=asset_id, size_bytes=size)
    with Store.connect(uri, write=True, create=True) as store:
        store.add_root(Root("r", "folder", str(folder)))
        store.add_asset(asset)
        store.add_name(VideoName("r", film.name, asset_id, film.name, FileStamp.of(film.stat())))
        Writer(store, asset).write()
    return film, uri


def decode(film: Path) -> None:
    with av.open(str(film)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for _ in container.decode(video=0):
            pass


def opened(page: Path) -> dict[str, float]:
    """Seconds until the page can be used, of a step by keys, and of a search."""
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM)
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        started = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]")
        ready_s = time.perf_counter() - started
        steps = []
        for _ in range(STEPS):
            started = time.perf_counter()
            tab.keyboard.press("j")
            tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            steps.append(time.perf_counter() - started)
        started = time.perf_counter()
        tab.locator("#search").fill("umbrella")
        expect(tab.locator("#count")).to_contain_text(" of ")
        search_s = time.perf_counter() - started
        browser.close()
    return {"ready_s": ready_s, "step_s": statistics.median(steps), "search_s": search_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--runs", type=int, default=1, help="each decodes the film twice")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        film, uri = make(Path(name), options.minutes)
        catalog, page = Catalog.open(str(uri)), Path(name) / "page.html"
        quick = compare(
            f"report page of {options.minutes} min / decoding it",
            ours=lambda: write_report(page, video_report(catalog, film.name).html),
            other=lambda: decode(film),
            bound=LIMIT_RATIO,
            runs=options.runs,
        )
        size, seconds = page.stat().st_size, opened(page)
    bounds = {"ready_s": READY_S, "step_s": STEP_S, "search_s": SEARCH_S}
    print(
        f"page: {size / 1e6:.2f} MB (bound {LIMIT_BYTES / 1e6:g}); in Chromium, seconds (bound):", flush=True
    )
    print(", ".join(f"{what} {value:.3f} ({bounds[what]})" for what, value in seconds.items()), flush=True)
    keep("report page", {"bytes": size, **seconds, "bounds": bounds, "minutes": options.minutes})
    end(quick, size <= LIMIT_BYTES, *(value <= bounds[what] for what, value in seconds.items()))


if __name__ == "__main__":
    main()
