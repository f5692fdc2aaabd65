"""What the notebooks share: the sample clips, a catalog of them, and the command line.

``EVICAT_EXAMPLE_CATALOG`` names the catalog that they use; it is made where it is not there yet. Without it
each notebook makes one of its own in a new temporary folder.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "demo" / "samples.py"
CLIPS = ("interview.mp4", "card.mp4", "street.mp4", "phone.mp4")
VARIABLE = "EVICAT_EXAMPLE_CATALOG"

warnings.filterwarnings("ignore", message="IProgress not found")  # progress as text will do


def evicat(*words: object) -> None:
    """Run a command as a console would, and show what it says.

    Raises:
        RuntimeError: it failed; the message is what it said.
    """
    command = [str(word) for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "evicat.flows.cli", *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"FORCE_COLOR": ""},  # a notebook asks its programs for colours
    )
    print(f"$ evicat {shlex.join(command)}\n{done.stdout}", end="")
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}")


@cache
def catalog_path() -> Path:
    """Where the catalog lies, or is going to."""
    named = os.environ.get(VARIABLE)
    return Path(named or Path(tempfile.mkdtemp(prefix="evicat-")) / "sample.catalog").absolute()


@cache
def sample_clips() -> list[Path]:
    """The clips, in a folder beside the catalog; ``demo/README.md`` says what they show."""
    folder = catalog_path().with_name("clips")
    subprocess.run([sys.executable, SAMPLES, folder], check=True, stdout=subprocess.DEVNULL)
    return [folder / name for name in CLIPS]


def sample_catalog() -> Path:
    """The catalog of the clips by the default recipe, made at the first call."""
    path = catalog_path()
    if not path.exists():
        evicat("index", *sample_clips(), "--catalog", path)
    return path
