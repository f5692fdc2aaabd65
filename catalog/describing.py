"""One window, described: what it may know, the call, and what became of it."""

from __future__ import annotations

import re
import time
from typing import Any

from evicat.catalog.context import context_hash, past_texts, shown_in
from evicat.catalog.describers.base import Describer, Past, WindowInput
from evicat.catalog.entries import described
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.media.frame import Frame
from evicat.schemas.entry import Entry, Outcome, WindowResult
from evicat.schemas.errors import AssetError, RefusedError, WindowError
from evicat.schemas.identity import Unit
from evicat.schemas.records import NarrativeRecord, SpeechSegment
from evicat.schemas.span import Span

COST = ("attempts", "prompt_tokens", "completion_tokens")
RAW_CHARACTERS = 100_000
"""Of an answer that is no entry; more than the longest that any describer asks for."""
NOT_STORED = re.compile("[\x00\ud800-\udfff]")


def window_input(
    span: Span,
    describer: Describer[Any],
    entries: list[Entry],
    frames: tuple[Frame, ...] = (),
    past: Past | None = None,
) -> WindowInput:
    """What ``describer`` may know of a window, out of all ``entries`` of its asset in order of time."""
    shown = shown_in(span, entries, describer.reads)
    speech = (SpeechSegment.model_validate_json(each.record) for each in shown if each.kind == "speech")
    return WindowInput(span, frames=frames, speech=tuple(speech), entries=tuple(shown), past=past)


def hash_of(window: WindowInput) -> str:
    """Hash of what the window reads beside its pixels."""
    past = window.past
    return context_hash(window.entries, past_texts(past.narrative, past.cast) if past else ())


def past_of(result: WindowResult) -> Past | None:
    """What later windows know of a narrative; None where the window has none."""
    for entry in result.entries:
        record = NarrativeRecord.model_validate_json(entry.record)
        return Past(entry.span, record.narrative, record.cast)
    return None


def describe(job: Job, kit: Kit, describer: Describer[Any], unit: Unit, window: WindowInput) -> WindowResult:
    """Call the describer, unless there is nothing to show it. Errors of the window are its outcome."""
    started = time.perf_counter()
    facts: dict[str, Any] = {"context_hash": hash_of(window)}
    if "frames" in describer.reads and not window.frames:
        return WindowResult(span=window.span, outcome=Outcome.NO_FRAMES, **facts)
    kit.admit()
    try:
        made = describer.describe(window)
    except WindowError as error:
        return failed(window.span, error).model_copy(
            update=facts | {"seconds": time.perf_counter() - started}
        )
    frames = window.frames if made.shown is None else made.shown
    facts |= {name: getattr(made, name) for name in ("message", "further_calls", *COST)}
    facts["seconds"] = time.perf_counter() - started
    if made.record is None:
        return WindowResult(span=window.span, outcome=Outcome.EMPTY, **facts)
    outcome = Outcome.PARTIAL if made.is_partial else Outcome.DONE
    entry = described(unit, job.asset, window.span, frames, made)
    return WindowResult(span=window.span, outcome=outcome, entries=(entry,), **facts)


def failed(span: Span, error: AssetError | WindowError) -> WindowResult:
    """The outcome of a window that has no answer."""
    cost: dict[str, Any] = {}
    if isinstance(error, WindowError):
        cost = {name: getattr(error, name) for name in COST} | {"raw": _kept(error.raw)}
    return WindowResult(
        span=span,
        outcome=Outcome.REFUSED if isinstance(error, RefusedError) else Outcome.FAILED,
        error_class=error.error_class,
        message=_kept(str(error)),
        **cost,
    )


def _kept(said: str) -> str:
    """What the ledger holds of the words of a model or a server: no lone surrogates, and no flood whole."""
    kept = NOT_STORED.sub("\ufffd", said[:RAW_CHARACTERS])
    return kept if len(said) <= RAW_CHARACTERS else f"{kept} ... ({len(said)} characters in all)"
