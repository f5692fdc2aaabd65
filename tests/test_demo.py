"""The tour that `make demo` takes: its three searches lead where they should."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from types import SimpleNamespace

import pytest

from .scripts import ROOT, script


@pytest.mark.slow
def test_the_tour_finds_speech_screen_text_and_what_is_seen(
    evicat, tmp_path: Path, monkeypatch, capsys
) -> None:
    """Its calls of the command line run in this process."""

    def run(command: list[str], **_: object) -> CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "evicat.flows.cli"]
        done = evicat(*command[3:])
        return CompletedProcess(command, done.code, done.out)

    monkeypatch.syspath_prepend(ROOT / "demo")
    demo = script("demo/demo.py")
    monkeypatch.setattr(demo, "subprocess", SimpleNamespace(run=run, PIPE=PIPE))
    where = ["--samples", str(tmp_path / "samples"), "--catalog", str(tmp_path / "catalog")]
    monkeypatch.setattr(sys, "argv", ["demo.py", *where])
    code = demo.main()
    said = capsys.readouterr().out
    assert code == 0, said
    assert said.count("$ evicat search") == 3
    assert "wrong:" not in said
