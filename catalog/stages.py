"""The stages of one asset. Each makes only what the sink does not hold yet, and hands it over at once.

A window that fails is an outcome, and the stage goes on. A file that fails (``AssetError``) gives every
window that is left the outcome ``failed``. Any other error is a fault of ours: it is raised, and what was
handed over before it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from evicat.catalog.context import context_hash, embedded_in
from evicat.catalog.describing import describe, failed, hash_of, window_input
from evicat.catalog.entries import spoken
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.media.audio import read_audio_isolated
from evicat.catalog.media.subtitles import SubtitleTrack, TrackText, read_track_isolated
from evicat.catalog.sound import listened_to
from evicat.catalog.transcribers.clean import Cleaned, transcribe_pieces
from evicat.catalog.turns import Stopwatch, turn
from evicat.catalog.units import entries_of, opened
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.errors import AssetError
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
    with opened(sink, unit) as have:
        done_until_us = max((result.span.end_us for result in have.values()), default=0)
        try:
            for result in _speech_results(job, kit, unit, set(have)):
                sink.write(unit, result)
                done_until_us = max(done_until_us, result.span.end_us)
            rest = WindowResult(span=_rest(job, done_until_us), outcome=Outcome.EMPTY, message="no sound")
        except AssetError as error:
            rest = failed(_rest(job, done_until_us), error)
        if done_until_us < job.asset.duration_us:
            sink.write(unit, rest)


def _speech_results(job: Job, kit: Kit, unit: Unit, have: set[int]) -> Iterator[WindowResult]:
    if job.track:
        watch = Stopwatch()
        cues = _cues(job, kit, job.track)
        if cues.segments or kit.transcriber is None:
            yield _speech_result(unit, job.timeline, cues.segments, watch, _cue_notes(cues))
            return
    speech = kit.recipe.speech
    if kit.transcriber is None or speech is None:
        return
    if "unreadable_audio" in job.asset.flags:
        raise AssetError(f"{job.path}: its sound cannot be decoded")
    if job.asset.audio is None:
        return
    timeout_s = kit.profile.decode_timeout_seconds
    asset = listened_to(kit.workers, job.path, job.asset, speech, timeout_s=timeout_s)
    stream_index = asset.audio.stream_index if asset.audio else None
    sound = read_audio_isolated(kit.workers, job.path, asset, timeout_s=timeout_s)
    pieces = ((piece.start_us, piece.samples) for piece in sound)
    watch = Stopwatch()

    @contextmanager
    def admitted() -> Iterator[None]:
        kit.admit()
        with turn(kit, kit.transcriber, watch):
            yield

    for span, heard in transcribe_pieces(
        kit.transcriber,
        pieces,
        language=job.language,
        stream_index=stream_index,
        skip_starts=have,
        turn=admitted,
    ):
        yield _speech_result(unit, span, heard.segments, watch, _heard_notes(heard))
        watch = Stopwatch()


def _cues(job: Job, kit: Kit, track: SubtitleTrack) -> TrackText:
    timeout_s, offset_us = kit.profile.decode_timeout_seconds, job.subtitle_offset_us
    return read_track_isolated(
        kit.workers, job.path, job.asset, track, offset_us=offset_us, timeout_s=timeout_s
    )


def _cue_notes(cues: TrackText) -> list[str]:
    notes = [] if cues.encoding.startswith("utf") else [f"read as {cues.encoding}"]
    if cues.folded:
        notes.append(f"rolling captions: {cues.folded} repeated words folded")
    return notes + _left_out(cues.rejected)


def _heard_notes(heard: Cleaned) -> list[str]:
    withheld = ", ".join(f"{flag} ({count} times)" for flag, count in sorted(heard.withheld.items()))
    rejected = [f"{why} ({count} times)" for why, count in heard.rejected.items()]
    return [*([f"withheld: {withheld}"] if withheld else []), *_left_out(rejected)]


def _left_out(rejected: list[str]) -> list[str]:
    more = [f"and {len(rejected) - MESSAGES} more"] if len(rejected) > MESSAGES else []
    return [f"left out: {'; '.join([*rejected[:MESSAGES], *more])}"] if rejected else []


def _speech_result(
    unit: Unit, span: Span, segments: list[SpeechSegment], watch: Stopwatch, notes: list[str]
) -> WindowResult:
    message = "; ".join(notes) or ("" if segments else "no speech")
    return WindowResult(
        span=span,
        outcome=Outcome.DONE if segments else Outcome.EMPTY,
        entries=spoken(unit, segments),
        message=message,
        seconds=watch.seconds,
    )


def narrate(job: Job, kit: Kit, sink: Sink) -> None:
    """Narratives that read no frames, in order of time, from the entries of speech and local scales.

    Where stale windows are retried, so is one that this run has made stale.
    """
    again = "stale" in sink.retry
    for scale, unit in job.narrative.items():
        describer = kit.describers[scale]
        if "frames" in describer.reads or (sink.is_complete(unit) and not again):
            continue
        sources = [*job.local.values(), *([job.speech] if job.speech else [])]
        entries = sorted(
            (entry for source in sources for entry in entries_of(sink, source)),
            key=lambda e: (e.span, e.entry_id),
        )
        with opened(sink, unit) as have:
            for run in chunks(job.grid(kit, scale)):
                for span in run:
                    before = have.get(span.start_us)
                    if before and not again:
                        continue
                    window = window_input(span, describer, entries)
                    if before is None or before.context_hash != hash_of(window):
                        with kit.using(describer):
                            sink.write(unit, describe(job, kit, describer, unit, window))
                sink.seal(unit)


def embed(job: Job, kit: Kit, sink: Sink) -> None:
    """Vectors of every entry, one result per chunk of the unit that wrote the entries."""
    for source in job.units:
        unit = job.embedding(kit, source)
        if unit is None or (sink.is_complete(unit) and not sink.retry):
            continue
        entries = entries_of(sink, source)
        with opened(sink, unit) as have:
            for span in windows(job.asset.duration_us, CHUNK_US):
                texts, before = embedded_in(span, entries), have.get(span.start_us)
                if before is None or before.context_hash != context_hash(texts):
                    sink.write(unit, _vectors(kit, span, texts))
                    sink.seal(unit)


def _vectors(kit: Kit, span: Span, entries: list[Entry]) -> WindowResult:
    watch = Stopwatch()
    if kit.embedder is None:
        raise ValueError("the recipe has no embedder")
    with turn(kit, kit.embedder, watch) as embedder:
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
        seconds=watch.seconds,
        context_hash=context_hash(entries),
    )


def _rest(job: Job, from_us: int) -> Span:
    return Span(min(from_us, job.asset.duration_us - 1), job.asset.duration_us)
