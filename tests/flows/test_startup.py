"""What answers at once imports nothing heavy: each call runs in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("av", "cv2", "faster_whisper", "lance", "lancedb", "polars", "prefect", "torch", "transformers")
CALL = """
import json, sys
from evicat.flows.cli import main
try:
    main()
except SystemExit as end:
    imported = [name for name in json.loads(sys.stdin.read()) if name in sys.modules]
    print(json.dumps([end.code, imported]))
"""


def call(*arguments: str, cwd: Path) -> tuple[int, list[str], str]:
    """Exit code, heavy modules that were imported, and everything that was printed."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, *arguments],
        input=json.dumps(HEAVY),
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
    )
    code, imported = json.loads(done.stdout.splitlines()[-1])
    return code, imported, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
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
    ],
)
def test_help_recipes_and_usage_errors_import_nothing_heavy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, code: int, said: str
) -> None:
    monkeypatch.delenv("EVICAT_CATALOG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    ended, imported, printed = call(*arguments.split(), cwd=tmp_path)
    assert (ended, imported) == (code, []), printed
    assert said in " ".join(printed.split())


def test_a_heavy_import_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "evicat.json").write_text('{"format": "evicat-catalog", "schema": 2}')
    code, imported, printed = call("show", "film.mp4", "--catalog", "c", cwd=tmp_path)
    assert code == 3, printed  # its head is missing: an IntegrityError of the reader
    assert "polars" in imported
