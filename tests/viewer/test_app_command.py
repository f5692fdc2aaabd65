"""``evicat view`` as it is started and ended."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from evicat.flows.view import serve
from evicat.schemas.errors import UsageError
from evicat.viewer.app_catalogs import Place

from ..catalog.tagging.library import Library
from .app_serving import ask

VIEW = [sys.executable, "-m", "evicat.flows.cli", "view"]


def refused(uri: str, **arguments: object) -> str:
    given = {"host": "127.0.0.1", "port": 0, "place": Place(None, None), "profile": None, "media_roots": ()}
    with pytest.raises(UsageError) as told:
        serve(Console(quiet=True), uri, **(given | arguments))
    return str(told.value)


def test_it_prints_its_address_serves_and_ends_with_an_interrupt(gallery) -> None:
    command = [*VIEW, "--catalog", gallery.uri, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+", running.stdout.readline())[0]
            assert ask(address, "/").status == 200
            assert ask(address, "/", Host="evil.example").status == 421
        finally:
            running.send_signal(signal.SIGINT)
        told, complaints = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "Ended." in told
    assert complaints == ""


@pytest.mark.slow
def test_an_interrupt_while_the_text_model_loads_ends_it_without_complaints(tmp_path: Path) -> None:
    library = Library(tmp_path / "catalog")
    library.write_with_packaged_vectors("a.mp4", ["A kitchen."])
    command = [*VIEW, "--catalog", str(library.path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert "http://127.0.0.1:" in running.stdout.readline()
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        told, complaints = running.communicate(timeout=60)
    assert (running.returncode, complaints) == (0, "")
    assert "Ended." in told


def test_a_port_in_use_is_told(gallery) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused(gallery.uri, port=port)
    assert f"port {port} of 127.0.0.1 is in use" in told
    assert "--port 0" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"host": "no.such.host.invalid"}, "is no address"),
        ({"host": "192.0.2.1"}, "cannot listen"),
        ({"place": Place("nosuch", None)}, "unknown snapshot 'nosuch'"),
        ({"place": Place(None, "nosuch")}, "unknown view 'nosuch'"),
        ({"media_roots": ("/no/such/folder",)}, "is not a folder"),
    ],
)
def test_what_it_cannot_do_is_told_before_it_serves(gallery, arguments: dict[str, object], said: str) -> None:
    assert said in refused(gallery.uri, **arguments)
