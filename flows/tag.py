"""``evicat tag``: factor tags by a vocabulary, as far as they are not there yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evicat.catalog.recipes import load_profile
from evicat.catalog.tagging.done import Done
from evicat.catalog.tagging.loaders import TAGGERS, TaggerOptions, tagger
from evicat.catalog.tagging.run import registered, run
from evicat.catalog.tagging.vocabulary import Vocabulary, load_vocabulary, packaged
from evicat.catalog.tagging.work import Work, chosen_factors, find_work
from evicat.flows import tables_tags
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.recipe import TextModelOptions
from evicat.storage.store import Store
from evicat.storage.tags import check_registered


@dataclass(frozen=True)
class Order:
    """What to tag, and how."""

    catalog: str
    vocabularies: tuple[Vocabulary, ...]
    factors: tuple[str, ...] = ()
    tagger: str = "fields"
    model: str | None = None
    profile: str | None = None
    thresholds: dict[str, float] | None = None
    retry: tuple[str, ...] = ()
    max_calls: int | None = None

    @classmethod
    def read(cls, catalog: str, vocabularies: Sequence[str], **options: Any) -> Order:
        """Load the vocabularies and look at what else can be wrong; nothing is opened.

        Raises:
            UsageError: a vocabulary or an option does not fit.
        """
        loaded = tuple(load_vocabulary(name) for name in vocabularies)
        names = [each.vocabulary for each in loaded]
        if len(set(names)) < len(names):
            raise UsageError(f"a vocabulary is named twice: {', '.join(names)}")
        order = cls(catalog, loaded, **options)
        if order.tagger not in TAGGERS:
            raise UnknownNameError("tagger", order.tagger, list(TAGGERS))
        if (order.model is not None) != (order.tagger == "llm"):
            raise UsageError("--model names what the tagger llm asks: give both, or neither")
        chosen = chosen_factors(order.vocabularies, order.factors)
        wordless = [factor.id for factor, _ in chosen if not factor.words]
        if order.tagger == "fields" and wordless:
            raise UsageError(
                f"{', '.join(wordless)}: without words, the tagger fields cannot find it; write words = [...]"
                " below it, leave it out by --factor, or take --tagger embedding"
            )
        return order

    @property
    def options(self) -> TaggerOptions:
        model = TextModelOptions(model=self.model) if self.model else None
        return TaggerOptions(thresholds=self.thresholds, model=model)


def tag(console: Console, order: Order, *, plan: bool, as_json: bool) -> bool:
    """Tag what is left, or only say what that is; whether nothing failed and nothing is left.

    Raises:
        UsageError: the catalog, or a vocabulary that tagged it, says something else.
    """
    with Store.connect(order.catalog, write=not plan, run_id="tag") as store:
        rows = store.reader().dataset("vocabularies").to_table().to_pylist()
        for vocabulary in order.vocabularies:
            check_registered(rows, registered(vocabulary))
        with tagger(order.tagger, store.reader, load_profile(order.profile), order.options) as made:
            work = find_work(store.reader(), made, order.vocabularies, order.factors, order.retry)
            if plan:
                _tell(console, as_json, work, None)
                return True
            with counted(Console(stderr=True, emoji=False), work.pairs) as tell:
                done = run(store, work, max_calls=order.max_calls, tell=tell)
    _tell(console, as_json, work, done)
    return not done.failed and not done.stopped


def _tell(console: Console, as_json: bool, work: Work, done: Done | None) -> None:
    if as_json:
        print(json.dumps(tables_tags.facts(work, done), ensure_ascii=False))
    elif done is None:
        tables_tags.plan(console, work)
    else:
        tables_tags.done(console, work, done)


def list_vocabularies(console: Console, *, as_json: bool) -> None:
    """Print the vocabularies that come with evicat."""
    found = [load_vocabulary(name) for name in packaged()]
    if as_json:
        for each in found:
            print(json.dumps(each.model_dump(mode="json"), ensure_ascii=False))
        return
    tables_tags.vocabularies(console, found)


@contextmanager
def counted(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for as long as the context lasts; what it gives is told how much was done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("entries x factors", total=total)
        yield lambda count: progress.advance(task, count)
