"""From what a model said to a checked answer. Nothing is mended or guessed: what does not fit is an error.

The schema goes to the engine too, but a server may ignore it, so everything is checked again here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from evicat.catalog.transcribers.loops import is_loop, words_of
from evicat.schemas.errors import AnswerError
from evicat.schemas.recipe import problem

A = TypeVar("A", bound="Answer")

SAME_SENTENCE: Final = 3
"""Times that one sentence of four or more words may come in an answer."""
SAME_ITEMS: Final = 0.5
"""Share of equal items from which a list of four or more is a loop."""
MANY_SENTENCES: Final = 12
"""So many sentences, of any length, are a loop where no more than a quarter of them differ."""

_BLANKS: Final = re.compile(r"\s*")
_THOUGHT_ENDS: Final = "</think>"
_FENCE: Final = "```"
_SENTENCES: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s*")
_NOT_TEXT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_JSON: Final = json.JSONDecoder(
    parse_constant=lambda name: _no_number(name), object_pairs_hook=lambda pairs: _each_once(pairs)
)


class Answer(BaseModel):
    """What a model is asked for. Every field is required, and none is converted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _filled(text: str) -> str:
    if not any(map(str.isalnum, text)):
        raise ValueError("it is blank" if not text.strip() else "it holds no words")
    return text


FILLED: Final = AfterValidator(_filled)
"""For a text that has to say something: blanks and marks do not."""


class CutAnswerError(AnswerError):
    """The answer ends before its JSON does."""


def schema_of(answer: type[Answer]) -> dict[str, Any]:
    """The JSON schema that the engine is told, without the titles and descriptions that pydantic adds."""
    schema = _untitled(answer.model_json_schema())
    if not isinstance(schema, dict):
        raise TypeError(f"the schema of {answer.__name__} is not an object")
    return schema


def _untitled(value: Any) -> Any:
    if isinstance(value, list):
        return [_untitled(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if key != "description"}
    if isinstance(kept.get("title"), str):
        del kept["title"]
    return {key: _untitled(item) for key, item in kept.items()}


def read_answer(text: str, answer: type[A]) -> tuple[A, bool]:
    """The answer in ``text``, and whether characters had to be replaced that no text may hold.

    Blocks of thoughts before it and a fence around it are taken off. It takes time in proportion to the text,
    whatever that holds.

    Raises:
        CutAnswerError: the text ends before the JSON does.
        AnswerError: it is not exactly one JSON object, breaks the schema, or repeats itself.
    """
    try:
        return _read(text, answer)
    except RecursionError:
        raise AnswerError("the answer is not JSON that can be read: it is nested too deeply") from None


def _read(text: str, answer: type[A]) -> tuple[A, bool]:
    found = _object(text)
    cleaned = _cleaned(found)
    try:
        made = answer.model_validate(cleaned)
    except ValidationError as error:
        lines = [problem(item).strip() for item in error.errors()[:5]]
        raise AnswerError(
            "the answer breaks its schema: " + "; ".join(line[:200] for line in lines)
        ) from None
    if why := repetition(cleaned):
        raise AnswerError(f"the answer repeats itself: {why}")
    return made, cleaned != found


def _object(text: str) -> dict[str, Any]:
    """The one JSON object that ``text`` is."""
    bare = _without_thoughts(text)
    if bare.startswith("<think>"):
        raise CutAnswerError("the answer ends within the model's thoughts")
    bare = _without_fence(bare)
    if not bare:
        raise AnswerError("the answer is empty")
    try:
        value, end = _JSON.raw_decode(bare)
    except json.JSONDecodeError as error:
        if bare.startswith("{") and _is_cut(bare, error):
            raise CutAnswerError(
                f"the answer ends before its JSON does, after {len(bare)} characters"
            ) from None
        raise AnswerError(f"the answer is not JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise AnswerError(f"the answer is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise AnswerError(f"the answer is not a JSON object but {bare[:20]!r}")
    if bare[end:].strip():
        raise AnswerError(f"the answer goes on after its JSON object, with {bare[end:].strip()[:40]!r}")
    return value


def _without_thoughts(text: str) -> str:
    """What follows the blocks of thoughts; where the answer has begun, their mark is a part of it."""
    at = _behind_blanks(text, 0)
    while not text.startswith(("{", _FENCE), at):
        end = text.find(_THOUGHT_ENDS, at)
        if end < 0:
            break
        at = _behind_blanks(text, end + len(_THOUGHT_ENDS))
    return text[at:].rstrip()


def _behind_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _without_fence(text: str) -> str:
    """What stands within a fence; a cut answer has none at its end."""
    if not text.startswith(_FENCE):
        return text
    inner = text.removeprefix(_FENCE).removesuffix(_FENCE)
    return inner[len("json") :].strip() if inner[: len("json")].casefold() == "json" else inner.strip()


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; which of two values under one key is meant is not guessed."""
    made = dict(pairs)
    if len(made) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice[:40]!r} stands in it twice")
    return made


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether more text could have made it JSON: it failed at the end, or in a string that never ends."""
    return error.pos >= len(text) or error.msg.startswith("Unterminated string")


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _cleaned(value: Any) -> Any:
    """The same without what is no text: lone surrogates, and characters that control a terminal."""
    if isinstance(value, str):
        return _NOT_TEXT.sub("\ufffd", value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return value


def repetition(value: Any) -> str:
    """What of an answer repeats itself as no describer would; empty where nothing does."""
    for text in _texts(value):
        sentences = [part for part in _SENTENCES.split(text) if part]
        if loop := next(filter(is_loop, sentences), ""):
            return f"{loop[:60]!r} ..."
        told = Counter(map(words_of, sentences))
        for words, times in told.items():
            if times > SAME_SENTENCE and len(words) >= 4:
                return f"{times} times {' '.join(words)[:60]!r}"
        if len(sentences) >= MANY_SENTENCES and 4 * len(told) <= len(sentences):
            return f"{len(sentences)} sentences, of which {len(told)} differ"
    for items in _lists(value):
        if all(isinstance(item, bool | int | float) for item in items):
            continue  # verdicts and scores are often equal
        distinct = {json.dumps(item, sort_keys=True).casefold() for item in items}
        if len(items) >= 4 and len(distinct) <= SAME_ITEMS * len(items):
            return f"a list of {len(items)} has {len(distinct)} different items"
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list) and not all(isinstance(item, int | float) for item in value):
        yield value  # the numbers of a box may be equal
    if isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _lists(item)
