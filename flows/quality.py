"""``evicat quality``: the score card of every producer, and a gate for scheduled runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl
from rich.console import Console
from rich.markup import escape

from evicat.catalog.kit import Kit
from evicat.catalog.measures.again import Again, described_again, described_blank
from evicat.catalog.measures.clock import Clock, clock_check
from evicat.catalog.measures.gold import read_gold
from evicat.catalog.measures.motion import against_motion
from evicat.catalog.measures.sample import draw, parse_share
from evicat.catalog.quality import Bound, quality
from evicat.catalog.query import Catalog
from evicat.catalog.recipes import load_profile, load_recipe
from evicat.flows import tables_quality
from evicat.schemas.errors import RecipeError, UnknownNameError, UsageError

DEFAULT = "default"
SHARE = 0.01
"""Of the windows, that is described from blank frames where no share is named."""


@dataclass(frozen=True)
class Wanted:
    """What to look at beside the catalog itself.

    Raises:
        UsageError: options that do not go together.
    """

    redescribe: str | None = None
    blank: bool = False
    recipe: str = DEFAULT
    profile: str | None = None
    max_calls: int | None = None
    motion: bool = False
    gold: str | None = None
    media_roots: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.max_calls is not None and not self.asks_model:
            raise UsageError("--max-calls bounds --redescribe and --blank: give one of them too")
        if self.recipe != DEFAULT and not self.asks_model:
            raise UsageError("--recipe says who describes again: give --redescribe or --blank too")
        if self.media_roots and not (self.asks_model or self.motion):
            raise UsageError(
                "--media-root says where videos are read from: give --redescribe, --blank or --motion too"
            )
        if self.max_calls is not None and self.max_calls < self.runs:
            raise UsageError(
                f"--redescribe with --blank makes 2 calls a window: --max-calls {self.max_calls}"
            )

    @property
    def asks_model(self) -> bool:
        return self.redescribe is not None or self.blank

    @property
    def runs(self) -> int:
        """Calls for each window."""
        return (self.redescribe is not None) + self.blank


class Verdict(NamedTuple):
    """Whether the card keeps all bounds, and whether every video that was to be read could be."""

    keeps_bounds: bool
    is_whole: bool


@dataclass
class _Report:
    """All that was measured, as it comes together."""

    cards: list[pl.DataFrame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lost: int = 0
    again: Again | None = None
    blank: Again | None = None
    clock: Clock | None = None


def score(
    console: Console,
    catalog: Catalog,
    video: str | None,
    bounds: Sequence[str],
    wanted: Wanted,
    *,
    seed: int,
    as_json: bool,
    every: bool = False,
) -> Verdict:
    """Print the card, and say how it stands.

    Raises:
        UsageError: a bound that is none, or one on what no producer of this catalog has: nothing was shown.
        EngineDownError: a model cannot be reached.
    """
    limits = [Bound.parse(text) for text in bounds]
    report = _measured(catalog, video, wanted, seed)
    card = pl.concat(report.cards).sort("kind", "scale", "producer_id", maintain_order=True)
    for bound in limits:
        if bound.measure not in card["measure"]:
            raise UsageError(f"{bound.measure} is measured of no producer here: a bound on it proves nothing")
    if as_json:
        for row in card.to_dicts():
            print(json.dumps(row))
    else:
        tables_quality.card(console, card, every=every)
        tables_quality.dialogue(console, catalog.dialogue(video))
        _print_behind(console, report)
    stderr = Console(stderr=True, emoji=False)
    for note in dict.fromkeys(report.notes):
        stderr.print(escape(note), soft_wrap=True, highlight=False)
    return Verdict(_keeps(stderr, card, limits), not report.lost)


def _print_behind(console: Console, report: _Report) -> None:
    """What stands behind the numbers: texts that differ, what is said of grey frames, curves."""
    if report.again:
        tables_quality.least_alike(console, report.again.windows)
    if report.blank:
        tables_quality.without_looking(console, report.blank.windows)
    if report.clock:
        tables_quality.curves(console, report.clock.curve)


def _keeps(stderr: Console, card: pl.DataFrame, limits: Sequence[Bound]) -> bool:
    """Tell each producer that breaks a bound; whether there is none."""
    is_kept = True
    for bound in limits:
        for row in bound.broken(card).to_dicts():
            is_kept = False
            text = f"{bound.measure} is {row['value']:.3g}, wanted {bound.sign} {bound.limit:g}"
            text = f"[red]broken[/] {escape(text)}: {escape(tables_quality.producer_of(row))}"
            stderr.print(text, soft_wrap=True, highlight=False)
    return is_kept


def _measured(catalog: Catalog, video: str | None, wanted: Wanted, seed: int) -> _Report:
    gold = read_gold(wanted.gold) if wanted.gold else []
    share = parse_share(wanted.redescribe) if wanted.redescribe else SHARE
    report = _Report()
    if wanted.asks_model:
        with _kit(wanted) as kit:
            _describe(report, catalog, kit, wanted, video, share, seed)
    report.cards.insert(0, quality(catalog, video, seed=seed))
    if wanted.motion:
        with Console(stderr=True, emoji=False).status("") as status:
            looked = against_motion(
                catalog,
                video,
                profile=load_profile(wanted.profile),
                media_roots=wanted.media_roots,
                tell=lambda name: status.update(f"Looking for motion: {escape(name)}"),
            )
        report.cards.append(looked.card)
        report.notes += looked.notes
        report.lost += looked.lost
    if gold:
        report.clock = clock_check(catalog, gold, video)
        report.cards.append(report.clock.card)
        report.notes += report.clock.notes
    return report


@contextmanager
def _kit(wanted: Wanted) -> Iterator[Kit]:
    """The parts of the recipe; what is wrong with it is said."""
    order = load_recipe(wanted.recipe), load_profile(wanted.profile)
    try:
        kit = Kit(*order)
    except (RecipeError, UnknownNameError) as error:
        raise RecipeError(f"recipe {wanted.recipe}: {error}") from None
    with kit:
        yield kit


def _describe(
    report: _Report, catalog: Catalog, kit: Kit, wanted: Wanted, video: str | None, share: float, seed: int
) -> None:
    """Describe a sample of windows again, from their own frames and from blank ones."""
    most = wanted.max_calls // wanted.runs if wanted.max_calls is not None else None
    only_seen = wanted.redescribe is None
    sample = draw(catalog, kit, share=share, seed=seed, video=video, most=most, with_frames=only_seen)
    report.notes += sample.notes
    stderr = Console(stderr=True, emoji=False)
    cost = escape(sample.cost(wanted.runs))
    stderr.print(f"Describing again: at most {cost}.", soft_wrap=True, highlight=False)
    with stderr.status("Describing again"):
        if wanted.redescribe is not None:
            report.again = described_again(catalog, kit, sample, media_roots=wanted.media_roots)
        if wanted.blank:
            report.blank = described_blank(catalog, kit, sample, media_roots=wanted.media_roots)
    for part in (report.again, report.blank):
        if part:
            report.cards.append(part.card)
            report.notes += part.notes
            report.lost += part.lost
