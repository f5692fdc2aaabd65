"""Decoding in child processes: a hang or a native crash costs one asset, not the run.

A pool keeps its idle children, so only the first run pays for a start. Commands and replies cross a socket,
arrays cross shared memory (``worker_process`` is the other side). A child that has filled all slots waits
until they are read, which is how a slow reader slows the decoder down. Needs POSIX.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from evicat.schemas import errors
from evicat.schemas.errors import DecoderCrashedError, DecodeStalledError, EvicatError

from .worker_process import SLOT_BYTES, SLOTS

T = TypeVar("T")


class WorkerPool:
    """Runs generator functions in child processes. A context manager; leaving it ends all children.

    May be used from several threads: every run has a child of its own, and there are as many children as
    there were runs at the same time.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all children, also those that are at work."""
        with self._lock:
            workers, idle, self._all, self._idle = self._all, self._idle, set(), []
        for worker in workers:
            # What is at work is let go by its run, which reads that the child was ended.
            worker.release() if worker in idle else worker.kill()

    def run(
        self, function: Callable[..., Iterator[T | None]], *args: Any, timeout_s: float, about: object = ""
    ) -> Iterator[T]:
        """Run ``function(*args)`` in a child and yield what it yields.

        The function is a module-level generator function and its arguments are picklable. None, which it may
        yield while it works without result, is a sign of life and is not passed on. Arrays arrive as copies.
        The child of a run that is given up half-way is ended.

        Args:
            timeout_s: Seconds without result or sign of life after which the child is ended.
            about: What the run is about, such as a path; stands in error messages.

        Raises:
            DecodeStalledError: nothing came for ``timeout_s``.
            DecoderCrashedError: the child died, or raised what is no ``EvicatError``.
            EvicatError: what the function raised, as the same class with the same message.
        """
        about = about or f"{function.__module__}.{function.__qualname__}"
        worker = self._take()
        finished = False
        try:
            worker.send(("run", function.__module__, function.__qualname__, pickle.dumps(args)))
            yield from worker.messages(timeout_s, about)
            finished = True
        except _ChildError as error:
            finished = True
            raise error.original from None
        finally:
            self._give_back(worker, usable=finished)

    def _take(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                self._all.discard(worker)
                worker.release()
            worker = _Worker()
            self._all.add(worker)
            return worker

    def _give_back(self, worker: _Worker, *, usable: bool) -> None:
        with self._lock:
            if usable and worker in self._all:
                self._idle.append(worker)
                return
            self._all.discard(worker)
        worker.release()


class _Buffer(Protocol):
    def __len__(self) -> int: ...


class _ChildError(Exception):
    """An error that the child reported while it stays fit for use."""

    def __init__(self, original: EvicatError) -> None:
        super().__init__(str(original))
        self.original = original


class _Worker:
    """One child process and its side of the socket and the shared memory."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        shared = _anonymous_file(SLOTS * SLOT_BYTES)
        try:
            self._memory = mmap.mmap(shared, SLOTS * SLOT_BYTES)
            handles = (theirs.fileno(), shared)
            module = "evicat.catalog.media.worker_process"
            # -P: a folder that the user works in shadows none of our imports.
            command = [sys.executable, "-P", "-m", module, *map(str, handles), str(os.getpid())]
            self._process = subprocess.Popen(
                command, pass_fds=handles, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        finally:
            theirs.close()
            os.close(shared)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def release(self) -> None:
        """End the child and free all that this side holds."""
        self.kill()
        self._connection.close()
        self._memory.close()

    def send(self, command: tuple[Any, ...]) -> None:
        # A dead child is noticed, with its exit signal, by the read that follows.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send(command)

    def messages(self, timeout_s: float, about: object) -> Iterator[Any]:
        """What the child yields, until its function ends."""
        while True:
            reply = self._receive(timeout_s, about)
            match reply[0]:
                case "end":
                    return
                case "message":
                    buffers = [self._read_buffer(size, timeout_s, about) for size in reply[2]]
                    yield pickle.loads(reply[1], buffers=buffers)
                case "error":
                    raise _ChildError(_rebuild(reply[1], reply[2], about))

    def _receive(self, timeout_s: float, about: object) -> tuple[Any, ...]:
        """The next reply that is more than a sign of life or a log record."""
        while True:
            try:
                if not self._connection.poll(timeout_s):
                    raise DecodeStalledError(
                        f"{about}: no progress for {timeout_s:g} s; the decoder was ended"
                    )
                reply: tuple[Any, ...] = self._connection.recv()
            except (EOFError, ConnectionResetError):
                raise DecoderCrashedError(f"{about}: {_how_it_died(self._process.wait())}") from None
            if reply[0] == "log":
                logging.getLogger(reply[1]).log(reply[2], "%s", reply[3])
            elif reply[0] != "alive":
                return reply

    def _read_buffer(self, size: int, timeout_s: float, about: object) -> _Buffer:
        data = np.empty(size, np.uint8)
        filled = 0
        while filled < size:
            _, slot, length = self._receive(timeout_s, about)
            start = slot * SLOT_BYTES
            data[filled : filled + length] = np.frombuffer(self._memory, np.uint8, length, start)
            self.send(("free", slot))
            filled += length
        return data


def _anonymous_file(size: int) -> int:
    """Handle of a file without a name: the system frees it when both sides are gone."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("evicat")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, size)
    return handle


def _how_it_died(code: int) -> str:
    if code < 0:
        return f"the decoding process died of {signal.Signals(-code).name}"
    return f"the decoding process ended with exit code {code}"


def _rebuild(name: str, message: str, about: object) -> EvicatError:
    kind = getattr(errors, name, None)
    if kind is None:
        return DecoderCrashedError(f"{about}: {message}")
    # Without __init__, whose arguments differ from class to class: the message is whole already.
    error: EvicatError = kind.__new__(kind, message)
    return error
