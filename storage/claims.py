"""Claims on units: while a run holds one, results that nobody has committed may come of it."""

from __future__ import annotations

from evicat.schemas.errors import BusyError

from .layout import Layout
from .locks import ProcessLock


def check_none_held(layout: Layout, doing: str) -> None:
    """Look whether any process is at work on a unit; what a dead one left is removed.

    Args:
        doing: What cannot be done meanwhile, such as ``migrated``.

    Raises:
        BusyError: one is; names the unit and the process.
    """
    for path in sorted(layout.claims.glob("*.lock")):
        claim = ProcessLock(path, f"a run is writing to {layout.root}: unit {path.stem}")
        try:
            claim.acquire()
        except BusyError as error:
            raise BusyError(f"{layout.root} cannot be {doing} now: {error}") from None
        claim.release(remove=True)
