"""The command line as its script calls it, without the start of another Python."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from evicat.flows import cli


@dataclass(frozen=True)
class Run:
    """What one call of the command line did."""

    code: int
    out: str
    err: str


def evicat(*args: object, cwd: Path | None = None) -> Run:
    """Call the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["evicat", *map(str, args)])
        patch.setenv("COLUMNS", "200")
        patch.chdir(cwd or Path.cwd())
        with pytest.raises(SystemExit) as end:
            cli.main()
    return Run(end.value.code, out.getvalue(), err.getvalue())
