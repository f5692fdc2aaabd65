"""Tagging: entries in portions, tags and ledger of each in one commit, the entries' factors at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence

from evicat.catalog.tagging.asked import ask_all
from evicat.catalog.tagging.done import Done, Tell
from evicat.catalog.tagging.read import contexts, read_entries
from evicat.catalog.tagging.rows import Ledger, coverage_table, tags_table
from evicat.catalog.tagging.vocabulary import Factor, Vocabulary
from evicat.catalog.tagging.work import Source, Work, batches, find_work, unit_of
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import BusyError
from evicat.schemas.identity import Producer
from evicat.schemas.span import Span
from evicat.storage.reader import Reader
from evicat.storage.store import Store
from evicat.storage.tables import TAG
from evicat.storage.tags import Registered, Tagged, finish_tagging, tagging, write_tags

PORTION = 100_000
"""Entries whose tags are committed together, about."""
PAIRS = 20_000_000
"""Pairs of entries and factors in a portion, at most: what bounds its memory."""
TRIES = 5
"""So often a portion is made anew where entries were written meanwhile."""


def registered(vocabulary: Vocabulary) -> Registered:
    """A vocabulary as the catalog keeps it."""
    return Registered(vocabulary.vocabulary, vocabulary.version, vocabulary.digest, vocabulary.facts)


def run(store: Store, work: Work, *, max_calls: int | None = None, tell: Tell = lambda _: None) -> Done:
    """Do the work, then show the taggers of factors that are done with, and let the entries follow.

    Args:
        max_calls: Questions to a model at most; then the run ends, and the next one goes on.
        tell: Is told how many entries were looked at since it was told last, counted once for each factor.

    Raises:
        BusyError: another process tags this catalog, or entries are written all the time.
        EngineDownError, UsageError: nothing can be tagged any more; what was made is kept.
    """
    started, done = time.perf_counter(), Done()
    with tagging(store):
        try:
            if work.tagger.entries_at_once is None:
                _tag_portions(store, work, done, tell)
            else:
                ask_all(store, work, done, max_calls, tell)
        finally:
            done.entries_changed = finish_tagging(
                store,
                _shown_from_now(store, work),
                [registered(vocabulary) for vocabulary in work.vocabularies],
                {factor.id for factor in work.factors},
            )
    done.seconds = time.perf_counter() - started
    return done


def _shown_from_now(store: Store, work: Work) -> list[Producer]:
    """The tagger of each factor that is done with; of one that is not, where no other is shown.

    What stopped half-way must not take the place of what is whole.
    """
    wanted = [factor.id for factor in work.factors]
    left = find_work(store.reader(), work.tagger, work.vocabularies, wanted)
    unfinished = {factor.id for part in left.parts for factor in part.factors}
    shown = store.reader().view()
    return [
        work.tagger.producer(factor)
        for factor in work.factors
        if factor.id not in unfinished or (TAG, factor.id) not in shown
    ]


# Taggers that take any number of entries at once


def _tag_portions(store: Store, work: Work, done: Done, tell: Tell) -> None:
    for part in work.parts:
        most = max(1, min(PORTION, PAIRS // len(part.factors)))
        for sources in batches(part.sources, most):
            tagged = _committed(store, work, part.factors, sources)
            done.units.update(unit.unit_id for unit, _ in tagged.units)
            done.count(tagged.tags)
            tell(sum(source.entries for source in sources) * len(part.factors))


def _committed(store: Store, work: Work, factors: tuple[Factor, ...], sources: tuple[Source, ...]) -> Tagged:
    """Tags of some sources, made of entries that nobody has changed when they are committed."""
    for attempt in range(TRIES):
        reader = store.reader()
        tagged, producers = tag_sources(reader, work, factors, sources)
        try:
            write_tags(store, tagged, producers, read_at=reader.head.tables["entries"])
        except BusyError:
            if attempt == TRIES - 1:
                raise
            continue
        return tagged
    raise AssertionError("unreachable")


def tag_sources(
    reader: Reader, work: Work, factors: Sequence[Factor], sources: Sequence[Source]
) -> tuple[Tagged, list[Producer]]:
    """Tags and ledger of these sources, as they are to be committed; and the producers of them."""
    watch = time.perf_counter()
    tagger = work.tagger
    reads = sorted({source.producer_id for source in sources})
    producers = {read: [tagger.producer(factor, read) for factor in factors] for read in reads}
    entries = read_entries(reader, sources)
    found = tagger.tag(entries, factors)
    pairs = [(source, number) for source in sources for number in range(len(factors))]
    units = [unit_of(source, producers[source.producer_id][number]) for source, number in pairs]
    seconds = (time.perf_counter() - watch) / max(1, len(units))
    read = contexts(entries, sources)
    tags = tags_table(
        entries, found.rows, factors, work.vocabulary_of, tagger,
        {(s.asset_id, s.producer_id): [u.unit_id for u in units[at : at + len(factors)]]
         for s, at in zip(sources, range(0, len(units), len(factors)), strict=True)},
    )  # fmt: skip
    written = set(tags["tag_unit_id"].to_pylist()) if tags.num_rows else set()
    ledger = [
        Ledger(
            unit=unit,
            span=Span(0, source.duration_us),
            outcome=Outcome.DONE if unit.unit_id in written else Outcome.EMPTY,
            message="" if unit.unit_id in written else "no entry carries it",
            seconds=seconds,
            context_hash=read[source.asset_id, source.producer_id],
        )
        for unit, (source, _) in zip(units, pairs, strict=True)
    ]
    ends = [(unit, source.duration_us) for unit, (source, _) in zip(units, pairs, strict=True)]
    return Tagged(ends, coverage_table(ledger), tags), [each for own in producers.values() for each in own]
