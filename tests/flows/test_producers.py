"""Switching what is shown, retiring the rest, and comparing both, by the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evicat.catalog.build import build
from evicat.catalog.kit import Kit
from evicat.catalog.query import Catalog
from evicat.catalog.recipes import load_recipe
from evicat.schemas.recipe import Profile
from evicat.storage.head import read_head
from evicat.storage.reader import Reader
from evicat.storage.store import Store

pytestmark = pytest.mark.slow

RECIPE = """
name = "{name}"
[[scales]]
kind = "local"
window_seconds = {seconds}
describer = "sight"
frames = {{ per_window = {frames}, max_width = 96 }}
options = {{ ocr_frames = 0 }}
[[scales]]
kind = "narrative"
window_seconds = 8
describer = "digest"
{embedder}
"""
EMBEDDER = """
[embedder]
name = "sentence-transformers"
model = "packaged:all-MiniLM-L6-v2"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory, evicat_samples) -> Path:
    """A folder with ``media``, ``catalog`` and the recipes that made it: first ``old``, then the others."""
    folder = tmp_path_factory.mktemp("producers")
    (folder / "media").mkdir()
    for name in ("card.mp4", "phone.mp4"):
        shutil.copy(evicat_samples / name, folder / "media")
    recipes = {"old": (4, 2, EMBEDDER), "new": (4, 3, ""), "fine": (2, 2, "")}
    for name, (seconds, frames, embedder) in recipes.items():
        text = RECIPE.format(name=name, seconds=seconds, frames=frames, embedder=embedder)
        (folder / f"{name}.toml").write_text(text)
        with (
            Kit(load_recipe(str(folder / f"{name}.toml")), Profile()) as kit,
            Store.connect(folder / "catalog", write=True, create=True) as store,
        ):
            for media in sorted((folder / "media").iterdir()):
                build(media, kit, store)
    return folder


@pytest.fixture
def catalog(made, tmp_path) -> Path:
    return Path(shutil.copytree(made / "catalog", tmp_path / "c"))


@pytest.fixture
def listed(evicat):
    """What ``evicat producers --json`` says, in order."""

    def read(catalog: Path, *options: object) -> list[dict]:
        run = evicat("producers", "--catalog", catalog, "--json", *options)
        assert run.code == 0, run.err
        return [json.loads(line) for line in run.out.splitlines()]

    return read


def find(rows: list[dict], scale: str, state: str) -> str:
    """First digits of the one producer of a scale in a state."""
    (found,) = [row for row in rows if (row["scale"], row["state"]) == (scale, state)]
    return found["producer_id"][:8]


def second_of(rows: list[dict], listed_local: str) -> str:
    """The narrative that reads this local producer."""
    (found,) = [row for row in rows if any(read.startswith(listed_local) for read in row["reads"])]
    return found["producer_id"][:8]


def test_producers_lists_what_each_made_and_which_are_shown(evicat, listed, catalog: Path) -> None:
    rows = listed(catalog)
    units = Catalog.open(str(catalog)).units()
    local = [row for row in rows if row["scale"] == "local-4s"]
    assert [row["state"] for row in local] == ["active", "kept"]
    for row in local:
        own = units.filter(producer_id=row["producer_id"])
        assert (row["units"], row["windows"]) == (2, own["windows"].sum())
    embedder = rows[-1]
    assert (embedder["kind"], embedder["state"], embedder["units"]) == ("embedding", "active", 4)
    vectors = f"vectors_{embedder['producer_id'][:8]}"
    entries = Reader.open(catalog).dataset(vectors).to_table(columns=["entry_id"])["entry_id"]
    assert embedder["entries"] == len(set(entries.to_pylist()))
    table = evicat("producers", "--catalog", catalog).out
    assert all(row["producer_id"][:8] in table for row in rows)


