"""Named views from the command line: stored, read through, kept with snapshots, forgotten."""

import json
import shutil
from pathlib import Path

import pytest

SCHEMA_1 = Path(__file__).parents[1] / "storage" / "catalogs" / "schema1"


@pytest.fixture
def catalog(evicat, tmp_path):
    """A small catalog with local and narrative entries."""
    path = Path(shutil.copytree(SCHEMA_1, tmp_path / "catalog"))
    assert evicat("migrate", "--catalog", path).code == 0
    return path


def kinds(run):
    assert run.code == 0, run.err
    return {json.loads(line)["kind"] for line in run.out.splitlines()}


def local(evicat, catalog):
    rows = map(json.loads, evicat("producers", "--json", "--catalog", catalog).out.splitlines())
    return next(row["producer_id"] for row in rows if row["kind"] == "local")


def test_a_stored_view_shows_its_producers_and_no_others(evicat, catalog):
    everything = kinds(evicat("show", "walk.mp4", "--json", "--catalog", catalog))
    assert {"local", "narrative"} <= everything
    made = evicat("views", "set", "paper", local(evicat, catalog)[:8], "--catalog", catalog)
    assert made.code == 0
    assert made.out.startswith("View paper shows: ")
    assert kinds(evicat("show", "walk.mp4", "--view", "paper", "--json", "--catalog", catalog)) == {"local"}
    found = evicat("search", "boards", "--mode", "text", "--view", "paper", "--json", "--catalog", catalog)
    assert kinds(found) == {"local"}
    assert kinds(evicat("show", "walk.mp4", "--json", "--catalog", catalog)) == everything
    shown = evicat("views", "list", "--catalog", catalog).out
    assert "paper" in shown
    assert "default" in shown


def test_the_view_without_narratives_needs_not_be_stored(evicat, catalog):
    shown = kinds(evicat("show", "walk.mp4", "--view", "w/o narrative", "--json", "--catalog", catalog))
    assert "narrative" not in shown
    assert "local" in shown


def test_a_snapshot_keeps_its_views(evicat, catalog):
    evicat("views", "set", "paper", local(evicat, catalog)[:8], "--catalog", catalog)
    assert evicat("snapshot", "create", "v1", "--catalog", catalog).code == 0
    assert evicat("views", "delete", "paper", "--catalog", catalog).code == 0
    gone = evicat("show", "walk.mp4", "--view", "paper", "--catalog", catalog)
    assert gone.code == 2
    assert "unknown view 'paper'" in gone.err
    kept = evicat("show", "walk.mp4", "--view", "paper", "--at", "v1", "--json", "--catalog", catalog)
    assert kinds(kept) == {"local"}
    listed = evicat("views", "list", "--json", "--at", "v1", "--catalog", catalog).out.splitlines()
    assert {json.loads(line)["view"] for line in listed} == {"default", "paper"}


@pytest.mark.parametrize(
    ("name", "said"),
    [("default", "evicat activate"), ("My View", "lower-case"), ("w/o narrative", "lower-case")],
)
def test_names_that_cannot_be_are_refused(evicat, catalog, name, said):
    run = evicat("views", "set", name, local(evicat, catalog)[:8], "--catalog", catalog)
    assert run.code == 2
    assert said in run.err


def test_what_is_unknown_is_told(evicat, catalog):
    assert "unknown producer 'zzz'" in evicat("views", "set", "paper", "zzz", "--catalog", catalog).err
    assert "unknown view 'paper'" in evicat("views", "delete", "paper", "--catalog", catalog).err
