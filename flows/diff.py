"""``evicat diff``: which two things are meant, and how what differs between them is printed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evicat.catalog.diff import Diff, Pair, Side, ViewDiff, diff, diff_views
from evicat.catalog.query import Catalog
from evicat.catalog.recipes import load_profile
from evicat.catalog.words import OverWord
from evicat.schemas.errors import UsageError
from evicat.schemas.span import Span
from evicat.storage.head import earlier_heads
from evicat.storage.layout import Layout
from evicat.storage.snapshots import has_snapshot

TEXT_SHOWN = 500
"""Characters of a text that are printed; ``--json`` has all."""


def compare(
    uri: str, a: str, b: str | None, *, video: str | None, limit: int, profile: str | None
) -> Diff | ViewDiff:
    """Compare two producers, or two snapshots or heads; ``b`` left out: with the catalog as it is now.

    Raises:
        UsageError: one is a producer and the other is not, or a name means nothing.
    """
    options = load_profile(profile)
    names = (a,) if b is None else (a, b)
    states = [name for name in names if _is_state(uri, name)]
    if states and len(states) < len(names):
        other = next(name for name in names if name not in states)
        raise UsageError(
            f"{states[0]} is a snapshot or the number of a head, {other} is not; compare two of a sort "
            "(of a producer, write more digits of its id)"
        )
    if states:
        then, now = (Catalog.open(uri, options, at=at) for at in (a, b))
        return diff_views(then, now, video=video, limit=limit)
    if b is None:
        raise UsageError(f"{a} is neither a snapshot nor the number of a head; name two producers")
    catalog = Catalog.open(uri, options)
    return diff(catalog, catalog, a, b, video=video, limit=limit)


def _is_state(uri: str, name: str) -> bool:
    layout = Layout.of(uri)
    if name.isdecimal():
        return int(name) in {head.number for head in earlier_heads(layout)}
    return has_snapshot(layout, name)


def print_diff(console: Console, found: Diff | ViewDiff) -> None:
    if isinstance(found, Diff):
        _print_part(console, found)
        return
    for number, part in enumerate(found.parts):
        if number:
            console.print()
        _print_part(console, part)
    for name, scales in (("A", found.only_a), ("B", found.only_b)):
        if scales:
            console.print(f"Shown only in {name}: {', '.join(scales)}.")
    if not (found.parts or found.only_a or found.only_b):
        console.print("Neither shows any entries.")


def _print_part(console: Console, part: Diff) -> None:
    console.print(f"[bold]A[/] {_title(part.a)}   [bold]B[/] {_title(part.b)}", soft_wrap=True)
    only = [f"{part.videos_only_a} only in A"] * bool(part.videos_only_a)
    only += [f"{part.videos_only_b} only in B"] * bool(part.videos_only_b)
    left_out = f" (left out: {', '.join(only)})" if only else ""
    console.print(f"{part.videos} videos in both{left_out}. {_ALIGNED[part.aligned]}")
    if not part.videos:
        console.print("There is nothing to compare.")
        return
    if not (part.changed or part.only_a or part.only_b):
        console.print(f"No difference: {part.same} windows say the same.")
        return
    one_sided = f"{part.only_a} only in A, {part.only_b} only in B"
    console.print(f"Windows: {part.changed} changed, {part.same} same, {one_sided}.")
    console.print(_agreement(part), highlight=False)
    console.print()
    console.print(_lengths(part))
    if part.vocabulary.more_in_a or part.vocabulary.more_in_b:
        console.print()
        console.print(_words(part))
        console.print("z: log-odds over their deviation; within 1.96 it may be chance.", style="dim")
    if part.most_different:
        console.print()
        console.print(_pairs(part.most_different))


_ALIGNED = {
    "span": "Windows of equal spans are compared.",
    "overlap": "Spans differ: each is compared with the shorter ones that overlap it most.",
}


def _title(side: Side) -> str:
    return escape(f"{side.component} v{side.version} {side.producer_id[:8]} ({side.scale})")


def _agreement(part: Diff) -> str:
    found = part.agreement
    if found.mean is None:
        return f"Similarity: {escape(found.how)}"
    changed = "" if found.mean_of_changed is None else f", of changed ones {found.mean_of_changed:.3f}"
    return (
        f"Similarity (cosine of {found.compared} windows, {escape(found.how)}): mean {found.mean:.3f}, "
        f"median {found.median:.3f}, lowest {found.lowest:.3f}{changed}."
    )


def _lengths(part: Diff) -> Table:
    table = _table("", "A", "B", right=(1, 2))
    table.add_row("windows with text", str(part.a.windows), str(part.b.windows))
    table.add_row("words a window, mean", *(_rounded(side.words_mean) for side in (part.a, part.b)))
    table.add_row("words a window, median", *(_rounded(side.words_median) for side in (part.a, part.b)))
    words = part.vocabulary
    table.add_row("different words", str(words.size_a), str(words.size_b))
    jaccard = "" if words.jaccard is None else f"Jaccard {words.jaccard:.2f}"
    table.add_row("words in common", str(words.common), jaccard)
    return table


def _words(part: Diff) -> Table:
    table = _table("more in A", "A : B", "z", "  more in B", "A : B", "z", right=(2, 5))
    ours, theirs = part.vocabulary.more_in_a, part.vocabulary.more_in_b
    for row in range(max(len(ours), len(theirs))):
        table.add_row(*_word(ours, row, ""), *_word(theirs, row, "  "))
    return table


def _word(words: Sequence[OverWord], row: int, indent: str) -> tuple[str, str, str]:
    if row >= len(words):
        return "", "", ""
    word = words[row]
    return escape(f"{indent}{word.word}"), f"{word.a} : {word.b}", f"{word.z:+.2f}"


def _pairs(pairs: Sequence[Pair]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", show_lines=True, expand=True)
    table.add_column("most different", ratio=2, overflow="fold")
    table.add_column("A", ratio=5, overflow="fold")
    table.add_column("B", ratio=5, overflow="fold")
    for number, pair in enumerate(pairs):
        if number:
            table.add_row("", "", "")
        span = str(Span.from_seconds(round(pair.start_s, 3), round(pair.end_s, 3))).replace("-", "-\n")
        alike = "" if pair.similarity is None else f"\ncosine {pair.similarity:.3f}"
        if pair.shared_words is not None:
            alike += f"\nwords {pair.shared_words:.2f}"
        table.add_row(f"{escape(pair.video)}\n{span}{alike}", _shown(pair.text_a), _shown(pair.text_b))
    return table


def _shown(text: str | None) -> str:
    if text is None:
        return "[dim]nothing[/]"
    return escape(text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1].rstrip() + "\u2026")


def _table(*columns: str, right: tuple[int, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left")
    return table


def _rounded(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"
