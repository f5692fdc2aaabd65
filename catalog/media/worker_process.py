"""The child side of ``worker``: runs one generator function after another until its parent is gone."""

from __future__ import annotations

import importlib
import logging
import mmap
import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from evicat.schemas.errors import EvicatError

SLOTS = 16
SLOT_BYTES = 1 << 20
_SMALL_BYTES = 4096
"""Arrays up to this size travel inside the message."""

_ALIVE_EVERY_S = 0.1
_PARENT_EVERY_S = 2.0


class _Child:
    def __init__(self, handle: int, shared: int, parent: int) -> None:
        self._connection = Connection(handle)
        self._memory = mmap.mmap(shared, SLOTS * SLOT_BYTES)
        os.close(shared)
        self._parent = parent
        self._commands: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(SLOTS):
            self._free.put(slot)
        self._sent_at = 0.0

    def listen(self) -> None:
        """Sort what the parent sends; leave at once when the parent is gone, whatever the decoder does."""
        try:
            while True:
                while not self._connection.poll(_PARENT_EVERY_S):
                    # A forked sibling may hold the parent's end open after the parent's death.
                    if os.getppid() != self._parent:
                        os._exit(0)
                command = self._connection.recv()
                if command[0] == "free":
                    self._free.put(command[1])
                else:
                    self._commands.put(command)
        except (EOFError, OSError):
            os._exit(0)

    def serve(self) -> None:
        while True:
            _, module, name, args = self._commands.get()
            try:
                function = getattr(importlib.import_module(module), name)
                self._relay(function(*pickle.loads(args)))
            except EvicatError as error:
                self._send(("error", type(error).__name__, str(error)))
            except Exception as error:  # noqa: BLE001 - the edge of the process: the parent must hear of every error
                self._send(("error", "", f"{type(error).__name__}: {error}"))
            else:
                self._send(("end",))

    def _relay(self, results: Iterator[Any]) -> None:
        for result in results:
            if result is not None:
                self._send_result(result)
            elif time.monotonic() - self._sent_at > _ALIVE_EVERY_S:
                self._send(("alive",))

    def _send_result(self, result: Any) -> None:
        arrays: list[memoryview] = []

        def leave_in_message(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes > _SMALL_BYTES:
                arrays.append(raw)
            return raw.nbytes <= _SMALL_BYTES

        message = pickle.dumps(result, protocol=5, buffer_callback=leave_in_message)
        self._send(("message", message, [array.nbytes for array in arrays]))
        for array in arrays:
            for start in range(0, array.nbytes, SLOT_BYTES):
                part = array[start : start + SLOT_BYTES]
                slot = self._free.get()
                self._memory[slot * SLOT_BYTES : slot * SLOT_BYTES + part.nbytes] = part
                self._send(("part", slot, part.nbytes))

    def _send(self, reply: tuple[Any, ...]) -> None:
        self._connection.send(reply)
        self._sent_at = time.monotonic()

    def send_log(self, record: logging.LogRecord) -> None:
        self._send(("log", record.name, record.levelno, record.getMessage()))


class _LogHandler(logging.Handler):
    """Log records of the decoder belong into the parent's log."""

    def __init__(self, child: _Child) -> None:
        super().__init__(logging.WARNING)
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        self._child.send_log(record)


def main() -> None:
    """Serve the parent that passed us a socket, shared memory and its process id."""
    # An interrupt in the terminal reaches the whole group; the parent decides what becomes of its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = _Child(*map(int, sys.argv[1:]))
    logging.getLogger().addHandler(_LogHandler(child))
    threading.Thread(target=child.listen, daemon=True).start()
    child.serve()


if __name__ == "__main__":
    main()