def test_activate_switches_all_of_them_in_one_head_and_says_how_to_switch_back(
    evicat, listed, catalog: Path
) -> None:
    rows = listed(catalog)
    old, new = (find(rows, "local-4s", state) for state in ("active", "kept"))
    old_digest, new_digest = second_of(rows, old), second_of(rows, new)
    shown = Catalog.open(str(catalog)).entries(kind="narrative")
    before = read_head(catalog / "head.json").number
    run = evicat("activate", new, new_digest, "--catalog", catalog)
    assert run.code == 0, run.err
    assert read_head(catalog / "head.json").number == before + 1
    assert f"Back with: evicat activate {old} {old_digest} --catalog {catalog}" in run.out
    now = Catalog.open(str(catalog)).entries(kind="narrative")
    assert set(now["entry_id"]).isdisjoint(shown["entry_id"])
    assert f"{new} is active already" in evicat("activate", new, "--catalog", catalog).out
    evicat("activate", old, old_digest, "--catalog", catalog)
    assert Catalog.open(str(catalog)).entries(kind="narrative").equals(shown)


def test_retired_entries_are_not_found_and_come_back(evicat, listed, catalog: Path) -> None:
    rows = listed(catalog)
    new = find(rows, "local-4s", "kept")
    digest = second_of(rows, new)
    before = Catalog.open(str(catalog))
    texts = before.entries(producer=new)
    run = evicat("retire", new, digest, "--catalog", catalog)
    assert run.code == 0, run.err
    assert f"evicat retire --undo {new} {digest} --catalog {catalog}" in run.out
    assert find(listed(catalog), "local-4s", "retired") == new
    assert len(Catalog.open(str(catalog)).entries(producer=new)) == 0
    assert len(listed(catalog, "--at", str(before.version))) == len(rows)
    undone = evicat("retire", "--undo", new, digest, "--catalog", catalog, "--json")
    assert json.loads(undone.out)["entries"] == len(texts) + len(before.entries(producer=digest))
    assert Catalog.open(str(catalog)).entries(producer=new).equals(texts)
    assert listed(catalog) == rows


def test_what_was_retired_in_two_steps_comes_back_by_the_command_that_is_told(
    evicat, listed, catalog: Path
) -> None:
    rows = listed(catalog)
    new = find(rows, "local-4s", "kept")
    digest = second_of(rows, new)
    for producer in (digest, new):
        assert evicat("retire", producer, "--catalog", catalog).code == 0
    refused = evicat("retire", "--undo", digest, "--catalog", catalog)
    assert refused.code == 2
    command = f"evicat retire --undo {new} {digest} --catalog {catalog}"
    assert command in refused.err
    undone = evicat(*command.split()[1:])
    assert undone.code == 0, undone.err
    assert "They come from head" in undone.out
    assert listed(catalog) == rows


def test_indexing_after_retiring_makes_the_same_rows_again(
    evicat, equal_part, listed, made: Path, catalog: Path
) -> None:
    before = equal_part(catalog)
    rows = listed(catalog)
    new = find(rows, "local-4s", "kept")
    assert evicat("retire", new, second_of(rows, new), "--catalog", catalog).code == 0
    assert len(equal_part(catalog)) < len(before)
    run = evicat("index", made / "media", "--catalog", catalog, "--recipe", made / "new.toml")
    assert run.code == 0, run.err
    assert equal_part(catalog).equals(before)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("activate", "none"), "unknown producer 'none'; known: "),
        (("activate", ""), "unknown producer ''"),
        (("retire", "OLD"), "is the active one; activate another first: evicat activate NEW"),
        (("retire", "NEW"), "is read by digest"),
        (("retire", "--undo", "NEW"), "holds more of NEW than is there"),
        (("activate", "OLD", "NEW"), "are both local-4s; one of them can be active"),
        (("diff", "OLD", "1"), "1 is a snapshot or the number of a head, OLD is not"),
        (("diff", "OLD"), "OLD is neither a snapshot nor the number of a head; name two producers"),
    ],
)
def test_what_cannot_be_done_is_said(evicat, listed, made: Path, command, message) -> None:
    catalog = made / "catalog"
    rows, head = listed(catalog), read_head(catalog / "head.json")
    ids = {"OLD": find(rows, "local-4s", "active"), "NEW": find(rows, "local-4s", "kept")}
    run = evicat(*(ids.get(word, word) for word in command), "--catalog", catalog)
    for word, producer in ids.items():
        message = message.replace(word, producer)
    assert (run.code, run.out) == (2, "")
    assert message in run.err
    assert read_head(catalog / "head.json") == head


