"""What answers at once imports nothing heavy: calls run in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evicat.storage.layout import FORMAT, SCHEMA

HEAVY = ("av", "cv2", "faster_whisper", "lance", "lancedb", "polars", "prefect", "torch", "transformers")
CALL = """
import contextlib, io, json, sys
from evicat.flows.cli import main
heavy, calls = json.load(sys.stdin)
ended = []
for words in calls:
    sys.argv = ["evicat", *words]
    before = set(sys.modules)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
    except SystemExit as end:
        imported = [name for name in heavy if name in set(sys.modules) - before]
        ended.append([end.code, imported, printed.getvalue()])
json.dump(ended, sys.stdout)
"""


def call(*calls: list[str], cwd: Path) -> list[tuple[int, list[str], str]]:
    """Calls one after another: exit code, heavy modules that it imported, and everything that was printed."""
    clean = {name: value for name, value in os.environ.items() if name != "EVICAT_CATALOG"}
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        input=json.dumps([HEAVY, calls]),
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env=clean | {"COLUMNS": "200", "NO_COLOR": "1"},
    )
    return [(code, imported, printed) for code, imported, printed in json.loads(done.stdout)]


QUICK = {
    arguments: (code, said)
    for arguments, code, said in [
        ("--help", 0, "evidence catalogs"),
        ("doctor --help", 0, "--recipe"),
        ("index --help", 0, "--profile"),
        ("plan --help", 0, "--catalog"),
        ("cost --help", 0, "--profile"),
        ("cost --catalog gone", 2, "is not a catalog"),
        ("search --help", 0, "--limit"),
        ("show --help", 0, "--between"),
        ("status --help", 0, "--catalog"),
        ("recipes --help", 0, "recipes"),
        ("recipes", 0, "default"),
        ("shw", 2, "No such command"),
        ("show", 2, "Usage"),
        ("show film.mp4", 2, "--catalog"),
        ("show film.mp4 --catalog gone --betwen 1:2", 2, "--betwen"),
        ("show film.mp4 --catalog gone --between soon", 2, "not a span: 'soon'"),
        ("show film.mp4 --catalog gone --kind smell", 2, "unknown kind 'smell'"),
        ("show film.mp4 --catalog gone", 2, "is not a catalog"),
        ("show film.mp4 --catalog s3://bucket/c", 2, "local folders"),
        ("search x --catalog gone", 2, "is not a catalog"),
        ("status --catalog gone", 2, "is not a catalog"),
        ("snapshot create --help", 0, "--note"),
        ("snapshot list --catalog gone", 2, "is not a catalog"),
        ("snapshot create x --catalog gone", 2, "is not a catalog"),
        ("doctor --recipe gone.toml", 2, "cannot read recipe"),
    ]
}


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, list[str], str]]:
    """All of ``QUICK``, in one process."""
    folder = tmp_path_factory.mktemp("called")
    return dict(zip(QUICK, call(*map(str.split, QUICK), cwd=folder), strict=True))


@pytest.mark.parametrize("arguments", QUICK)
def test_help_recipes_and_usage_errors_import_nothing_heavy(called, arguments: str) -> None:
    code, said = QUICK[arguments]
    ended, imported, printed = called[arguments]
    assert (ended, imported) == (code, []), printed
    assert said in " ".join(printed.split())


def test_a_heavy_import_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "evicat.json").write_text(json.dumps({"format": FORMAT, "schema": SCHEMA}))
    ((code, imported, printed),) = call(["show", "film.mp4", "--catalog", "c"], cwd=tmp_path)
    assert code == 3, printed  # its head is missing: an IntegrityError of the reader
    assert "polars" in imported
