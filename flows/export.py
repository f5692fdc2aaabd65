"""Exports from the command line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from evicat.catalog.exports.export import export
from evicat.catalog.exports.rows import Choice
from evicat.catalog.exports.splits import parse_shares
from evicat.catalog.query import Catalog
from evicat.schemas.span import Span

MOST_PROBLEMS = 10


def run_export(
    catalog: Catalog,
    destination: str,
    form: str,
    *,
    videos: Sequence[str],
    kinds: Sequence[str],
    between: Span | None,
    producer: str | None,
    splits: str | None,
    seed: int,
    vectors: bool,
    flagged: bool,
    partial: bool,
    factors: str | None,
    per_factor: int | None,
    media_roots: Sequence[str],
) -> bool:
    """Export and say what was written; whether all pictures that were wanted could be had."""
    choice = Choice(
        video=list(videos) or None,
        kind=list(kinds) or None,
        between=between,
        producer=producer,
        flagged=flagged,
        partial=partial,
        shares=parse_shares(splits) if splits else {},
        seed=seed,
        factors=factors,
        per_factor=per_factor,
    )
    done = export(catalog, destination, form, choice, vectors=vectors, media_roots=media_roots)
    console = Console(emoji=False)
    console.print(escape(done.headline()), soft_wrap=True)
    for problem in done.problems[:MOST_PROBLEMS]:
        console.print(f"[red]failed[/] {escape(problem)}", soft_wrap=True)
    if len(done.problems) > MOST_PROBLEMS:
        console.print(f"and {len(done.problems) - MOST_PROBLEMS} more")
    return not done.problems
