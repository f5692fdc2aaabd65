"""What the documents say is what the code does: reference pages, commands, options, recipes, profiles."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.exceptions import TyperException
from typer.main import get_command

from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.embedders.loaders import embedder_class
from evicat.catalog.registry import check_options
from evicat.catalog.tagging.vocabulary import parse_vocabulary
from evicat.catalog.transcribers.loaders import transcriber_class
from evicat.flows.cli import app
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.storage import columns
from evicat.storage.tables import FIXED_TABLES, vectors_schema

from .scripts import ROOT, script

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"`[^`\n]*?(--[a-z][a-z-]*)[^`\n]*`")
VARIABLES = re.compile(r"^(?:[A-Z_]+=\S* )+")
COMMANDS = get_command(app).commands
GROUPS = {name: group.commands for name, group in COMMANDS.items() if hasattr(group, "commands")}


GENERATE = script("docs/generate.py")
OPTION_CLASSES = [find(name).options_class for _, known, find in GENERATE.COMPONENTS for name in known]
PARTS = [model for _, model in (*GENERATE.RECIPE_PARTS, *GENERATE.PROFILE_PARTS)]
DOCUMENTED = [Profile, *PARTS, *OPTION_CLASSES]


@pytest.mark.parametrize("page", GENERATE.PAGES)
def test_reference_pages_are_what_the_code_says(page: str) -> None:
    text = dict(GENERATE.pages())[page]
    assert (ROOT / "docs" / "reference" / page).read_text() == text, "stale; run: make docs"


def test_a_stale_page_is_named_and_mended(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(GENERATE, "REFERENCE", tmp_path / "reference")
    monkeypatch.setattr(sys, "argv", ["generate.py"])
    GENERATE.main()
    assert GENERATE.stale() == []
    (tmp_path / "reference" / "flags.md").write_text("old")
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    with pytest.raises(SystemExit, match=r"stale: flags\.md; run: make docs"):
        GENERATE.main()


@pytest.mark.parametrize("model", DOCUMENTED, ids=lambda model: model.__name__)
def test_every_field_that_users_write_says_what_it_means(model) -> None:
    silent = [name for name, field in model.model_fields.items() if not field.description]
    assert not silent, f"{model.__name__}: write a docstring below {', '.join(silent)}"


def test_every_column_has_its_meaning_and_no_other() -> None:
    schemas = {**FIXED_TABLES, "vectors": vectors_schema(1)}
    assert {name: set(schema.names) for name, schema in schemas.items()} == {
        name: set(meanings) for name, meanings in columns.COLUMNS.items()
    }
    assert set(columns.TABLES) == set(schemas)


def console_lines(text: str) -> Iterator[str]:
    """What users type in the console blocks of a page."""
    for language, block in FENCED.findall(text):
        if language == "console":
            joined = block.replace("\\\n", " ")
            yield from (VARIABLES.sub("", line[2:]) for line in joined.splitlines() if line.startswith("$ "))


def shown_commands() -> list[tuple[str, str]]:
    lines = [(page, line) for page in PAGES for line in console_lines(page.read_text())]
    return [(page.name, line) for page, line in lines if line.startswith("evicat ")]


def check(line: str) -> None:
    """Parse a line as the command line would; nothing is run."""
    words = shlex.split(line, comments=True)[1:]
    if words in (["--help"], ["COMMAND", "--help"]):
        return
    assert words[0] in COMMANDS, f"no such command: {words[0]}"
    if words[0] in GROUPS and words[1:]:
        assert words[1] in GROUPS[words[0]], f"no such command: {' '.join(words[:2])}"
        GROUPS[words[0]][words[1]].make_context(f"evicat {words[0]} {words[1]}", words[2:])
    else:
        COMMANDS[words[0]].make_context(f"evicat {words[0]}", words[1:])


@pytest.mark.parametrize(("page", "line"), shown_commands())
def test_commands_in_documents_exist_with_their_options(page: str, line: str) -> None:
    check(line)


@pytest.mark.parametrize(
    "line",
    [
        "evicat indx x -c y",
        "evicat search x -c y --limi 3",
        "evicat show x",
        "evicat search x -c y --limit few",
        "evicat snapshot destroy x -c y",
        "evicat snapshot show x -c y --chek",
    ],
)
def test_commands_that_do_not_exist_are_noticed(line: str, monkeypatch) -> None:
    monkeypatch.delenv("EVICAT_CATALOG", raising=False)
    with pytest.raises((AssertionError, TyperException), match=r"no such|No such|Missing|valid integer"):
        check(line)


def test_every_command_is_shown_somewhere() -> None:
    shown = [shlex.split(line, comments=True)[1:] for _, line in shown_commands()]
    guides = " ".join(page.read_text() for page in GUIDES)
    names = [name for name in COMMANDS if name not in GROUPS]
    names += [f"{group} {name}" for group, inner in GROUPS.items() for name in inner]
    unseen = [
        name
        for name in names
        if name.split() not in [words[: len(name.split())] for words in shown]
        and f"`evicat {name}`" not in guides
    ]
    assert not unseen


OF_OTHERS = {"--help", "--limit-mm-per-prompt", "--max-model-len"}
"""Options of every command, and of servers that the guides tell how to start."""


def test_options_named_in_guides_exist() -> None:
    commands = [*COMMANDS.values(), *(each for group in GROUPS.values() for each in group.values())]
    params = [param for command in commands for param in command.params]
    known = {option for param in params for option in (*param.opts, *param.secondary_opts)} | OF_OTHERS
    named = {(page.name, option) for page in GUIDES for option in OPTION.findall(page.read_text())}
    assert named, "the guides name some"
    assert {(page, option) for page, option in named if option not in known} == set()


def test_make_targets_in_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for page in PAGES for line in console_lines(page.read_text())]
    named = {shlex.split(line, comments=True)[1] for line in lines if line.startswith("make ")}
    assert named, "README shows some"
    assert named <= targets


def toml_blocks() -> list[tuple[str, str]]:
    blocks = [(page.name, *found) for page in GUIDES for found in FENCED.findall(page.read_text())]
    return [(page, block) for page, language, block in blocks if language == "toml"]


def _check_part_of_a_recipe(block: str, page: str) -> None:
    """Its fields fit and its names are known; weights that a reader has to bring are not looked for."""
    scale = '[[scales]]\nkind = "narrative"\nwindow_seconds = 60\ndescriber = "digest"\n'
    recipe = parse_toml(Recipe, f'name = "part"\n{scale}{block}', page)
    assert recipe.speech is None or transcriber_class(recipe.speech.transcriber or "")
    assert recipe.embedder is None or embedder_class(recipe.embedder.name)


@pytest.mark.parametrize(("page", "block"), toml_blocks())
def test_recipes_and_profiles_in_guides_fit(page: str, block: str) -> None:
    """Their fields and options fit; weights of speech and vectors are a reader's own, and not looked for."""
    tables = set(tomllib.loads(block))
    if "vocabulary" in tables:
        assert parse_vocabulary(block, page)
        return
    if tables & {"speech", "embedder"} and "name" not in tables:
        _check_part_of_a_recipe(block, page)
        return
    if "name" not in tables:
        assert parse_toml(Profile, block, page)
        return
    recipe = parse_toml(Recipe, block, page)
    for scale in recipe.scales:
        load_describer(scale, Profile())
    if recipe.speech and recipe.speech.transcriber:
        found = transcriber_class(recipe.speech.transcriber)
        assert check_options(page, found.options_class, recipe.speech.options)
    if recipe.embedder:
        found = embedder_class(recipe.embedder.name)
        assert check_options(page, found.options_class, recipe.embedder.options)
