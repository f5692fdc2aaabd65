"""Locks between processes. They are the operating system's, so they vanish with a process that dies."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from evicat.schemas.errors import BusyError, CatalogError

from .layout import Layout

log = logging.getLogger(__name__)

_NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM)


class ProcessLock:
    """One lock file that carries the process id and host of its holder.

    Not re-entrant; may be released by another thread than the one that took it.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self._what = what
        self._lock = FileLock(path, thread_local=False)

    def acquire(self, *, timeout_s: float = 0) -> None:
        """Take the lock, waiting up to ``timeout_s``.

        Raises:
            BusyError: somebody else still holds it; names the holder.
            CatalogError: nothing can be written where the lock file lies.
        """
        with _refusal_told(self.path):
            self._acquire(timeout_s)

    def _acquire(self, timeout_s: float) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._wait(timeout_s)
        try:
            self.path.write_text(
                json.dumps({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8"
            )
        except OSError:  # a full disk: whoever did not get to hold it must not keep it
            self._lock.release()
            raise

    def _wait(self, timeout_s: float) -> None:
        if timeout_s > 0:
            log.info("%s is held by %s; waiting up to %g s", self._what, self._holder(), timeout_s)
        try:
            self._lock.acquire(timeout=timeout_s)
        except Timeout:
            raise BusyError(
                f"{self._what} is held by {self._holder()}; waited {timeout_s:g} s. "
                "Try again when it is done, or end it"
            ) from None

    def _holder(self) -> str:
        try:
            holder = json.loads(self.path.read_text(encoding="utf-8"))
            return f"process {holder['pid']} on {holder['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process (it left no name)"

    def release(self, *, remove: bool = False) -> None:
        """Let go; ``remove`` takes the file away too (for locks that are many and short-lived)."""
        if remove and self._lock.is_locked:
            self.path.unlink(missing_ok=True)
        self._lock.release()

    @contextmanager
    def held(self, *, timeout_s: float) -> Iterator[None]:
        self.acquire(timeout_s=timeout_s)
        try:
            yield
        finally:
            self.release()


@contextmanager
def _refusal_told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_WRITING:
            raise
        raise CatalogError(
            f"the catalog cannot be written to: {path}: {os.strerror(error.errno)}. It can be read; to "
            "change it, get the right to write there, or work on a copy of it"
        ) from error


class CommitRight:
    """The right to change the tables of a catalog: one thread of one process has it."""

    def __init__(self, path: Path, what: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._gate = threading.Lock()
        self._lock = ProcessLock(path, what)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it, waiting for other threads, and up to the timeout for other processes.

        Raises:
            BusyError: another process had it all that time.
        """
        with self._gate, self._lock.held(timeout_s=self._timeout_s):
            yield

    @contextmanager
    def held_if_free(self) -> Iterator[bool]:
        """Hold it if nobody does; False: somebody does."""
        with ExitStack() as stack:
            is_mine = self._gate.acquire(blocking=False)
            if is_mine:
                stack.callback(self._gate.release)
                try:
                    stack.enter_context(self._lock.held(timeout_s=0))
                except BusyError:
                    is_mine = False
            yield is_mine


def commit_right(layout: Layout, timeout_s: float) -> CommitRight:
    """The right to change the tables of an existing catalog.

    Raises:
        CatalogError: it cannot be written to.
    """
    with _refusal_told(layout.commit_lock):
        layout.work.mkdir(exist_ok=True)
    return CommitRight(layout.commit_lock, f"the right to commit to {layout.root}", timeout_s)
