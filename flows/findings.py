"""What ``evicat doctor`` finds. Imports the schemas and the standard library only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from evicat.schemas.errors import EvicatError
from evicat.schemas.model import Model

Group = Literal["package", "extra", "engine", "device", "model", "part", "decoder", "trial"]

BROKEN = (AttributeError, ImportError, NameError, OSError, RuntimeError, ValueError)
"""What packages raise when they, or what they build on, are missing, half installed or of a wrong version."""


class Finding(Model):
    """One thing that was looked at."""

    group: Group
    """What kind of thing it is."""
    name: str
    """Its name, as recipes and package indexes write it."""
    works: bool
    """Whether it is there and does what it should."""
    needed: bool
    """Whether the recipe cannot run without it."""
    detail: str
    """Version, devices, or what is wrong."""
    mend: str = ""
    """What to do where it does not work; empty: ``detail`` says it."""


class Report(Model):
    """Everything that was found, for one recipe."""

    evicat: str
    """Release; empty where evicat runs without being installed."""
    python: str
    """Version of Python."""
    platform: str
    """Operating system and processor."""
    recipe: str
    """Name of the recipe that is to run."""
    usable: bool
    """Whether the recipe could run: nothing that it needs fails."""
    findings: tuple[Finding, ...]
    """In the order in which they were looked at."""


def attempt(
    group: Group, name: str, call: Callable[[], str], *, needed: bool = False, mend: str = ""
) -> Finding:
    """Call what should work; its answer is the detail, or else the message of what went wrong."""
    try:
        return Finding(group=group, name=name, works=True, needed=needed, detail=call())
    except EvicatError as error:
        detail = str(error)  # such a message says what to do
    except ImportError as error:
        detail, mend = str(error), mend or "the commands that install packages and extras stand beside them"
    except BROKEN as error:
        detail = f"{type(error).__name__}: {error}"
    return Finding(group=group, name=name, works=False, needed=needed, detail=detail, mend=mend)


def timed(call: Callable[[], str]) -> Callable[[], str]:
    """``call``, with the seconds that it took at the end of its answer."""

    def with_seconds() -> str:
        started = time.perf_counter()
        answer = call()
        return f"{answer}, {time.perf_counter() - started:.1f} s"

    return with_seconds
