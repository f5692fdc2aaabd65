"""Conventions of the repository, so that nobody has to remember them."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from evicat.schemas.recipe import Recipe, parse_toml

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOL = PYPROJECT["project"], PYPROJECT["tool"]
ROOMS = TOOL["setuptools"]["package-dir"]
RECIPES = sorted((ROOT / "catalog" / "recipes").glob("*.toml"))
APACHE_2_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"

MAX_BYTES = 100_000
LOCKS = {"constraints.txt"}
# In parts, for this file is tracked too. After a name or a bracket it is a relative path.
MACHINE_PATH = re.compile(rb"(?<![\w.})\]])/(?:(?:work|root)/|tmp/" + rb"v\b)")
EXTRAS = re.compile(r"(?:evicat|(?<=['\" ])\.)\[([a-z][a-z0-9_, -]*)\]")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def git_listing() -> dict[str, str]:
    """Path, relative to the top, of every tracked file -> its git mode."""
    command = ["git", "-C", str(ROOT), "ls-files", "-s", "-z"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heads_and_paths = (line.split("\t", 1) for line in done.stdout.split("\0") if line)
    return {path: head.split()[0] for head, path in heads_and_paths}


LISTING = git_listing()
FILES = [ROOT / path for path, mode in LISTING.items() if mode != "120000"]


def test_files_are_tracked_and_the_only_link_is_the_one_for_type_checkers():
    assert ROOT / "pyproject.toml" in FILES
    assert [path for path, mode in LISTING.items() if mode == "120000"] == [".typing/evicat"]
    assert set(LISTING.values()) <= {"100644", "100755", "120000"}, "submodules have no place here"


def test_no_large_files():
    large = {file.name: size for file in FILES if (size := file.stat().st_size) > MAX_BYTES}
    assert not {name: size for name, size in large.items() if name not in LOCKS}


def test_no_paths_of_one_machine():
    found = {
        str(file.relative_to(ROOT)): match.group().decode()
        for file in FILES
        if (match := MACHINE_PATH.search(file.read_bytes()))
    }
    assert not found


def folder_of(package: str) -> Path:
    room = ".".join(package.split(".")[:2])
    return ROOT.joinpath(ROOMS[room], *package.split(".")[2:])


def test_packages_are_the_python_folders_of_the_rooms():
    listed = {folder_of(package) for package in TOOL["setuptools"]["packages"]}
    assert [folder for folder in listed if not (folder / "__init__.py").is_file()] == []
    tops = [ROOT / folder for folder in ROOMS.values()]
    with_code = {file.parent for top in tops for file in top.rglob("*.py")}
    assert with_code == listed


def test_every_room_is_under_import_linter():
    contract = TOOL["importlinter"]
    assert set(contract["root_packages"]) == set(ROOMS)
    assert set(contract["contracts"][0]["layers"]) == set(ROOMS)


def extras_raised(tree: ast.Module) -> set[str]:
    """The extra that each ``MissingExtraError(package, extra)`` names."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    raised = [call for call in calls if ast.unparse(call.func).endswith("MissingExtraError")]
    by_name = [{word.arg: word.value for word in call.keywords} for call in raised]
    pairs = zip(raised, by_name, strict=True)
    return {ast.literal_eval(words["extra"] if "extra" in words else call.args[1]) for call, words in pairs}


def test_extras_that_are_named_exist():
    named = set()
    for file in FILES:
        for group in EXTRAS.findall(file.read_text(errors="replace")):
            named |= {extra.strip() for extra in group.split(",")}
        if file.suffix == ".py":
            named |= extras_raised(ast.parse(file.read_text()))
    assert named, "at least constraints.txt names some"
    assert named <= set(PROJECT["optional-dependencies"])


def test_extras_are_found_where_they_are_named():
    source = "raise errors.MissingExtraError('x', 'one')\nraise MissingExtraError(package='x', extra='two')"
    assert extras_raised(ast.parse(source)) == {"one", "two"}
    command = "pip install '{}[a,b-c]' -e '{}[d]'".format("evicat", ".")
    assert EXTRAS.findall(command) == ["a,b-c", "d"]


def test_machine_paths_are_found_where_they_stand():
    assert all(MACHINE_PATH.search(f'"/{top}/x'.encode()) for top in ("work", "root", "tmp/v"))
    relative = (f"{before}/{top}/" for before, top in (("{base}", "work"), ("a", "root"), ("", "tmp/video")))
    assert not any(MACHINE_PATH.search(path.encode()) for path in relative)


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_recipes_parse_and_are_called_like_their_file(file):
    assert parse_toml(Recipe, file.read_text(), file).name == file.stem


def test_the_default_recipe_ships():
    assert "default" in [file.stem for file in RECIPES]


def test_licence_is_the_full_apache_2():
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_SHA256
    assert PROJECT["license"] == "Apache-2.0"


def test_citation_and_changelog_agree_with_pyproject():
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    assert {f"version: {PROJECT['version']}", f"license: {PROJECT['license']}", "title: evicat"} <= set(lines)
    assert f"\n## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_constraints_pin_every_direct_dependency_within_its_bounds():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    extras = [
        extra
        for name, extra in PROJECT["optional-dependencies"].items()
        if name != "vllm"  # it pins a torch of its own, and is installed beside nothing of this
    ]
    for text in [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


def test_weights_of_the_offline_extra_have_the_documented_digests():
    page = (ROOT / "docs" / "packaged-weights.md").read_text()
    rows = re.findall(r"\| `(\w+)/(\S+)` \| ([\d,]+) \| `([0-9a-f]{64})` \|", page)
    wanted = {name.split("==")[0].replace("-", "_") for name in PROJECT["optional-dependencies"]["offline"]}
    assert wanted <= {package for package, *_ in rows}
    for package, path, size, digest in rows:
        if package in wanted:
            content = (Path(importlib.util.find_spec(package).origin).parent / path).read_bytes()
            assert (f"{len(content):,}", hashlib.sha256(content).hexdigest()) == (size, digest), path


def test_links_between_documents_lead_somewhere():
    pages = [file for file in FILES if file.suffix == ".md"]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in LINK.findall(page.read_text())
        if not (page.parent / link).exists()
    ]
    assert not broken


def test_every_decision_is_in_the_list_of_decisions():
    folder = ROOT / "docs" / "decisions"
    listed = LINK.findall((folder / "README.md").read_text())
    assert sorted(listed) == sorted(file.name for file in folder.glob("[0-9]*.md"))
