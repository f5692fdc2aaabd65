"""Claims on units: while a run holds one, results that nobody has committed may come of it."""

from __future__ import annotations

from evicat.schemas.errors import BusyError

from .layout import Layout
from .locks import ProcessLock


def check_none_held(layout: Layout, otherwise: str) -> None:
    """Look whether any process is at work on a unit; what a dead one left is removed.

    Args:
        otherwise: What to say first where one is: what cannot be done now.

    Raises:
        BusyError: one is; names the unit and the process.
    """
    for path in sorted(layout.claims.glob("*.lock")):
        claim = ProcessLock(path, f"a run is writing to {layout.root}: unit {path.stem}")
        try:
            claim.acquire()
        except BusyError as error:
            raise BusyError(f"{otherwise}: {error}") from None
        claim.release(remove=True)
