"""Labels in the terminal, and how right taggers are by them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TextIO

import polars as pl
from rich.console import Console
from rich.markup import escape

from evicat.catalog.recipes import load_profile
from evicat.catalog.tagging.calibrate import Measured, calibrate, card
from evicat.catalog.tagging.embedding import EmbeddingTagger
from evicat.catalog.tagging.labels import Label, append_label, labelled, read_labels
from evicat.catalog.tagging.loaders import embedding_tagger, tagger
from evicat.catalog.tagging.read import read_entries
from evicat.catalog.tagging.vocabulary import Factor, load_vocabulary
from evicat.catalog.tagging.work import batches, chosen_factors, sources
from evicat.flows import tables_tags
from evicat.flows.tag import Order
from evicat.schemas.errors import UsageError
from evicat.schemas.places import expanded
from evicat.schemas.span import format_time, to_us
from evicat.storage.reader import Reader

ASKED = 200
"""Entries of each factor that are asked about at most in one sitting."""
PORTION = 20_000
_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "s": None, "skip": None}
_ENDS = ("q", "quit")


def ask(
    console: Console,
    catalog: str,
    vocabulary: str,
    labels: str | None,
    factor_ids: Sequence[str],
    profile: str | None,
    source: TextIO | None = None,
) -> None:
    """Ask about the entries that are most uncertain, and write each answer down at once.

    The entries are those whose likeness to a factor is nearest to its threshold, the factors by turns.
    Nothing is asked that stands in the file already. It ends with ``q`` or the end of the input.

    Raises:
        UsageError: the vocabulary, the file or the catalog does not fit.
    """
    words = load_vocabulary(vocabulary)
    factors = words.chosen(factor_ids)
    file = expanded(labels or f"{words.vocabulary}.labels.jsonl")
    known = read_labels(file, may_be_new=True)
    reader = Reader.open(catalog)
    made = embedding_tagger(lambda: reader, load_profile(profile), {})
    stream, given = source or sys.stdin, 0
    for factor, row in _most_uncertain(reader, made, factors, set(known)):
        answer = _answer(console, stream, factor, row)
        if answer is None:
            break
        label = Label(entry_id=row["entry_id"], factor=factor.id, label=_ANSWERS[answer])
        append_label(file, label, text=row["text"], start_s=row["start_s"])
        given += 1
    console.print(f"{given} more labels in {escape(str(file))}.", soft_wrap=True, highlight=False)


def _answer(console: Console, stream: TextIO, factor: Factor, row: dict[str, Any]) -> str | None:
    """What somebody says of an entry; None: no more."""
    where = f"{format_time(to_us(row['start_s']))} {row['kind']}, likeness {row['likeness']:.2f}"
    console.print(f"\n[bold]{escape(factor.id)}[/]: {escape(factor.descriptor)}", soft_wrap=True)
    console.print(f"[dim]{where}[/]\n{escape(row['text'])}", soft_wrap=True, highlight=False)
    while True:
        console.print("Does the entry say so? y, n, s to skip, q to end: ", end="", highlight=False)
        line = stream.readline()
        said = line.strip().lower()
        if not line or said in _ENDS:
            console.print()
            return None
        if said in _ANSWERS:
            return said


def _most_uncertain(
    reader: Reader, made: EmbeddingTagger, factors: Sequence[Factor], known: set[tuple[str, str]]
) -> Iterator[tuple[Factor, dict[str, Any]]]:
    """Entries nearest to the threshold of a factor, nearest first, the factors by turns."""
    by_factor = {factor.id: _nearest(reader, made, factor, known) for factor in factors}
    for turn in range(ASKED):
        for factor in factors:
            if turn < len(by_factor[factor.id]):
                yield factor, by_factor[factor.id].row(turn, named=True)


def _nearest(
    reader: Reader, made: EmbeddingTagger, factor: Factor, known: set[tuple[str, str]]
) -> pl.DataFrame:
    """Entries of its kinds by the distance of their likeness from the threshold, with ``likeness``."""
    found = []
    for portion in batches(sources(reader, made)[0], PORTION):
        entries = read_entries(reader, portion)
        entries = entries.filter(pl.col("kind").is_in(list(factor.kinds)))
        if entries.is_empty():
            continue
        likeness = pl.Series("likeness", made.likeness(entries, [factor])[:, 0], pl.Float64)
        away = (pl.col("likeness") - made.threshold(factor)).abs()
        rows = entries.with_columns(likeness).filter(pl.col("likeness").is_not_nan())
        rows = rows.filter(~pl.col("entry_id").is_in([entry for entry, name in known if name == factor.id]))
        found.append(rows.with_columns(away.alias("away")).sort("away", "entry_id").head(ASKED))
    return pl.concat(found).sort("away", "entry_id").head(ASKED) if found else pl.DataFrame()


def measure(
    console: Console, order: Order, calibration: str | None, by: str | None, *, as_json: bool
) -> Order:
    """Print how right the tagger is by labels; calibrated, the order gets the thresholds that were found.

    Raises:
        UsageError: labels do not fit the catalog or the vocabularies, or are of one class.
    """
    if calibration is not None and order.tagger != "embedding":
        raise UsageError(f"--calibrate finds thresholds for --tagger embedding, got --tagger {order.tagger}")
    reader = Reader.open(order.catalog)
    factors = [factor for factor, _ in chosen_factors(order.vocabularies, order.factors)]
    with tagger(order.tagger, lambda: reader, load_profile(order.profile), order.options) as made:
        if calibration is not None:
            assert isinstance(made, EmbeddingTagger)
            rows = calibrate(made, labelled(reader, read_labels(calibration), factors))
            found = {row.factor: row.threshold for row in rows if row.threshold is not None}
            order = replace(order, thresholds=found)
            _tell(console, rows, as_json=as_json, what="held out")
    if by is not None:
        with tagger(order.tagger, lambda: reader, load_profile(order.profile), order.options) as made:
            rows = card(made, labelled(reader, read_labels(by), factors))
        _tell(console, rows, as_json=as_json, what=order.tagger)
    return order


def _tell(console: Console, rows: Sequence[Measured], *, as_json: bool, what: str) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(tables_tags.measured_facts(row, what), ensure_ascii=False))
    else:
        tables_tags.measured(console, rows, what)
