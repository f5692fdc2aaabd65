"""The stage after the narratives: what each of their sentences rests on, one result for a whole asset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from evicat.catalog.context import context_hash, weighed_in
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.sentences import sentences
from evicat.catalog.supports import Vectors, weigh
from evicat.catalog.turns import Stopwatch, turn
from evicat.catalog.units import entries_of, opened
from evicat.schemas.entry import Entry, Outcome, Support, WindowResult
from evicat.schemas.recipe import SupportOptions
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span


def support(job: Job, kit: Kit, sink: Sink) -> None:
    """Supports of all narratives of the asset, unless those that are there rest on the same entries."""
    unit, options = job.support, kit.recipe.supports
    if unit is None or options is None or (sink.is_complete(unit) and not sink.retry):
        return
    written = (entry for source in job.units for entry in entries_of(sink, source))
    read = weighed_in(job.timeline, written)
    with opened(sink, unit) as have:
        before = have.get(0)
        if before is None or before.context_hash != context_hash(read):
            sink.write(unit, _result(kit, job.timeline, read, options))


def _result(kit: Kit, timeline: Span, read: Sequence[Entry], options: SupportOptions) -> WindowResult:
    watch = Stopwatch()
    pairs = [
        (narrative, [each for each in read if _may_carry(each, narrative)])
        for narrative in read
        if narrative.kind == "narrative"
    ]
    vectors = _vectors(kit, pairs, watch)
    found: list[Support] = []
    for narrative, candidates in pairs:
        found += weigh(narrative, candidates, vectors, options)
    return WindowResult(
        span=timeline,
        outcome=Outcome.DONE if found else Outcome.EMPTY,
        supports=tuple(found),
        message="" if found else "no narratives",
        seconds=watch.seconds,
        context_hash=context_hash(read),
    )


def _may_carry(entry: Entry, narrative: Entry) -> bool:
    return entry.kind != "narrative" and bool(entry.span.overlap_us(narrative.span))


def _vectors(kit: Kit, pairs: Iterable[tuple[Entry, Sequence[Entry]]], watch: Stopwatch) -> Vectors:
    """Of every sentence and candidate: rows for the parts that could be embedded."""
    if kit.embedder is None:
        raise ValueError("the recipe has no embedder")
    texts: dict[str, None] = {}  # each once, in order
    for narrative, candidates in pairs:
        texts |= dict.fromkeys([*sentences(narrative.text), *(each.text for each in candidates)])
    with turn(kit, kit.embedder, watch) as embedder:
        parts = [(text, part) for text in texts for part in embedder.parts(text)]
        matrix = embedder.embed([part for _, part in parts]) if parts else np.empty((0, 0), np.float32)
    rows: dict[str, list[int]] = {text: [] for text in texts}
    for number, (text, _) in enumerate(parts):
        if not np.isnan(matrix[number, 0]):
            rows[text].append(number)
    return {text: matrix[own] for text, own in rows.items()}
