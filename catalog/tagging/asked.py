"""Tags that a model is asked for: a window for each question, committed every now and then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise

import polars as pl
import pyarrow as pa

from evicat.catalog.tagging.base import FOUND_SCHEMA, Found, Tagger
from evicat.catalog.tagging.done import Done, Tell
from evicat.catalog.tagging.read import context_of, read_entries
from evicat.catalog.tagging.rows import Ledger, coverage_table, tags_table
from evicat.catalog.tagging.vocabulary import Factor
from evicat.catalog.tagging.work import Source, Work, unit_of
from evicat.schemas.entry import TRUNCATED, Outcome
from evicat.schemas.errors import BusyError, RefusedError, WindowError
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.span import US, Span, to_us
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_equals
from evicat.storage.store import Store
from evicat.storage.tables import TAGS
from evicat.storage.tags import Tagged, write_tags

COMMIT_SECONDS = 20.0
"""So often what was answered is committed: a crash loses no more than that."""
TRIES = 5
"""So often a commit is tried where entries are written meanwhile."""


@dataclass(frozen=True)
class _Question:
    """Some entries of a source, and one factor."""

    source: Source
    factor: Factor
    producer: Producer
    unit: Unit
    span: Span
    entries: pl.DataFrame
    """Those of the factor's kinds."""
    context_hash: str


_Answer = tuple[_Question, Found | WindowError, float]
"""A question, what came of it, and how many seconds that took."""


def ask_all(store: Store, work: Work, done: Done, max_calls: int | None, tell: Tell) -> None:
    """Ask all that is left, as many questions at once as the model has slots; commit now and then.

    Raises:
        EngineDownError: nothing can be asked any more; what was answered is kept.
    """
    answers: list[_Answer] = []
    committed = time.perf_counter()
    questions = _limited(_questions(store.reader(), work), max_calls, done)
    with ThreadPoolExecutor(work.tagger.slots, thread_name_prefix="tagger") as threads:
        try:
            while group := list(islice(questions, work.tagger.slots)):
                for answer in threads.map(lambda question: _answer(work.tagger, question), group):
                    answers.append(answer)
                    tell(len(answer[0].entries))
                if time.perf_counter() - committed >= COMMIT_SECONDS:
                    _commit(store, work, answers, done)
                    answers, committed = [], time.perf_counter()
        finally:
            _commit(store, work, answers, done)


def _limited(questions: Iterable[_Question], max_calls: int | None, done: Done) -> Iterator[_Question]:
    for question in questions:
        if not question.entries.is_empty():
            if max_calls is not None and done.calls >= max_calls:
                done.stopped = f"{max_calls} calls were made"
                return
            done.calls += 1
        yield question


def _questions(reader: Reader, work: Work) -> Iterator[_Question]:
    """What is to be asked, without what has an answer that is not to be made again."""
    size = work.tagger.entries_at_once or 1
    for part in work.parts:
        for source in part.sources:
            entries = read_entries(reader, [source])
            for factor in part.factors:
                producer = work.tagger.producer(factor, source.producer_id)
                unit = unit_of(source, producer)
                have = _answered(reader, unit, work.retry)
                for span, own in _windows(entries, factor, source, size):
                    context = context_of(own)
                    if have.get(span.start_us) == (span.end_us, context):
                        continue
                    asked = own.filter(pl.col("kind").is_in(list(factor.kinds)))
                    yield _Question(source, factor, producer, unit, span, asked, context)


def _answered(reader: Reader, unit: Unit, retry: frozenset[str]) -> dict[int, tuple[int, str]]:
    """By start: end and context of the windows of a unit that stay as they are."""
    rows = reader.dataset("coverage").to_table(
        columns=["start_s", "end_s", "outcome", "error_class", "context_hash"],
        filter=sql_equals("unit_id", unit.unit_id),
    )
    return {
        to_us(row["start_s"]): (to_us(row["end_s"]), row["context_hash"])
        for row in rows.to_pylist()
        if row["outcome"] not in retry and not (row["error_class"] == TRUNCATED and "truncated" in retry)
    }


