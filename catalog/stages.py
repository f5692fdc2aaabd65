"""The stages of one asset. Each makes only what the sink does not hold yet, and hands it over at once.

A window that fails is an outcome, and the stage goes on. A file that fails (``AssetError``) gives every
window that is left the outcome ``failed``. Any other error is a fault of ours: it is raised, and what was
handed over before it stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evicat.catalog.context import context_hash, embedded_in, shown_in
from evicat.catalog.describers.base import Describer, WindowInput
from evicat.catalog.entries import described, spoken
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.media.audio import read_audio_isolated
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Wanted, frame_times, read_windows
from evicat.catalog.media.subtitles import SubtitleTrack, TrackText, read_track_isolated
from evicat.catalog.transcribers.base import Transcriber
from evicat.catalog.transcribers.clean import transcribe_pieces
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.errors import AssetError, WindowError
from evicat.schemas.grid import CHUNK_US, chunks, windows
from evicat.schemas.identity import Unit
from evicat.schemas.records import SpeechSegment
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span

MESSAGES = 5
"""Of what was left out, so many cases are told in the ledger."""


def transcribe(job: Job, kit: Kit, sink: Sink) -> None:
    """Speech of the asset: its subtitles where the recipe wants them first, else the transcriber's words."""
    unit = job.speech
    if unit is None or sink.is_complete(unit):
        return
    with _opened(sink, unit) as have:
        done_until_us = max((result.span.end_us for result in have.values()), default=0)
        try:
            for result in _speech_results(job, kit, unit, set(have)):
                sink.write(unit, result)
                done_until_us = max(done_until_us, result.span.end_us)
            rest = WindowResult(span=_rest(job, done_until_us), outcome=Outcome.EMPTY, message="no sound")
        except AssetError as error:
            rest = _failed(_rest(job, done_until_us), error)
        if done_until_us < job.asset.duration_us:
            sink.write(unit, rest)


def _speech_results(job: Job, kit: Kit, unit: Unit, have: set[int]) -> Iterator[WindowResult]:
    if job.track:
        started = time.perf_counter()
        cues = _cues(job, kit, job.track)
        if cues.segments or kit.transcriber is None:
            yield _speech_result(unit, job.timeline, cues.segments, started, cues.rejected)
            return
    if job.asset.audio is None or kit.transcriber is None:
        return
    language = kit.recipe.speech.language if kit.recipe.speech else None
    timeout_s = kit.profile.decode_timeout_seconds
    sound = read_audio_isolated(kit.workers, job.path, job.asset, timeout_s=timeout_s)
    pieces = ((piece.start_us, piece.samples) for piece in sound)
    started = time.perf_counter()
    turn = partial(_admitted, kit, kit.transcriber)
    for span, heard in transcribe_pieces(
        kit.transcriber, pieces, language=language, skip_starts=have, turn=turn
    ):
        rejected = [f"{why} ({count} times)" for why, count in heard.rejected.items()]
        yield _speech_result(unit, span, heard.segments, started, rejected)
        started = time.perf_counter()


@contextmanager
def _admitted(kit: Kit, transcriber: Transcriber[Any]) -> Iterator[Transcriber[Any]]:
    kit.admit()
    with kit.using(transcriber):
        yield transcriber


def _cues(job: Job, kit: Kit, track: SubtitleTrack) -> TrackText:
    timeout_s, offset_us = kit.profile.decode_timeout_seconds, job.subtitle_offset_us
    return read_track_isolated(
        kit.workers, job.path, job.asset, track, offset_us=offset_us, timeout_s=timeout_s
    )


