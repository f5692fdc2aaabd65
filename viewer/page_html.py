"""Templates, style and script of pages, and how values get into them safely.

Texts of a catalog are untrusted: templates escape what they print, and what a script reads stands in a data
block in which no character can end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .page_words import clock, exact_clock, size_words

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?:\{[^}]*\};\n)?", re.MULTILINE)
_ESCAPES: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


@cache
def environment() -> Environment:
    """The templates of this package; everything that they print is escaped unless it is :class:`Markup`."""
    made = Environment(
        loader=PackageLoader("evicat.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"clock": clock, "exact_clock": exact_clock, "size": size_words, "data": script_json}
    return made


def script_json(value: Any) -> Markup:
    """``value`` as JSON for a script element of type ``application/json``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPES))  # what could end the element is escaped


@cache
def static_text(name: str) -> Markup:
    """A style sheet or script of this package, to stand within a page; both hold no ``</``."""
    return Markup(files("evicat.viewer").joinpath("static", name).read_text(encoding="utf-8"))


@cache
def static_script(name: str) -> Markup:
    """A script of this package with the modules that it imports in one, each before those that need it.

    No two modules may give one name to two things.
    """
    return Markup("\n".join(_modules(name, set())))


def _modules(name: str, seen: set[str]) -> Iterator[str]:
    seen.add(name)
    text = str(static_text(name))
    for imported in _IMPORT.findall(text):
        if imported not in seen:
            yield from _modules(imported, seen)
    yield _EXPORT.sub("", _IMPORT.sub("", text))


def content_policy(style: str, script: str) -> str:
    """A content security policy that allows this style and script, pictures in the page, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
