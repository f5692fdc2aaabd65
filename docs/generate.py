"""Writes ``docs/reference/`` from the code: ``python docs/generate.py``, or ``make docs``.

With ``--check`` it writes nothing, and exits with 1 where a page no longer says what the code does.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.main import get_command

from evicat.catalog.describers.base import Describer
from evicat.catalog.describers.crop_check import CropCheckOptions
from evicat.catalog.describers.loaders import DESCRIBERS, describer_class
from evicat.catalog.embedders.loaders import EMBEDDERS, embedder_class
from evicat.catalog.engines.protocol import ServedOptions
from evicat.catalog.engines.scripted import Rule, ScriptedOptions
from evicat.catalog.engines.simulated import Faults, SimulatedOptions
from evicat.catalog.engines.transformers_options import TransformersOptions
from evicat.catalog.engines.vllm_options import VllmOptions
from evicat.catalog.measures.card import MEASURES
from evicat.catalog.transcribers.loaders import TRANSCRIBERS, transcriber_class
from evicat.flows.cli import app
from evicat.flows.commands import EXIT_FAILURES, EXIT_USAGE
from evicat.schemas import errors
from evicat.schemas.asset import ASSET_FLAGS
from evicat.schemas.entry import FLAGS, OUTCOME_MEANINGS
from evicat.schemas.errors import EvicatError, UsageError
from evicat.schemas.model import Model
from evicat.schemas.recipe import (
    EmbedderOptions,
    FrameOptions,
    ModelProfile,
    Profile,
    Recipe,
    Scale,
    SpeechOptions,
    SupportOptions,
)
from evicat.storage import columns
from evicat.storage.tables import FIXED_TABLES, table_spec, vectors_schema

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Made by docs/generate.py from the code; change the code, then run: make docs -->\n"

RECIPE_PARTS: tuple[tuple[str, type[Model]], ...] = (
    ("The whole file", Recipe),
    ("[[scales]]", Scale),
    ("frames of a scale", FrameOptions),
    ("check_crop of a describer", CropCheckOptions),
    ("[speech]", SpeechOptions),
    ("[embedder]", EmbedderOptions),
    ("[supports]", SupportOptions),
)
PROFILE_PARTS: tuple[tuple[str, type[Model]], ...] = (
    ('[engines."MODEL"]', ModelProfile),
    ("options of the engine `openai`", ServedOptions),
    ("options of the engine `scripted`", ScriptedOptions),
    ("rules of the engine `scripted`", Rule),
    ("options of the engine `simulated`", SimulatedOptions),
    ("faults of the engine `simulated`", Faults),
    ("options of the engine `transformers`", TransformersOptions),
    ("options of the engine `vllm`", VllmOptions),
)
COMPONENTS: tuple[tuple[str, Mapping[str, str], Callable[[str], Any]], ...] = (
    ("Describers", DESCRIBERS, describer_class),
    ("Transcribers", TRANSCRIBERS, transcriber_class),
    ("Embedders", EMBEDDERS, embedder_class),
)
LIMITS = {
    "minimum": ">= ",
    "exclusiveMinimum": "> ",
    "maximum": "<= ",
    "exclusiveMaximum": "< ",
    "minLength": "length >= ",
    "minItems": "items >= ",
    "pattern": "",
}
"""JSON schema's words for limits of a value, and how they are written here."""


def recipe_page() -> str:
    lines = ["# Recipe", "", *_prose(Recipe), ""]
    lines += [
        "A recipe is a TOML file; `evicat recipes` lists those that ship. A field that is not listed here is"
    ]
    lines += ["an error that names it. [How to write one](../guides/own-recipe.md).", ""]
    for title, model in RECIPE_PARTS:
        lines += [f"## {title}", "", *([] if model is Recipe else [*_prose(model), ""]), *_fields(model), ""]
    for title, known, find in COMPONENTS:
        lines += [f"## {title}", ""]
        for name in known:
            lines += [f"### `{name}`", "", *_component(find(name)), ""]
    return "\n".join(lines)


