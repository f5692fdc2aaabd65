"""Vocabularies: the factors that entries are tagged with, as versioned TOML files.

::

    vocabulary = "place"
    version = 2
    description = "Where it is."
    kinds = ["local", "narrative"]       # entries that its factors are looked for in
    fields = ["place", "scene"]          # of their records; "text" is the entry's text

    [[factors]]
    id = "place:kitchen"
    descriptor = "a kitchen, where food is prepared"
    examples = ["a woman stirs a pot on the stove"]
    exclusions = ["the dining room of a restaurant"]
    words = ["kitchen", "stove", "cook*"]

    [[migrations]]                       # what became of ids of earlier versions
    since = 2
    change = "rename"
    old = ["place:galley"]
    new = ["place:kitchen"]
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from evicat.catalog.tagging.names import nearest
from evicat.schemas.entry import Kind
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.model import Model, canonical_json, content_hash
from evicat.schemas.places import expanded
from evicat.schemas.recipe import Name, problem

PACKAGE = "evicat.catalog.vocabularies"
FactorId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*:[a-z0-9][a-z0-9_-]*$")]
Text = Annotated[str, Field(pattern=r"\S", max_length=500)]
Change = Literal["rename", "merge", "split"]


class Factor(Model):
    """One facet of what an entry may say."""

    id: FactorId
    """Its vocabulary and its own name: ``place:kitchen``."""
    descriptor: Text
    """What it is, in a short phrase."""
    examples: tuple[Text, ...] = ()
    """Sentences that carry it."""
    exclusions: tuple[Text, ...] = ()
    """What might be taken for it, and is not."""
    words: tuple[Text, ...] = ()
    """What the tagger ``fields`` looks for, whatever the case; ``*`` at the end stands for any ending."""
    kinds: tuple[Kind, ...] = ()
    """Entries that it is looked for in; left out: as the vocabulary says."""
    fields: tuple[str, ...] = ()
    """Fields of the record that ``words`` are looked for in; left out: as the vocabulary says."""
    threshold: float | None = Field(default=None, ge=-1, le=1)
    """Least likeness for the tagger ``embedding``, as ``--calibrate`` finds it; left out: its own."""


class Migration(Model):
    """What became of ids that an earlier version had. Tags keep the ids under which they were made."""

    since: int = Field(ge=2)
    """The version that has the new ids."""
    change: Change
    """``rename``: one id for one. ``merge``: several became one. ``split``: one became several; which of them
    an old tag means nobody knows, so it is found under its old id alone."""
    old: Annotated[tuple[FactorId, ...], Field(min_length=1)]
    new: Annotated[tuple[FactorId, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _counts_fit(self) -> Migration:
        counts = {"rename": (1, 1), "merge": (2, 1), "split": (1, 2)}[self.change]
        for name, ids, wanted in (("old", self.old, counts[0]), ("new", self.new, counts[1])):
            if (wanted == 1) != (len(ids) == 1):
                what = "one id" if wanted == 1 else "several ids"
                raise ValueError(f"a {self.change} has {what} in `{name}`, got {', '.join(ids)}")
        return self


class Vocabulary(Model):
    """Factors that belong together, at one version."""

    vocabulary: Name
    """Its name: what stands before the colon in ids."""
    version: int = Field(ge=1)
    """Counted up by hand whenever anything in it changes."""
    description: str = ""
    """One line, for ``evicat tag --list``."""
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] = ("local", "narrative")
    """Entries that its factors are looked for in."""
    fields: Annotated[tuple[str, ...], Field(min_length=1)] = ("text",)
    """Fields of records that the tagger ``fields`` reads; ``text`` is the text of the entry."""
    factors: Annotated[tuple[Factor, ...], Field(min_length=1)]
    migrations: tuple[Migration, ...] = ()

    @model_validator(mode="after")
    def _ids_fit(self) -> Vocabulary:
        ids = [factor.id for factor in self.factors]
        twice = sorted(name for name, count in Counter(ids).items() if count > 1)
        if twice:
            raise ValueError(f"{twice[0]} stands twice among the factors; every id once")
        strange = [each for each in ids if each.partition(":")[0] != self.vocabulary]
        if strange:
            raise ValueError(
                f"{strange[0]} must begin with the vocabulary's name: {self.vocabulary}:"
                f"{strange[0].partition(':')[2]}"
            )
        for migration in self.migrations:
            _check_migration(migration, self.version, ids)
        return self

    @cached_property
    def filled(self) -> tuple[Factor, ...]:
        """The factors, each with the kinds and fields that hold for it."""
        return tuple(
            each.model_copy(update={"kinds": each.kinds or self.kinds, "fields": each.fields or self.fields})
            for each in self.factors
        )

    @cached_property
    def digest(self) -> str:
        """Hash of what it says; descriptions for people are no part of it."""
        return content_hash(self.model_dump(mode="json", exclude={"description"}))

    @property
    def facts(self) -> str:
        """All of it as JSON."""
        return canonical_json(self.model_dump(mode="json"))

    def chosen(self, factor_ids: Sequence[str]) -> tuple[Factor, ...]:
        """These factors, or all where none is named.

        Raises:
            UnknownNameError: it has none of this id; offers the nearest.
        """
        known = {each.id: each for each in self.filled}
        full = [each if ":" in each else f"{self.vocabulary}:{each}" for each in factor_ids]
        for each in full:
            if each not in known:
                raise UnknownNameError("factor", each, nearest(each, known))
        return tuple(known[each] for each in dict.fromkeys(full)) or self.filled


def _check_migration(migration: Migration, version: int, ids: Sequence[str]) -> None:
    told = f"the {migration.change} of {', '.join(migration.old)}"
    if migration.since > version:
        raise ValueError(f"{told} is since version {migration.since}, but this is version {version}")
    kept = [each for each in migration.old if each in ids]
    if kept and migration.change != "split":
        raise ValueError(f"{told}: {kept[0]} is still among the factors; remove it there, or here")


def packaged() -> list[str]:
    """Names of the vocabularies that come with evicat."""
    files = resources.files(PACKAGE).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_vocabulary(name: str) -> Vocabulary:
    """A packaged vocabulary by its name, or that in a file.

    Raises:
        UnknownNameError: neither; lists the packaged ones.
        UsageError: it is not TOML, or does not fit; names file, line and key.
    """
    if name in packaged():
        text = resources.files(PACKAGE).joinpath(f"{name}.toml").read_text(encoding="utf-8")
        return parse_vocabulary(text, f"{name} (packaged)")
    path = expanded(name)
    if not name.endswith(".toml") and not path.is_file():
        raise UnknownNameError("vocabulary", name, nearest(name, packaged()))
    try:
        return parse_vocabulary(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"vocabulary {path} cannot be read: {error}") from None


def parse_vocabulary(text: str, where: str) -> Vocabulary:
    """Check TOML text; ``where`` names the file in errors.

    Raises:
        UsageError: it is not TOML, or does not fit; names file, line and key.
    """
    try:
        return Vocabulary.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"vocabulary {where} is not valid TOML: {error}") from None
    except ValidationError as error:
        problems = "\n".join(_told(text, item) for item in error.errors())
        raise UsageError(f"vocabulary {where} does not fit:\n{problems}") from None


def _told(text: str, item: Any) -> str:
    """One of pydantic's errors, with the line of the table that it is in."""
    line = _line_of(text, item["loc"])
    known = ""
    if item["type"] == "extra_forbidden":
        tables: dict[str, type[Model]] = {"factors": Factor, "migrations": Migration}
        kind = tables[str(item["loc"][0])] if len(item["loc"]) > 1 else Vocabulary
        known = f"; known keys: {', '.join(kind.model_fields)}"
    return problem(item) + (f" (line {line})" if line else "") + known


def _line_of(text: str, place: Sequence[Any]) -> int | None:
    """Where the table begins that a path such as ``("factors", 3, "id")`` leads into, or its key stands."""
    lines = text.splitlines()
    if len(place) > 1 and isinstance(place[1], int):
        heads = [at for at, line in enumerate(lines) if re.match(rf"\s*\[\[\s*{place[0]}\s*\]\]", line)]
        return heads[place[1]] + 1 if place[1] < len(heads) else None
    keys = [at for at, line in enumerate(lines) if place and re.match(rf"\s*{place[0]}\s*=", line)]
    return keys[0] + 1 if keys else None
