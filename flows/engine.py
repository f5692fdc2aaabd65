"""A Prefect server for one run of the command line, where the user has none running.

Prefect would start one by itself. This one differs in what a terminal needs: Ctrl-C ends the run and not the
server under it, so that the run can still say how it ended; nothing that the server logs reaches the
terminal; and it ends with its parent, however that ends (on Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evicat.schemas.errors import BusyError

START_TIMEOUT_S = 120.0
_PR_SET_PDEATHSIG = 1


@contextmanager
def flow_server() -> Iterator[None]:
    """Have Prefect talk to a server of our own, unless ``PREFECT_API_URL`` names one already.

    Raises:
        BusyError: the server did not start in time.
    """
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value():
        yield
        return
    port = _free_port()
    url = f"http://127.0.0.1:{port}/api"
    process = _start(port)
    try:
        _wait_until_healthy(process, url)
        with temporary_settings({PREFECT_API_URL: url}):
            yield
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(port: int) -> subprocess.Popen[bytes]:
    where = ["--host", "127.0.0.1", "--port", str(port)]
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app", *where]
    services = ("SCHEDULER", "LATE_RUNS", "FOREMAN", "CANCELLATION_CLEANUP", "PAUSE_EXPIRATIONS", "TRIGGERS")
    off = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in services}
    return subprocess.Popen(
        command,
        env=os.environ | off | {"PREFECT_SERVER_UI_ENABLED": "false"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str) -> None:
    import httpx

    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/health").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise BusyError(
        "the flow engine (a local Prefect server) did not start; start one yourself with "
        "`prefect server start` and set PREFECT_API_URL, or see what `python -m uvicorn --factory "
        "prefect.server.api.server:create_app` says"
    )
