"""The viewer over a catalog of 1,000 videos of an hour: first page, search, many readers, a long film.

The server is ``evicat view`` as users start it; a client on loopback takes every time, so it holds both
ways. Bounds: a page of the library, also the very first one, 300 ms; a search by words that of the API here
plus 20 ms; 50 readers for a minute without an error, and the server's memory at the end at most a tenth above
that after 10 s. Of a film of 95 min that Chromium opens at minute 90, a fifth is sent at most: what Chromium
reads ahead, some 25 MB, is the same for longer films.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import library
import media
import uvicorn
from sides import end, keep
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.catalog.query import Catalog
from evicat.catalog.sources import find
from evicat.schemas.identity import Producer
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US
from evicat.viewer.app import make_app
from evicat.viewer.app_catalogs import Catalogs, Place

WINDOW_US = 10 * US
HOUR_US = 3600 * US
QUERIES = 30
FIRST_MS, MORE_MS, GROWTH, SHARE = 300.0, 20.0, 1.10, 0.20
FILM_MINUTES, OPENED_AT_S = 95, 5400
SHOWN = """seconds => {
  const player = document.getElementById("player");
  return player.readyState >= 2 && player.currentTime >= seconds;
}"""
LOCAL = Producer(kind="local", scale="local-10s", component="bench", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="bench", version=1)


def make(folder: Path, videos: int) -> None:
    """``many.catalog``: entries, but no films."""
    library.put_files(folder / "media", videos)
    sources, _ = find([str(folder / "media")])
    assets = [library.asset_of(source.path, HOUR_US) for source in sources]
    layers = [
        library.Layer(LOCAL, WINDOW_US, writes_entries=True),
        library.Layer(SPEECH, 300 * US),
    ]
    library.write_catalog(folder / "many.catalog", assets, layers, sources)


@contextmanager
def viewer(uri: Path) -> Iterator[tuple[str, int]]:
    """Host and port of ``evicat view``, and its process id."""
    command = [sys.executable, "-m", "evicat.flows.cli", "view", "--catalog", str(uri), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", running.stdout.readline())
        assert found, "the viewer did not start"
        try:
            yield found[0], running.pid
        finally:
            running.send_signal(signal.SIGINT)


def get(host: str, path: str) -> bytes:
    """The body of an answer.

    Raises:
        RuntimeError: it is none but an error.
    """
    connection = http.client.HTTPConnection(host, timeout=120)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{path}: {answer.status}")
        return body
    finally:
        connection.close()


def took_ms(work: object, *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)  # type: ignore[operator]
    return (time.perf_counter() - started) * 1000


def told(name: str, value: float, bound: float, unit: str, **more: float) -> bool:
    """Print and keep a number; whether it is within its bound."""
    verdict = "within" if value <= bound else "OVER"
    sides = "".join(f", {key} {each:.1f}" for key, each in more.items())
    print(f"{name}: {value:.2f} {unit}{sides} ({verdict} {bound:g})", flush=True)
    keep(f"view: {name}", {"value": value, "bound": bound, "ratio": value / bound, **more})
    return value <= bound


def first_page(host: str) -> bool:
    first = took_ms(get, host, "/")
    rest = [took_ms(get, host, f"/?page={1 + number % 20}") for number in range(QUERIES)]
    within = told("first page of 1,000 videos, very first", first, FIRST_MS, "ms")
    return told("first page of 1,000 videos, median", statistics.median(rest), FIRST_MS, "ms") and within


def searching(host: str, uri: Path) -> bool:
    """Both sides in turn, the same words; the first of each is not counted."""
    catalog = Catalog.open(str(uri))
    chooser = random.Random(3)
    words = [" ".join(chooser.choices(list(library.WORDS), k=2)) for _ in range(QUERIES + 1)]
    pages, answers = [], []
    for each in words:
        pages.append(took_ms(get, host, f"/search?mode=text&q={quote(each)}"))
        answers.append(took_ms(lambda query: catalog.search(query, mode="text", limit=20), each))
    page_ms, api_ms = statistics.median(pages[1:]), statistics.median(answers[1:])
    return told("search, page above API", page_ms - api_ms, MORE_MS, "ms", page_ms=page_ms, api_ms=api_ms)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


def warm(host: str, uri: Path) -> None:
    """Every word once, and some videos: what is read for the first time is kept, and that is no leak."""
    assets = Catalog.open(str(uri)).videos()["asset_id"].to_list()[::7]
    paths = [f"/search?mode=text&q={quote(str(word))}" for word in library.WORDS]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: get(host, path), [*paths, *(f"/v/{each}" for each in assets)]))


def crowd(host: str, pid: int, uri: Path, readers: int, seconds: float) -> bool:
    """Readers that ask for pages of all sorts, one after the other, for a while."""
    warm(host, uri)
    assets = Catalog.open(str(uri)).videos()["asset_id"].to_list()
    until = time.monotonic() + seconds
    answered: Counter[str] = Counter()
    errors: list[str] = []

    def read(number: int) -> None:
        chooser = random.Random(number)
        while time.monotonic() < until:
            word = quote(str(chooser.choice(list(library.WORDS))))
            asset = chooser.choice(assets)
            path = chooser.choice(
                ["/", f"/?page={chooser.randint(1, 20)}", f"/search?mode=text&q={word}", f"/v/{asset}"]
            )
            try:
                get(host, path)
                answered[path.split("?")[0][:3]] += 1
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                errors.append(f"{path}: {error}")

    threads = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    time.sleep(min(10.0, seconds / 2))
    early = memory_mb(pid)
    for thread in threads:
        thread.join()
    late = memory_mb(pid)
    print(
        f"{readers} readers, {seconds:g} s: {sum(answered.values())} answers {dict(answered)}; {errors[:3]}"
    )
    within = told(
        "memory at the end over that after 10 s", late / early, GROWTH, "", early_mb=early, late_mb=late
    )
    return told("errors of all readers", float(len(errors)), 0.5, "") and within


class Counting:
    """An app that counts the bytes of media that it sends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.sent = 0
        self.ranges: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_media = scope["type"] == "http" and scope["path"].startswith("/media/")
        if is_media:
            self.ranges.append(dict(scope["headers"]).get(b"range", b"all").decode())

        async def counted(message: Message) -> None:
            await send(message)
            if is_media:
                self.sent += len(message.get("body", b""))

        await self._app(scope, receive, counted)


