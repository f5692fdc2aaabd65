"""A full disk, said in a way that helps: what could not be written, and that nothing stored is lost."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from evicat.schemas.errors import DiskFullError

P = ParamSpec("P")
T = TypeVar("T")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SAID = ("No space left on device", "Disk quota exceeded")
"""How Lance, which keeps no error number, tells of the same."""


def is_full(error: OSError) -> bool:
    """Whether the system or Lance says so that there is no room left."""
    return error.errno in _FULL or any(words in str(error) for words in _SAID)


@contextmanager
def full_disk_told(catalog: Path) -> Iterator[None]:
    """Raise :class:`DiskFullError` instead of what the system or Lance raise where a disk is full."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        where = error.filename or catalog
        raise DiskFullError(
            f"the disk is full: {where} could not be written. What the catalog {catalog} holds stays as it "
            "was. Free some space and run the same command again; it goes on from there"
        ) from error


def tells_when_full(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The same for a method of a store, which has its catalog in ``_layout``."""

    @wraps(method)
    def told(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        with full_disk_told(self._layout.root):
            return method(self, *arguments, **options)

    return told