def profile_page() -> str:
    lines = ["# Profile", "", *_prose(Profile), ""]
    lines += ["A profile is a TOML file, given as `--profile FILE`; without one the defaults hold.", ""]
    lines += [*_fields(Profile), ""]
    for title, model in PROFILE_PARTS:
        lines += [f"## {title}", "", *_prose(model), "", *_fields(model), ""]
    return "\n".join(lines)


def tables_page() -> str:
    lines = ["# Tables", ""]
    lines += [
        "The tables of a catalog are Lance tables in its folder `tables/`; `Catalog` reads them at one head."
    ]
    lines += ["Times are seconds on the asset's own timeline, spans are half-open.", ""]
    for name, schema in {**FIXED_TABLES, "vectors": vectors_schema(1)}.items():
        spec = table_spec("vectors_" if name == "vectors" else name)
        lines += [f"## {name}", "", columns.TABLES[name], f"Key: {_code(*spec.key)}.", ""]
        rows = ((f"`{c.name}`", _arrow(c), columns.COLUMNS[name][c.name]) for c in schema)
        lines += [*_table(("column", "type", "meaning"), rows), ""]
    return "\n".join(lines)


def flags_page() -> str:
    lines = ["# Flags, outcomes, errors", "", "## Outcomes", ""]
    lines += ["What became of a window. A window without an outcome is pending.", ""]
    lines += _table(("outcome", "meaning"), ((f"`{name}`", text) for name, text in OUTCOME_MEANINGS.items()))
    for title, flags in (("Flags of entries", FLAGS), ("Flags of assets", ASSET_FLAGS)):
        lines += ["", f"## {title}", ""]
        lines += _table(("flag", "meaning"), ((f"`{name}`", text) for name, text in flags.items()))
    lines += [
        "",
        "## Errors",
        "",
        "The class stands in the ledger (`error_class`); the message says what to do.",
        "",
    ]
    kinds = sorted(_errors(), key=lambda kind: inspect.getsourcelines(kind)[1])
    rows = (
        (f"`{kind.__name__.removesuffix('Error')}`", _exit(kind), " ".join(_prose(kind))) for kind in kinds
    )
    return "\n".join([*lines, *_table(("class", "exit code", "meaning"), rows), ""])


def cli_page() -> str:
    group: Any = get_command(app)
    lines = ["# Command line", "", *_plain(group.help), ""]
    for name, command in group.commands.items():
        lines += [f"## evicat {name}", "", *_plain(command.help), ""]
        if not hasattr(command, "commands"):
            lines += _command(name, command)
            continue
        for inner, each in command.commands.items():
            lines += [
                f"### evicat {name} {inner}",
                "",
                *_plain(each.help),
                "",
                *_command(f"{name} {inner}", each),
            ]
    return "\n".join(lines)


def _command(name: str, command: Any) -> list[str]:
    """How a command is called, and what its arguments and options mean."""
    lines = ["```text", f"evicat {name} {' '.join(_usage(command))}", "```", ""]
    if command.params:
        lines += [*_table(("argument or option", "default", "meaning"), map(_param, command.params)), ""]
    return lines


def quality_page() -> str:
    lines = ["# Measures of quality", ""]
    lines += ["What `evicat quality` measures of each producer: see [the guide](../guides/quality.md).", ""]
    rows = (
        (f"`{name}`", each.meaning, "" if each.look is None else f"{each.sign} {each.look:g}")
        for name, each in MEASURES.items()
    )
    lines += _table(("measure", "meaning", "good"), rows)
    lines += ["", "What is not good is worth a look. The bounds are chosen, and learned from nothing."]
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "recipe.md": recipe_page,
    "profile.md": profile_page,
    "tables.md": tables_page,
    "flags.md": flags_page,
    "quality.md": quality_page,
    "cli.md": cli_page,
}


def _component(kind: Any) -> Iterator[str]:
    yield from _prose(kind)
    yield ""
    if issubclass(kind, Describer):
        yield f'For `kind = "{kind.kind}"`. Reads {_code(*sorted(kind.reads))}.'
        yield ""
    if kind.options_class.model_fields:
        yield from _prose(kind.options_class)
        yield ""
        yield from _fields(kind.options_class)
    else:
        yield "It has no options."