def _windows(
    entries: pl.DataFrame, factor: Factor, source: Source, size: int
) -> Iterator[tuple[Span, pl.DataFrame]]:
    """Windows that tile the timeline, each with the entries that begin in it: ``size`` of the factor's kinds.

    Those that begin together stay together.
    """
    starts = [to_us(start) for start in entries["start_s"].to_list()]
    is_own = entries["kind"].is_in(list(factor.kinds)).to_list()
    begins, count, before = [0], 0, -1
    for start, own in zip(starts, is_own, strict=True):
        if own and count >= size and start != before:
            begins.append(start)
            count = 0
        count += own
        before = start
    edges = [*begins, source.duration_us]
    for begin, end in pairwise(edges):
        yield Span(begin, end), _within(entries, Span(begin, end))


def _answer(tagger: Tagger, question: _Question) -> _Answer:
    watch = time.perf_counter()
    found: Found | WindowError
    try:
        if question.entries.is_empty():
            found = Found(FOUND_SCHEMA.to_frame(), attempts=0)
        else:
            found = tagger.tag(question.entries, [question.factor])
    except WindowError as error:
        found = error
    return question, found, time.perf_counter() - watch


def _commit(store: Store, work: Work, answers: Sequence[_Answer], done: Done) -> None:
    for attempt in range(TRIES):
        reader = store.reader()
        kept = _still_true(reader, answers)
        if not kept:
            return
        tagged, producers = _tagged(work, kept)
        try:
            write_tags(store, tagged, producers, read_at=reader.head.tables["entries"])
            break
        except BusyError:
            if attempt == TRIES - 1:
                raise
    done.units.update(unit.unit_id for unit, _ in tagged.units)
    for _, found, _ in kept:
        done.failed += isinstance(found, WindowError)
        done.prompt_tokens += found.prompt_tokens
        done.completion_tokens += found.completion_tokens
    done.count(tagged.tags)


def _still_true(reader: Reader, answers: Sequence[_Answer]) -> list[_Answer]:
    """Without answers about entries that have changed since; they are asked about in the next run."""
    sources = {question.source for question, *_ in answers}
    entries = {source: read_entries(reader, [source]) for source in sources}
    kept = []
    for answer in answers:
        question = answer[0]
        now = _within(entries[question.source], question.span)
        if context_of(now) == question.context_hash:
            kept.append(answer)
    return kept


def _within(entries: pl.DataFrame, span: Span) -> pl.DataFrame:
    starts = (entries["start_s"] * US).round().cast(pl.Int64)
    return entries.filter((starts >= span.start_us) & (starts < span.end_us))


def _tagged(work: Work, answers: Sequence[_Answer]) -> tuple[Tagged, list[Producer]]:
    tables = [TAGS.empty_table()]
    for question, found, _ in answers:
        if isinstance(found, Found):
            key = (question.source.asset_id, question.source.producer_id)
            tables.append(
                tags_table(
                    question.entries,
                    found.rows,
                    [question.factor],
                    work.vocabulary_of,
                    work.tagger,
                    {key: [question.unit.unit_id]},
                    question.span.start_us,
                )
            )
    units = {question.unit.unit_id: (question.unit, question.source.duration_us) for question, *_ in answers}
    producers = {question.producer.producer_id: question.producer for question, *_ in answers}
    ledger = [_told(question, found, seconds) for question, found, seconds in answers]
    tagged = Tagged(list(units.values()), coverage_table(ledger), pa.concat_tables(tables))
    return tagged, list(producers.values())


def _told(question: _Question, found: Found | WindowError, seconds: float) -> Ledger:
    same = (question.unit, question.span)
    costs = {name: getattr(found, name) for name in ("attempts", "prompt_tokens", "completion_tokens")}
    if isinstance(found, WindowError):
        outcome = Outcome.REFUSED if isinstance(found, RefusedError) else Outcome.FAILED
        return Ledger(
            *same,
            outcome,
            str(found),
            found.error_class,
            found.raw or None,
            seconds=seconds,
            context_hash=question.context_hash,
            **costs,
        )
    is_empty = found.rows.is_empty()
    return Ledger(
        *same,
        Outcome.EMPTY if is_empty else Outcome.DONE,
        "no entry carries it" if is_empty else "",
        seconds=seconds,
        context_hash=question.context_hash,
        **costs,
    )
