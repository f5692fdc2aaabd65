"""Ids, scales and records in words that people read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evicat.schemas.span import format_time, to_us

Pairs = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels, each with its values."""

_SHOWN_ELSEWHERE = frozenset(
    {"boxes", "rests_on", "words", "text", "narrative", "start_s", "end_s", "flags", "kind"}
)
"""Fields of records that an entry shows in a place of their own."""
_SECONDS = re.compile(r"(.+)-(\d+(?:\.\d+)?)s")
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class Word(NamedTuple):
    """A spoken word, when it begins, and how sure the transcriber is, from 0 to 1; None: not known."""

    start_s: float
    text: str
    probability: float | None


def scale_label(kind: str, scale: str) -> str:
    """``local-10s`` as ``Local 10 s``, ``speech`` as ``Speech``."""
    timed = _SECONDS.fullmatch(scale)
    name = f"{timed[1]} {timed[2]} s" if timed else scale or kind
    return name[:1].upper() + name[1:].replace("-", " ")


def clock(seconds: float | None) -> str:
    """``63.25`` as ``1:03.3``, ``3723`` as ``1:02:03.0``; empty where it is not known."""
    if seconds is None:
        return ""
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    end = f"{rest // 10:02d}.{rest % 10}"
    return f"{hours}:{minutes:02d}:{end}" if hours else f"{minutes}:{end}"


def exact_clock(seconds: float) -> str:
    """``63.25`` as ``0:01:03.250``, as other commands print times."""
    return format_time(to_us(seconds))


def size_words(count: int) -> str:
    """``1055736`` as ``1.1 MB``."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} bytes"


def record_pairs(record: str) -> Pairs:
    """What a stored record says, without what is empty and what an entry shows elsewhere."""
    read = json.loads(record)
    pairs = ((name, _values(name, value)) for name, value in read.items() if name not in _SHOWN_ELSEWHERE)
    return tuple((name.replace("_", " "), values) for name, values in pairs if values)


def spoken_words(record: str) -> tuple[Word, ...]:
    """The words of a record of speech; none of other records."""
    words = json.loads(record).get("words") or ()
    return tuple(
        Word(round(word["start_s"], 3), word["text"].strip(), _rounded(word.get("probability")))
        for word in words
    )


def made_from(record: str) -> tuple[str, ...]:
    """Ids of the entries that a narrative's record says it was made from."""
    return tuple(json.loads(record).get("rests_on") or ())


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def _values(name: str, value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(text for item in items if (text := _phrase(name, item)))


def _phrase(name: str, value: Any) -> str:
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return clock(value) if name.endswith("_s") else f"{value:.4g}"
        case str():
            return value
        case Mapping():
            return _thing(value)
        case Sequence():
            return ", ".join(_phrases(name, value))
        case _:
            return str(value)


def _phrases(name: str, values: Iterable[Any]) -> list[str]:
    return [text for value in values if (text := _phrase(name, value))]


def _thing(value: Mapping[str, Any]) -> str:
    """A person, thing or member of a cast: what it is called, and what is known of it."""
    called = next((value[key] for key in ("name", "descriptor") if value.get(key)), "")
    rest = {key: each for key, each in value.items() if each != called and each not in (None, "", [])}
    if rest.keys() == {"details"}:
        return f"{called} ({_phrase('details', rest['details'])})"
    told = [f"{_plain(key)} {_phrase(key, each)}".strip() for key, each in rest.items()]
    return "; ".join([called, *told]) if called else "; ".join(told)


def _plain(key: str) -> str:
    return "" if key == "descriptor" else key.removesuffix("_s").replace("_", " ")
