"""Maintenance and migration from the command line, and maintenance as a Prefect flow."""

import json
import shutil
from pathlib import Path

import pytest
from prefect.artifacts import Artifact

from evicat.flows.maintain import maintain

SCHEMA_1 = Path(__file__).parents[1] / "storage" / "catalogs" / "schema1"


@pytest.fixture
def old(tmp_path):
    """A catalog of the first schema."""
    return Path(shutil.copytree(SCHEMA_1, tmp_path / "old"))


@pytest.fixture
def catalog(evicat, old):
    """A small catalog of this release."""
    assert evicat("migrate", "--catalog", old).code == 0
    return old


@pytest.fixture
def damaged(catalog):
    """The same, with a broken manifest of an earlier version of ``names``."""
    earlier = max((catalog / "tables" / "names.lance" / "_versions").glob("*.manifest"))
    earlier.write_bytes(b"garbage")
    return catalog


def test_an_older_catalog_is_refused_migrated_and_then_used(evicat, old):
    for command in (("status",), ("search", "bus"), ("show", "walk.mp4"), ("maintain",)):
        refused = evicat(*command, "--catalog", old)
        assert refused.code == 2
        assert f"evicat migrate --catalog {old}" in refused.err
    migrated = evicat("migrate", "--catalog", old)
    assert (migrated.code, migrated.err) == (0, "")
    assert "from schema 1 to 3" in migrated.out
    assert "before-schema-2" in migrated.out
    assert "Nothing to do" in evicat("migrate", "--catalog", old).out
    assert "no answer" in evicat("status", "--catalog", old).out
    hits = evicat("search", "boards", "--mode", "text", "--json", "--catalog", old)
    assert {json.loads(line)["kind"] for line in hits.out.splitlines()} == {"local", "narrative"}
    assert "before-schema-2" in evicat("snapshot", "list", "--catalog", old).out


def test_what_was_done_is_told(evicat, catalog):
    run = evicat("maintain", "--catalog", catalog)
    assert run.code == 0
    assert "kept head 6" in run.out
    assert "snapshot before-schema-2" in run.out
    run = evicat("maintain", "--catalog", catalog, "--keep-days", "0", "--json")
    report = json.loads(run.out)
    assert {table["table"] for table in report["tables"]} >= {"entries", "views"}
    kept = [["newest"], ["snapshot before-schema-3"], ["snapshot before-schema-2"]]
    assert [head["because"] for head in report["kept_heads"]] == kept


def test_a_table_that_fails_is_named_and_the_exit_code_tells(evicat, damaged):
    run = evicat("maintain", "--catalog", damaged)
    assert run.code == 3
    assert "1 of 12 tables failed" in run.out
    (line,) = [line for line in run.out.splitlines() if line.startswith("failed")]
    assert line.startswith("failed table names: ")
    assert ".manifest" in line
    assert ".rs:" not in line, "where in Lance's source it was raised tells users nothing"
    state = maintain(str(damaged), return_state=True)
    assert (state.name, state.is_completed()) == ("FinishedWithFailures", True)
    assert "**failed** table names" in Artifact.get("evicat-maintain").data


@pytest.mark.parametrize("days", ["-1", "nan", "1e9", "soon"])
def test_impossible_days_are_refused(evicat, catalog, days):
    assert evicat("maintain", "--catalog", catalog, "--keep-days", days).code == 2


def test_the_flow_ends_completed_with_its_report(prefect_server, evicat, catalog):
    state = maintain(str(catalog), keep_days=0, return_state=True)
    assert state.name == "Completed"
    report = state.result()
    assert report.failed == ()
    assert report.head == 7
    artifact = Artifact.get("evicat-maintain")
    assert artifact.flow_run_id == state.state_details.flow_run_id
    assert "| entries | 15 | 1 | 1 -> 2 |" in artifact.data
    assert "snapshot before-schema-2" in artifact.data