def _speech_result(
    unit: Unit, span: Span, segments: list[SpeechSegment], started: float, rejected: list[str]
) -> WindowResult:
    message = f"left out: {'; '.join(rejected[:MESSAGES])}" if rejected else "" if segments else "no speech"
    return WindowResult(
        span=span,
        outcome=Outcome.DONE if segments else Outcome.EMPTY,
        entries=spoken(unit, segments),
        message=message,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """One window that is still to be described, and the scale that wants it."""

    unit: Unit
    scale: str
    span: Span
    last_of_chunk: bool


def see(job: Job, kit: Kit, sink: Sink) -> None:
    """Local records of all scales, from one pass over the pictures."""
    with ExitStack() as stack:
        looks: list[_Look] = []
        for scale, unit in job.local.items():
            if not sink.is_complete(unit):
                have = stack.enter_context(_opened(sink, unit))
                looks += _looks(job, kit, unit, scale, set(have))
        if not looks:
            return
        left = dict(enumerate(looks))
        try:
            for index, frames in _frames(job, kit, looks):
                look = left.pop(index)
                with kit.using(kit.describers[look.scale]) as describer:
                    window = WindowInput(look.span, frames)
                    sink.write(look.unit, _describe(job, kit, describer, look.unit, window))
                if look.last_of_chunk:
                    sink.seal(look.unit)
        except AssetError as error:
            for look in left.values():
                sink.write(look.unit, _failed(look.span, error))


def _looks(job: Job, kit: Kit, unit: Unit, scale: str, have: set[int]) -> list[_Look]:
    return [
        _Look(unit, scale, span, last_of_chunk=span is run[-1])
        for run in chunks(job.grid(kit, scale))
        for span in run
        if span.start_us not in have
    ]


def _frames(job: Job, kit: Kit, looks: list[_Look]) -> Iterator[tuple[int, tuple[Frame, ...]]]:
    options = {scale.name: scale.frames for scale in kit.recipe.scales if scale.frames}
    wanted = [
        Wanted(
            look.span, frame_times(look.span, options[look.scale].per_window), options[look.scale].max_width
        )
        for look in looks
    ]
    timeout_s, decoder = kit.profile.decode_timeout_seconds, kit.profile.decoder
    return read_windows(kit.workers, job.path, job.asset, wanted, timeout_s=timeout_s, decoder=decoder)


def narrate(job: Job, kit: Kit, sink: Sink) -> None:
    """Narratives, in order of time, from the entries of speech and local scales.

    Where stale windows are retried, so is one that this run has made stale.
    """
    again = "stale" in sink.retry
    for scale, unit in job.narrative.items():
        if sink.is_complete(unit) and not again:
            continue
        sources = [*job.local.values(), *([job.speech] if job.speech else [])]
        entries = sorted(
            (entry for source in sources for entry in _entries(sink, source)),
            key=lambda e: (e.span, e.entry_id),
        )
        with _opened(sink, unit) as have:
            for run in chunks(job.grid(kit, scale)):
                for span in run:
                    before = have.get(span.start_us)
                    if before and not again:
                        continue
                    with kit.using(kit.describers[scale]) as describer:
                        window = _context(span, entries, describer)
                        if before is None or before.context_hash != context_hash(window.entries):
                            sink.write(unit, _describe(job, kit, describer, unit, window))
                sink.seal(unit)


def _context(span: Span, entries: list[Entry], describer: Describer[Any]) -> WindowInput:
    shown = shown_in(span, entries, describer.reads)
    speech = (SpeechSegment.model_validate_json(each.record) for each in shown if each.kind == "speech")
    return WindowInput(span, speech=tuple(speech), entries=tuple(shown))


def _describe(job: Job, kit: Kit, describer: Describer[Any], unit: Unit, window: WindowInput) -> WindowResult:
    started = time.perf_counter()
    facts = {"context_hash": context_hash(window.entries)}
    if "frames" in describer.reads and not window.frames:
        return WindowResult(span=window.span, outcome=Outcome.NO_FRAMES, **facts)
    kit.admit()
    try:
        made = describer.describe(window)
    except WindowError as error:
        return _failed(window.span, error).model_copy(update=facts)
    return WindowResult(
        span=window.span,
        outcome=Outcome.DONE if made.record else Outcome.EMPTY,
        entries=(described(unit, job.asset, window.span, window.frames, made),) if made.record else (),
        seconds=time.perf_counter() - started,
        prompt_tokens=made.prompt_tokens,
        completion_tokens=made.completion_tokens,
        **facts,
    )


def embed(job: Job, kit: Kit, sink: Sink) -> None:
    """Vectors of every entry, one result per chunk of the unit that wrote the entries."""
    for source in job.units:
        unit = job.embedding(kit, source)
        if unit is None or (sink.is_complete(unit) and not sink.retry):
            continue
        entries = _entries(sink, source)
        with _opened(sink, unit) as have:
            for span in windows(job.asset.duration_us, CHUNK_US):
                texts, before = embedded_in(span, entries), have.get(span.start_us)
                if before is None or before.context_hash != context_hash(texts):
                    sink.write(unit, _vectors(kit, span, texts))
                    sink.seal(unit)


def _vectors(kit: Kit, span: Span, entries: list[Entry]) -> WindowResult:
    started = time.perf_counter()
    if kit.embedder is None:
        raise ValueError("the recipe has no embedder")
    with kit.using(kit.embedder) as embedder:
        parts = [
            (entry, number, part)
            for entry in entries
            for number, part in enumerate(embedder.parts(entry.text))
        ]
        texts = [part for _, _, part in parts]
        matrix = embedder.embed(texts) if texts else np.empty((0, 0), np.float32)
    vectors = tuple(
        Vector(
            entry_id=entry.entry_id,
            part=number,
            unit_id=entry.unit_id,
            asset_id=entry.asset_id,
            producer_id=entry.producer_id,
            kind=entry.kind,
            scale=entry.scale,
            span=entry.span,
            vector=None if np.isnan(row[0]) else tuple(row.tolist()),
        )
        for (entry, number, _), row in zip(parts, matrix, strict=True)
    )
    return WindowResult(
        span=span,
        outcome=Outcome.DONE if vectors else Outcome.EMPTY,
        vectors=vectors,
        seconds=time.perf_counter() - started,
        context_hash=context_hash(entries),
    )


def _entries(sink: Sink, unit: Unit) -> list[Entry]:
    return [entry for _, result in sorted(sink.results(unit).items()) for entry in result.entries]


def _rest(job: Job, from_us: int) -> Span:
    return Span(min(from_us, job.asset.duration_us - 1), job.asset.duration_us)


def _failed(span: Span, error: AssetError | WindowError) -> WindowResult:
    return WindowResult(span=span, outcome=Outcome.FAILED, error_class=error.error_class, message=str(error))


@contextmanager
def _opened(sink: Sink, unit: Unit) -> Iterator[dict[int, WindowResult]]:
    complete = False
    have = sink.open(unit)
    try:
        yield have
        complete = True
    finally:
        sink.close(unit, complete=complete)