def long_film(folder: Path) -> bool:
    """Open the page of a film at minute 90 in a browser, and count what it was sent of the film."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium here: what a browser takes of a long film was not measured")
        return True
    film = folder / "films" / "long.mp4"
    film.parent.mkdir()
    media.real_film(film, FILM_MINUTES)
    for path in film.parent.iterdir():
        if path.is_file() and path != film:
            path.unlink()
    sources, _ = find([str(film)])
    asset_id, size = hash_file(film)
    asset = probe(film, asset_id=asset_id, size_bytes=size)
    uri = folder / "long.catalog"
    library.write_catalog(uri, [asset], [library.Layer(LOCAL, WINDOW_US, writes_entries=True)], sources)
    profile = Profile()
    app = Counting(make_app(Catalogs(str(uri), profile, Place(None, None)), profile, None))
    with socket.create_server(("127.0.0.1", 0)) as listening, sync_playwright() as playwright:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        page = browser.new_page()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/v/{asset_id}?t={OPENED_AT_S}"
        started = time.perf_counter()
        page.goto(address)
        page.wait_for_function(SHOWN, arg=OPENED_AT_S, timeout=120_000)
        shown_s = time.perf_counter() - started
        page.wait_for_timeout(3000)
        browser.close()
        server.should_exit = True
        thread.join()
    print(f"minute 90 was shown after {shown_s:.1f} s; asked for {app.ranges}", flush=True)
    return told(
        "film opened at minute 90, share of it that was sent",
        app.sent / size,
        SHARE,
        "",
        sent_mb=app.sent / 1e6,
        film_mb=size / 1e6,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=1_000)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="for which they read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uri = folder / "many.catalog"
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, options.videos))
        maker.start()
        maker.join()
        assert maker.exitcode == 0, "the catalog could not be made"
        with viewer(uri) as (host, pid):
            within = [
                first_page(host),
                searching(host, uri),
                crowd(host, pid, uri, options.readers, options.seconds),
            ]
        within.append(long_film(folder))
    end(*within)


if __name__ == "__main__":
    main()
