"""What the command line says of a damaged catalog: one line, which names what is wrong, and exit code 3."""

import json
import shutil
from pathlib import Path

import pytest

SCHEMA_1 = Path(__file__).parents[1] / "storage" / "catalogs" / "schema1"


@pytest.fixture(scope="module")
def whole(evicat, tmp_path_factory):
    """A small catalog of this release, in one fragment, with two snapshots."""
    path = Path(shutil.copytree(SCHEMA_1, tmp_path_factory.mktemp("whole") / "catalog"))
    assert evicat("migrate", "--catalog", path).code == 0
    assert evicat("snapshot", "create", "paper", "--catalog", path).code == 0
    assert evicat("maintain", "--keep-days", "0", "--catalog", path).code == 0
    return path


@pytest.fixture
def catalog(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "catalog"))


def harm(catalog, how):
    for path in (catalog / "tables" / "entries.lance" / "data").iterdir():
        content = path.read_bytes()
        path.unlink()
        if how == "flipped":
            path.write_bytes(bytes(byte ^ 0x55 for byte in content))


@pytest.mark.parametrize("how", ["missing", "flipped"])
@pytest.mark.parametrize(
    "command",
    [
        ("search", "boards", "--mode", "text"),
        ("show", "walk.mp4"),
        ("snapshot", "export", "paper", "out"),
        ("snapshot", "create", "another"),
        ("snapshot", "show", "paper", "--check"),
    ],
)
def test_a_command_that_reads_the_table_names_it(evicat, catalog, tmp_path, command, how):
    harm(catalog, how)
    run = evicat(*command, "--catalog", catalog, cwd=tmp_path)
    assert run.code == 3
    (line,) = run.err.splitlines()
    assert line.startswith("Integrity: table 'entries' cannot be read: ")
    assert ".rs:" not in line


def test_an_index_makes_nothing_beside_it(evicat, catalog, tmp_path):
    harm(catalog, "missing")
    (tmp_path / "clip.mp4").write_bytes(b"")
    run = evicat("index", tmp_path, "--catalog", catalog)
    assert run.code == 3
    assert run.err.splitlines()[-1].startswith("Integrity: entries.lance/data/")


def test_a_maintenance_fails_for_it(evicat, catalog):
    harm(catalog, "missing")
    run = evicat("maintain", "--catalog", catalog)
    assert run.code == 3
    assert "failed table entries: entries.lance/data/" in run.out


def test_a_maintenance_tells_of_indexes_that_it_made_anew(evicat, catalog):
    shutil.rmtree(catalog / "tables" / "entries.lance" / "_indices")
    assert evicat("search", "boards", "--mode", "text", "--catalog", catalog).code == 3
    run = evicat("maintain", "--catalog", catalog)
    assert run.code == 0
    assert "table entries: broken indexes were made anew" in run.out
    assert evicat("search", "boards", "--mode", "text", "--catalog", catalog).code == 0


def test_one_broken_snapshot_does_not_hide_the_others(evicat, catalog):
    broken = catalog / "snapshots" / "paper.json"
    broken.write_text(broken.read_text().replace('"note": ""', '"note": "mine"'))
    run = evicat("snapshot", "list", "--catalog", catalog)
    assert run.code == 3
    assert "before-schema-2" in run.out
    assert f"Integrity: {broken} was edited" in run.err
    run = evicat("snapshot", "list", "--json", "--catalog", catalog)
    assert run.code == 3
    names = [json.loads(line)["name"] for line in run.out.splitlines()]
    assert names == ["before-schema-2", "before-schema-3"]
    assert evicat("maintain", "--catalog", catalog).code == 3, "what it kept is not known"


@pytest.mark.parametrize("raised", [OSError, RuntimeError, ValueError])
def test_an_error_of_lance_that_went_astray_is_told_on_one_line(evicat, catalog, monkeypatch, raised):
    def fail(*_, **__):
        raise raised("Not found: /c/x.lance, /builder/.cargo/registry/src/lance-io/src/reader.rs:335:56")

    monkeypatch.setattr("evicat.storage.snapshots.find_snapshot", fail)
    run = evicat("snapshot", "show", "paper", "--catalog", catalog)
    assert (run.code, run.err) == (3, "Integrity: Not found: /c/x.lance\n")


def test_other_errors_keep_their_traceback(evicat, catalog, monkeypatch):
    def fail(*_, **__):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr("evicat.storage.snapshots.find_snapshot", fail)
    with pytest.raises(ValueError, match="a mistake of ours"):
        evicat("snapshot", "show", "paper", "--catalog", catalog)
