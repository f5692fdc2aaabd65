"""What the command line prints about tags: tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.catalog.tagging.calibrate import Measured
from evicat.catalog.tagging.done import Done
from evicat.catalog.tagging.vocabulary import Vocabulary
from evicat.catalog.tagging.work import Work


def facts(work: Work, done: Done | None) -> dict[str, Any]:
    """For scripts: what there was to do, and what was done of it."""
    told: dict[str, Any] = {
        "tagger": work.tagger.component,
        "vocabularies": {each.vocabulary: each.version for each in work.vocabularies},
        "factors": [
            {"factor": factor.id, "producer": work.tagger.producer(factor).producer_id}
            for factor in work.factors
        ],
        "units": work.units,
        "complete": work.complete,
        "waiting": work.waiting,
        "entries": work.entries,
        "calls": work.calls,
    }
    if done is None:
        return told
    names = ("tags", "abstained", "failed", "calls", "prompt_tokens", "completion_tokens")
    made = {name: getattr(done, name) for name in names}
    made |= {"units": len(done.units), "entries_changed": done.entries_changed, "stopped": done.stopped}
    return told | {"done": made | {"seconds": round(done.seconds, 3)}}


def plan(console: Console, work: Work) -> None:
    """What is left to tag."""
    console.print(_headline(work), soft_wrap=True, highlight=False)
    if work.units:
        calls = f", at most {work.calls:,} calls" if work.calls else ", no calls of models"
        console.print(
            f"To do: {work.units:,} units, {work.entries:,} entries{calls}. Nothing was made.",
            soft_wrap=True,
            highlight=False,
        )
    _waiting(console, work)


def done(console: Console, work: Work, made: Done) -> None:
    """What was tagged."""
    console.print(_headline(work), soft_wrap=True, highlight=False)
    spent = (
        f", {made.calls:,} calls, {made.prompt_tokens + made.completion_tokens:,} tokens"
        if made.calls
        else ""
    )
    console.print(
        f"{len(made.units):,} units: {made.tags:,} tags, {made.abstained:,} left open{spent}; "
        f"{made.entries_changed:,} entries have other factors now ({made.seconds:.1f} s).",
        soft_wrap=True,
        highlight=False,
    )
    if made.failed:
        console.print(
            f"[red]{made.failed:,} questions have no answer[/]; evicat status tells why, and --retry failed "
            "asks them again.",
            soft_wrap=True,
        )
    if made.stopped:
        console.print(f"[yellow]Stopped: {escape(made.stopped)}; run it again to go on.[/]", soft_wrap=True)
    _waiting(console, work)


def _headline(work: Work) -> str:
    names = ", ".join(f"{each.vocabulary} {each.version}" for each in work.vocabularies)
    return (
        f"{escape(names)} by {work.tagger.component}: {len(work.factors)} factors, "
        f"{work.complete:,} units are tagged."
    )


def _waiting(console: Console, work: Work) -> None:
    if work.waiting:
        console.print(
            f"[yellow]{work.waiting:,} units of entries have no vectors yet[/]: index them with an embedder "
            "first.",
            soft_wrap=True,
        )


def vocabularies(console: Console, found: Sequence[Vocabulary]) -> None:
    """One line for each, with its factors."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("vocabulary", "version", "entries", "factors"):
        table.add_column(column, overflow="fold", no_wrap=column in ("vocabulary", "version"))
    for each in found:
        ids = ", ".join(factor.id.partition(":")[2] for factor in each.factors)
        table.add_row(each.vocabulary, str(each.version), ", ".join(each.kinds), ids)
    console.print(table)


def measured(console: Console, rows: Sequence[Measured], what: str) -> None:
    """Precision and recall of each factor and of all, with 95 % intervals."""
    table = Table(box=None, pad_edge=False, header_style="bold", title=None)
    for column in (what, "labels", "yes", "open", "precision", "recall", "threshold"):
        table.add_column(column, justify="right" if column in ("labels", "yes", "open") else "left")
    for row in rows:
        threshold = "" if row.threshold is None else f"threshold = {row.threshold:g}"
        counts = [str(each) for each in (row.labels, row.positive, row.abstained)]
        name = row.factor or "all"
        table.add_row(escape(name), *counts, str(row.precision), str(row.recall), threshold)
    console.print(table)
    if any(row.threshold is not None for row in rows):
        console.print("A line of the last column goes below its factor in the vocabulary's file.")


def measured_facts(row: Measured, what: str) -> dict[str, Any]:
    """For scripts."""
    told: dict[str, Any] = {"measured": what, "factor": row.factor or None, "labels": row.labels}
    told |= {"positive": row.positive, "abstained": row.abstained, "threshold": row.threshold}
    for name, share in (("precision", row.precision), ("recall", row.recall)):
        told[name] = {"hits": share.hits, "of": share.of, "interval": list(share.interval)}
    return told
