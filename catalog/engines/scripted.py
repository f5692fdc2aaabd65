"""An engine without a model: it answers from a file of rules, the same each time.

For tests and demonstrations that need known answers. The file decides what is answered, so it is part of the
producer (``runs``), which names its model ``scripted:NAME``: nothing of it passes as the work of that model.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, field_validator

from evicat.catalog.registry import check_options
from evicat.schemas.errors import EngineDownError, EvicatError, RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model, canonical_json, content_hash
from evicat.schemas.places import expanded
from evicat.schemas.recipe import ModelProfile, Profile, problem

from .base import ChatAnswer, ChatRequest, Engine, FinishReason
from .simulated import CHARACTERS_PER_TOKEN, simulated_tokens

VERSION = 1
"""Bumped by hand when the same rules begin to give the same request another answer."""
SHOWN = 2_000
"""Characters of a request that no rule fits that the error shows."""


class Rule(Model):
    """One answer, and the requests that it is for: those that fit every condition that is given.

    A rule without conditions fits all of them: put it last.
    """

    contains: tuple[str, ...] = ()
    """Texts that must all come somewhere in the prompt. One may be written without brackets."""
    equals: str | None = None
    """One of the texts of the user's turn, blanks around it aside."""
    field: str | None = None
    """A field at the top of the answer that is asked for."""
    answer: str | dict[str, JsonValue]
    """What is answered: a text as it stands, or a table as JSON."""
    finish_reason: FinishReason = "stop"
    """How the answer ends: ``stop``, ``length`` (cut at the token limit) or ``refused``."""

    @field_validator("contains", mode="before")
    @classmethod
    def _in_brackets(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("answer")
    @classmethod
    def _is_json(cls, value: Any) -> Any:
        canonical_json(value)
        return value

    @property
    def text(self) -> str:
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer, ensure_ascii=False)

    def fits(self, request: ChatRequest) -> bool:
        prompt = "\n".join(request.texts)
        asked = (request.schema or {}).get("properties", {})
        said = [part.strip() for part in request.parts if isinstance(part, str)]
        return (
            all(text in prompt for text in self.contains)
            and (self.equals is None or self.equals.strip() in said)
            and (self.field is None or self.field in asked)
        )


class ScriptedOptions(Model):
    """Where the answers stand."""

    file: str = Field(min_length=1)
    """A TOML file with one ``[[rules]]`` for each rule, or a ``.jsonl`` file with one rule on each line. The
    first rule that fits a request answers it."""


class ScriptedEngine(Engine):
    """Answers each request by the first rule that fits it; pictures are not looked at.

    A token is taken to be 4 characters. An answer with more tokens than the request allows is cut there, as
    a model's is; one that breaks the schema of the request is given as it stands, so that a script can show
    what then happens.

    Raises:
        UsageError: the file is missing, is no TOML or JSONL, or a rule does not fit.
    """

    name: ClassVar[str] = "scripted"

    def __init__(self, model: ModelRef, where: ModelProfile, profile: Profile) -> None:
        super().__init__(model, where, profile)
        about = f'[engines."{model.name}"] of the profile'
        options = check_options(about, ScriptedOptions, where.options)
        self.file = expanded(options.file)
        self.rules = read_rules(self.file)
        self._is_closed = False

    @property
    def runs(self) -> ModelRef:
        """No model: ``scripted:NAME``, known by its rules."""
        rules = [rule.model_dump(mode="json") for rule in self.rules]
        known = content_hash(["scripted", VERSION, self.model.identity(), rules])
        return ModelRef(name=f"scripted:{self.model.name}", revision=str(VERSION), digest=known)

    def check(self, request: ChatRequest) -> None:
        """Nothing: the rules were read, and a first request is made up, so that no rule need fit it."""

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        future: Future[ChatAnswer] = Future()
        try:
            future.set_result(self._answer(request))
        except EvicatError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        self._is_closed = True

    def _answer(self, request: ChatRequest) -> ChatAnswer:
        if self._is_closed:
            raise EngineDownError(f"the scripted engine of {self.model.name!r} is closed")
        rule = next((each for each in self.rules if each.fits(request)), None)
        prompt = sum(map(simulated_tokens, request.texts))
        if rule is None:
            raise RequestError(f"no rule of {self.file} fits this request:\n{shown(request)}")
        text, finish = rule.text, rule.finish_reason
        if simulated_tokens(text) > request.max_tokens:
            text, finish = text[: request.max_tokens * CHARACTERS_PER_TOKEN], "length"
        return ChatAnswer(text, finish, prompt, simulated_tokens(text), self.runs.name)


def shown(request: ChatRequest) -> str:
    """The texts of a request and the fields that it asks for, shortened."""
    words = "\n".join(text for text in request.texts if text)
    cut = words if len(words) <= SHOWN else f"{words[:SHOWN]} ... ({len(words) - SHOWN} characters more)"
    fields = ", ".join((request.schema or {}).get("properties", {})) or "none: free text"
    return f"{cut}\nfields asked for: {fields}"


def read_rules(file: Path) -> tuple[Rule, ...]:
    """The rules of a file, in their order.

    Raises:
        UsageError: it is missing or unreadable, or a rule does not fit; names file, rule and value.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the script {file}: {error}") from None
    given = list(_jsonl(file, text)) if file.suffix == ".jsonl" else _toml(file, text)
    if not given:
        raise UsageError(f"the script {file} holds no rules; write for example\n[[rules]]\nanswer = 'yes'")
    try:
        return TypeAdapter(tuple[Rule, ...]).validate_python(given)
    except ValidationError as error:
        problems = "\n".join(f"{problem(item)} (rules count from 0)" for item in error.errors()[:5])
        raise UsageError(f"the script {file} does not fit:\n{problems}") from None


def _toml(file: Path, text: str) -> Any:
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the script {file} is not valid TOML: {error}") from None
    if others := sorted(given.keys() - {"rules"}):
        raise UsageError(f"the script {file} holds {', '.join(others)}; known: rules")
    return given.get("rules")


def _jsonl(file: Path, text: str) -> Iterable[Any]:
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            if line.strip():
                yield json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"line {number} of the script {file} is not valid JSON: {error}") from None