def _fields(model: type[Model]) -> list[str]:
    """A table of a model's fields, from its JSON schema."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    rows = (
        (f"`{name}`", _type(field), _default(field, name in required), _text(field.get("description", "")))
        for name, field in schema["properties"].items()
    )
    return _table(("field", "type", "default", "meaning"), rows)


def _type(field: Mapping[str, Any]) -> str:
    """``whole number >= 1 <= 8``, ``"first" or "only"``, ``list of text``."""
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"] if each.get("type") != "null")
    if "enum" in field:
        return " or ".join(f'`"{value}"`' for value in field["enum"])
    if "const" in field:
        return f'`"{field["const"]}"`'
    if "$ref" in field:
        return "table"
    limits = [f"{sign}{field[word]}" for word, sign in LIMITS.items() if word in field]
    return " ".join([_bare_type(field), *(f"`{limit}`" for limit in limits)])


def _bare_type(field: Mapping[str, Any]) -> str:
    match field["type"]:
        case "array" if "$ref" in field["items"]:
            return "list of tables"
        case "array":
            return f"list of {_type(field['items'])}"
        case "object":
            values = field.get("additionalProperties")
            return f"table of {_type(values)}" if isinstance(values, dict) and values else "table"
        case kind:
            names = {
                "string": "text",
                "integer": "whole number",
                "number": "number",
                "boolean": "true or false",
            }
            return names[kind]


def _default(field: Mapping[str, Any], required: bool) -> str:
    if required:
        return "(required)"
    default = field.get("default")
    return "" if default is None else f"`{json.dumps(default)}`"


def _arrow(column: pa.Field[Any]) -> str:
    """Arrow's own name of the type, and whether it may be null."""
    kind = str(column.type).replace("<item: ", "<").replace("[1]", "[dimension]")
    return f"`{kind}`{', may be null' if column.nullable else ''}"


def _errors() -> list[type[EvicatError]]:
    known = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    return [kind for kind in known if issubclass(kind, EvicatError) and kind is not EvicatError]


def _exit(kind: type[EvicatError]) -> str:
    return str(EXIT_USAGE if issubclass(kind, UsageError) else EXIT_FAILURES)


def _usage(command: Any) -> Iterator[str]:
    yield "[OPTIONS]"
    yield from (_value(param) for param in command.params if param.param_type_name == "argument")


def _param(param: Any) -> tuple[str, str, str]:
    if param.param_type_name == "argument":
        return _code(_value(param)), "(required)" if param.required else "", _text(param.help or "")
    value = "" if param.is_flag else f" {_value(param)}"
    names = ", ".join(f"`{name}{value if name.startswith('--') else ''}`" for name in param.opts)
    default = (
        "(required)" if param.required else "" if param.default in (None, False) else f"`{param.default}`"
    )
    variable = f" Environment: `{param.envvar}`." if param.envvar else ""
    return names, default, _text(param.help or "") + variable


def _value(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _plain(text: str) -> list[str]:
    """Help without rich's marks; indented commands become a console block."""
    lines = []
    for line in inspect.cleandoc(re.sub(r"\[/?\w*\]", "", text)).splitlines():
        lines += ["```console", f"$ {line.strip()}", "```"] if line.startswith("  evicat ") else [line]
    return "\n".join(lines).replace("```\n\n```console\n", "").splitlines()


def _prose(kind: type) -> list[str]:
    """A class's docstring without its sections for programmers."""
    text = re.split(r"\n\n(?:Args|Raises|Returns):\n", inspect.getdoc(kind) or "")[0]
    return _text(text, line_end="\n").splitlines()


def _text(text: str, *, line_end: str = " ") -> str:
    """A docstring as Markdown: roles and double backticks become code."""
    text = re.sub(r":\w+:`[~.]*([^`]+)`", r"`\1`", text).replace("``", "`")
    return text.replace("\n", line_end)


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def stale() -> list[str]:
    """Names of the pages that differ from what the code says."""
    return [name for name, text in pages() if not _is(REFERENCE / name, text)]


def pages() -> Iterator[tuple[str, str]]:
    for name, make in PAGES.items():
        yield name, NOTE + "\n" + make().rstrip() + "\n"


def _is(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8") == text


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(old)}; run: make docs" if (old := stale()) else 0)
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
