"""A real browser, and the catalog that it is shown."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from .app_serving import served
from .gallery import Gallery, make_gallery

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium, Debian's or that of EVICAT_CHROMIUM. For one module: it holds an event loop."""
    found = os.environ.get("EVICAT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        message = "no chromium: install it (Debian: apt install chromium), or name it in EVICAT_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


@dataclass
class Seen:
    """What a page asked for and complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def outside(self, *inside: str) -> list[str]:
        """Addresses that begin with none of these."""
        return [each for each in self.requests if not each.startswith(("data:", *inside))]


class Tabs:
    """Opens pages, each in a context of its own, and watches them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._open: list[BrowserContext] = []
        self.seen = Seen()

    def open(self, address: str, *, width: int = 1280, height: int = 800, theme: str = "light") -> Page:
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
        )
        self._open.append(context)
        page = context.new_page()
        page.on("request", lambda request: self.seen.requests.append(request.url))
        page.on("console", lambda told: self.seen.complaints.append(told.text))
        page.on("pageerror", lambda error: self.seen.complaints.append(str(error)))
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        return page

    def close(self) -> None:
        for context in self._open:
            context.close()


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Tabs]:
    opened = Tabs(browser)
    yield opened
    opened.close()
    assert opened.seen.complaints == []


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory, ffmpeg: Path) -> Gallery:
    """Read only."""
    return make_gallery(tmp_path_factory.mktemp("gallery"), ffmpeg)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """Starts viewers: ``serve(uri, media_roots=())`` gives the address of one."""
    with ExitStack() as stack:
        yield lambda *told, **named: stack.enter_context(served(*told, **named))


@pytest.fixture(scope="module")
def viewer(serve: Callable[..., str], gallery: Gallery) -> str:
    """The address of a viewer of the gallery."""
    return serve(gallery.uri)
