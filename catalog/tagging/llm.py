"""Tags by a text model: it is asked about one factor and a few entries at a time, and may be unable to tell.

A yes has to quote the entry. Where the quoted words do not stand in it, nothing supports the tag, and it is
an abstention.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, ClassVar, Literal

import polars as pl
from pydantic import Field

from evicat.catalog.answers import Answer
from evicat.catalog.llm import Prompt, TextModel
from evicat.catalog.tagging.base import FOUND_SCHEMA, Found, Tagger
from evicat.catalog.tagging.vocabulary import Factor
from evicat.schemas.errors import AnswerError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import content_hash
from evicat.schemas.recipe import TextModelOptions
from evicat.storage.factors import ABSTAINED, YES

ENTRIES_AT_ONCE = 8
"""Entries of a question where nothing else is said."""


class Verdict(Answer):
    """What a model says of one entry."""

    entry: int
    verdict: Literal["yes", "no", "unsure"]
    phrase: str
    confidence: Annotated[float, Field(ge=0, le=1)]


class Verdicts(Answer):
    """What a model answers to a question."""

    verdicts: list[Verdict]


class LlmTagger(Tagger):
    """Asks ``model``, with ``options`` as they go into what identifies the tags."""

    component: ClassVar[str] = "llm"
    version: ClassVar[int] = 1

    def __init__(
        self, model: TextModel, options: TextModelOptions, *, entries_at_once: int = ENTRIES_AT_ONCE
    ) -> None:
        self._model = model
        self._options = options
        self._entries_at_once = entries_at_once

    @property
    def model(self) -> ModelRef | None:
        return self._model.runs

    @property
    def entries_at_once(self) -> int | None:
        return self._entries_at_once

    @property
    def slots(self) -> int:
        return self._model.engine.slots

    def facts(self, factor: Factor) -> dict[str, Any]:
        """The question, and how it is put."""
        return {
            "system": content_hash(_system(factor)),
            "entries_at_once": self._entries_at_once,
            "temperature": self._options.temperature,
            "max_tokens": self._options.max_tokens,
        }

    def tag(self, entries: pl.DataFrame, factors: Sequence[Factor]) -> Found:
        """As :meth:`Tagger.tag`, for one factor and entries of its kinds.

        Raises:
            AnswerError: the model left entries out, or spoke of others; or as ``TextModel.ask``.
        """
        (factor,) = factors
        texts: list[str] = entries["text"].to_list()
        shown = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
        asked = self._model.ask(Prompt(shown, system=_system(factor)), Verdicts)
        cost = {name: getattr(asked, name) for name in ("attempts", "prompt_tokens", "completion_tokens")}
        said = {each.entry: each for each in asked.answer.verdicts}
        if sorted(each.entry for each in asked.answer.verdicts) != list(range(1, len(texts) + 1)):
            raise AnswerError(
                f"the answer speaks of the entries {[each.entry for each in asked.answer.verdicts]}, "
                f"but 1 to {len(texts)} were asked, each once",
                raw=asked.answer.model_dump_json(),
                **cost,
            )
        rows = [
            (number - 1, 0, *_judged(said[number], text))
            for number, text in enumerate(texts, start=1)
            if said[number].verdict != "no"
        ]
        return Found(pl.DataFrame(rows, schema=FOUND_SCHEMA, orient="row"), **cost)


def _judged(said: Verdict, text: str) -> tuple[str, str, float, str, int | None, int | None]:
    """The columns of a tag from ``verdict`` on."""
    phrase = said.phrase.strip()
    begin = text.casefold().find(phrase.casefold()) if phrase else -1
    if begin >= 0 and text[begin : begin + len(phrase)].casefold() != phrase.casefold():
        begin = -1  # folding has changed the length of what stands before it
    if said.verdict == "yes" and begin >= 0:
        return YES, text[begin : begin + len(phrase)], said.confidence, "text", begin, begin + len(phrase)
    return ABSTAINED, phrase, said.confidence, "text", None, None


@cache
def _template() -> str:
    return resources.files("evicat.catalog.tagging").joinpath("prompt.md").read_text(encoding="utf-8")


def _system(factor: Factor) -> str:
    examples = "".join(f"Supported for example by: {each}\n" for each in factor.examples)
    exclusions = "".join(f"Not meant: {each}\n" for each in factor.exclusions)
    return _template().format(descriptor=factor.descriptor, examples=examples, exclusions=exclusions)
