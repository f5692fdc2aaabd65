"""A client of the official SDK asks a catalog, over pipes and over HTTP of this machine."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import cv2
import httpx
import mcp_types as types
import numpy as np
import pytest
from mcp import Client, StdioServerParameters

from evicat.readers.tool import TOOLS
from evicat.readers.trace_store import TraceStore

from ..viewer.gallery import OTHER, Gallery, make_gallery

LONGEST_S = 60
"""Far beyond what anything here takes: reached only where something hangs."""
COMMAND = [sys.executable, "-m", "evicat.flows.cli", "mcp"]


def crop(start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {"start_time": start, "end_time": end, "sampling_strategy": "coarse"} | more


def pipes(uri: str, *options: str) -> StdioServerParameters:
    own = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--catalog", uri, *options], env=own | {"HF_HUB_OFFLINE": "1"}
    )


def ask(where: StdioServerParameters | str, questions: Callable[[Client], Awaitable[Any]]) -> Any:
    """What a client's questions give; nothing here waits for ever."""

    async def run() -> Any:
        with anyio.fail_after(LONGEST_S):
            async with Client(where, read_timeout_seconds=LONGEST_S) as client:
                return await questions(client)

    return anyio.run(run)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, ffmpeg: Path) -> Gallery:
    """Of these tests alone: traces are stored beside it."""
    return make_gallery(tmp_path_factory.mktemp("asked"), ffmpeg)


@pytest.fixture(scope="module")
def address(gallery: Gallery) -> Iterator[str]:
    """Of a server over HTTP; ended here."""
    process = subprocess.Popen(
        [*COMMAND, "--catalog", gallery.uri, "--http", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    watchdog = threading.Timer(LONGEST_S, process.kill)
    watchdog.start()
    assert process.stderr
    try:
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
        assert found, line
        watchdog.cancel()
        yield found[0]
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONGEST_S)
        assert (process.returncode, out) == (0, "")
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate(timeout=LONGEST_S)


def said(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def pictures(result: types.CallToolResult) -> list[np.ndarray[Any, Any]]:
    found = [block for block in result.content if isinstance(block, types.ImageContent)]
    assert {block.mime_type for block in found} <= {"image/jpeg"}
    raw = (np.frombuffer(base64.b64decode(block.data), np.uint8) for block in found)
    decoded = [cv2.imdecode(each, cv2.IMREAD_COLOR) for each in raw]
    return [each for each in decoded if each is not None]


async def everything(client: Client) -> None:
    """Lists the tools, calls them, and makes every mistake there is."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == {"list_videos", *TOOLS}
    for name in TOOLS:
        assert "video" in listed[name].input_schema["required"]
        assert listed[name].annotations
        assert listed[name].annotations.read_only_hint
    videos = await client.call_tool("list_videos", {"contains": "PLAIN"})
    assert [row["video"] for row in videos.structured_content["videos"]] == [OTHER]

    right = crop(0.0, 1.5, video=OTHER)
    cut = await client.call_tool("crop_video", right)
    shown = pictures(cut)
    assert not cut.is_error
    assert len(shown) == len(cut.structured_content["frames"]) > 0
    assert all(picture.ndim == 3 for picture in shown)

    for name, arguments, words in MISTAKES:
        result = await client.call_tool(name, arguments)
        assert result.is_error, (name, arguments)
        assert re.search(words, said(result)), said(result)
        assert "Traceback" not in said(result)
    assert not (await client.call_tool("crop_video", right)).is_error  # it goes on after all of them


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("crop_video", crop(0.0, 1.0), "list_videos"),
    (
        "crop_video",
        crop(0.0, 1.0, video=7),
        "every call names a video",
    ),
    (
        "crop_video",
        crop(0.0, 1.0, video="../../etc/passwd"),
        "passwd",
    ),
    (
        "crop_video",
        crop(1.0, 0.5, video=OTHER),
        "start < end",
    ),
    (
        "crop_video",
        crop(0.0, "1; DROP TABLE", video=OTHER),
        "end_time",
    ),
    (
        "crop_video",
        crop(0.0, 1.0, video=OTHER, more=1),
        "more",
    ),
    ("ClipSearch", {"video": OTHER, "query": 5}, "query"),
    ("list_videos", {"limit": 10**9}, "limit"),
    ("list_videos", {"contains": "x" * 10_000}, "contains"),
    ("__class__", {"video": OTHER}, "unknown tool"),
]


def test_a_client_lists_and_calls_the_tools_over_pipes(gallery: Gallery) -> None:
    ask(pipes(gallery.uri), everything)


def test_a_client_lists_and_calls_the_tools_over_http(address: str) -> None:
    ask(address, everything)


def test_a_page_of_another_origin_is_refused(address: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    foreign = httpx.post(address, json=asked, headers={"Origin": "https://example.org"}, timeout=LONGEST_S)
    renamed = httpx.post(address, json=asked, headers={"Host": "example.org"}, timeout=LONGEST_S)
    assert (foreign.status_code, renamed.status_code) == (403, 421)


def test_nothing_is_written_unless_told_and_a_fixed_video_is_no_argument(gallery: Gallery) -> None:
    async def questions(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(TOOLS)
        assert not any("video" in tool.input_schema["properties"] for tool in tools)
        assert (await client.call_tool("crop_video", crop(0.0, 1.0))).content

    folder = Path(gallery.uri)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    ask(pipes(gallery.uri, "--video", OTHER), questions)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_calls_are_stored_when_told(gallery: Gallery) -> None:
    async def questions(client: Client) -> None:
        await client.call_tool("crop_video", crop(0.0, 1.0))
        await client.call_tool("crop_video", crop(1.0, 0.0))

    store = TraceStore.of(gallery.uri)
    before = store.ids()
    ask(pipes(gallery.uri, "--video", OTHER, "--trace"), questions)
    [new] = [each for each in store.ids() if each not in before]
    assert [step.valid for step in store.load(new).steps] == [True, False]


def test_steps_are_stored_while_the_server_runs(gallery: Gallery) -> None:
    store = TraceStore.of(gallery.uri)
    before = store.ids()

    async def questions(client: Client) -> None:
        for _ in range(5):
            await client.call_tool("crop_video", crop(0.0, 1.0))
        [new] = [each for each in store.ids() if each not in before]  # what a kill would leave now
        assert len(store.load(new).steps) == 4

    ask(pipes(gallery.uri, "--video", OTHER, "--trace"), questions)


def test_an_unknown_video_is_told_before_anybody_connects(gallery: Gallery) -> None:
    done = subprocess.run(
        [*COMMAND, "--catalog", gallery.uri, "--video", "none.mp4"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.mp4" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_extra_says_how_to_install_it(gallery: Gallery) -> None:
    without = "import sys; sys.modules['mcp'] = None; from evicat.flows.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", without, "mcp", "--catalog", gallery.uri],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'evicat[mcp]'" in done.stderr