def test_a_retired_producer_cannot_be_shown(evicat, listed, catalog: Path) -> None:
    rows = listed(catalog)
    new = find(rows, "local-4s", "kept")
    digest = second_of(rows, new)
    evicat("retire", digest, "--catalog", catalog)
    run = evicat("activate", digest, "--catalog", catalog)
    assert run.code == 2
    assert f"bring it back with: evicat retire --undo {digest}" in run.err


def test_diff_of_producers_embeds_what_has_no_vectors(evicat, listed, made: Path) -> None:
    catalog = made / "catalog"
    rows = listed(catalog)
    old, new = (find(rows, "local-4s", state) for state in ("active", "kept"))
    run = evicat("diff", old, new, "--catalog", catalog, "--json")
    found = json.loads(run.out)
    own = Catalog.open(str(catalog)).entries(producer=old)
    assert (found["kind"], found["aligned"], found["videos"]) == ("local", "span", 2)
    assert found["same"] + found["changed"] + found["only_a"] + found["only_b"] == len(own)
    assert found["changed"] > 0
    agreement = found["agreement"]
    assert agreement["how"].startswith("embedded now by ")
    assert agreement["compared"] == found["same"] + found["changed"]
    assert 0.5 < agreement["lowest"] <= agreement["mean"] <= 1
    similarity = [pair["similarity"] for pair in found["most_different"]]
    assert similarity == sorted(similarity)
    printed = evicat("diff", old, new, "--catalog", catalog, "--limit", 1)
    assert printed.code == 0
    assert f"{found['changed']} changed, {found['same']} same" in printed.out
    assert found["most_different"][0]["video"] in printed.out


def test_diff_of_other_window_lengths_says_how_they_are_compared(evicat, listed, made: Path) -> None:
    rows = listed(made / "catalog")
    old = find(rows, "local-4s", "active")
    fine = find(rows, "local-2s", "active")
    run = evicat("diff", old, fine, "--catalog", made / "catalog")
    assert "Spans differ: each is compared with the shorter ones that overlap it most." in run.out
    found = json.loads(evicat("diff", old, fine, "--catalog", made / "catalog", "--json").out)
    assert found["b"]["windows"] > found["a"]["windows"]
    assert found["only_a"] == found["only_b"] == 0


def test_diff_looks_at_no_snapshot_that_is_not_meant(evicat, listed, catalog: Path) -> None:
    (catalog / "snapshots").mkdir(exist_ok=True)
    (catalog / "snapshots" / "broken.json").write_text("{")
    rows = listed(catalog)
    names = [find(rows, "local-4s", state) for state in ("active", "kept")]
    run = evicat("diff", *names, "--catalog", catalog, "--json")
    assert run.code == 0, run.err
    assert "broken.json is broken" in evicat("diff", "broken", "--catalog", catalog).err


def test_diff_of_snapshots_and_heads_compares_what_they_show(evicat, listed, catalog: Path) -> None:
    assert evicat("snapshot", "create", "before", "--catalog", catalog).code == 0
    rows = listed(catalog)
    new = find(rows, "local-4s", "kept")
    assert evicat("activate", new, "--catalog", catalog).code == 0
    head = read_head(catalog / "head.json").number
    views = [
        json.loads(evicat("diff", *names, "--catalog", catalog, "--json").out)
        for names in (("before",), ("before", head))
    ]
    assert views[0] == views[1]
    changed = {part["a"]["scale"]: part["changed"] for part in views[0]["parts"]}
    assert changed["local-4s"] > 0
    assert changed["local-2s"] == changed["narrative-8s"] == 0
    assert "No difference" in evicat("diff", "before", head, "--catalog", catalog).out
