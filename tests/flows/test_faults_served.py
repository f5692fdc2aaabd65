"""A whole run over a server that answers anything at all: what is kept, told, and made again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evicat.catalog.query import Catalog

from ..catalog.engines.chat_server import MODEL, ChatServer, Fault

pytest.importorskip("openai", reason="the served engine needs the package 'openai'")
pytestmark = pytest.mark.slow  # each starts whole runs

TELLTALE = "oops-0815"
"""Stands in every fault, so that none of it is found in an entry."""
LOCAL = {
    "objects": ["a red mug"],
    "colours": [],
    "place": "",
    "screen_text": [],
    "spoken_clues": [],
    "people": [],
    "entities": [],
    "actions": [],
    "interactions": [],
    "social_cues": [],
    "changes": [],
    "scene": "a mug on a table",
}
RECIPE = f"""
name = "served"
[[scales]]
kind = "local"
window_seconds = 0.5
describer = "vlm-local"
frames = {{ per_window = 2, max_width = 64 }}
options = {{ model = "{MODEL}" }}
"""


def said(content: Any, finish: Any = "stop", **fields: Any) -> Fault:
    """An answer with this content."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return Fault(
        body={"id": "1", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}
        | fields
    )


def told(**fields: Any) -> str:
    return json.dumps(LOCAL | fields)


def nested(depth: int) -> str:
    return '{"scene": ' + "[" * depth + f'"{TELLTALE}"' + "]" * depth + "}"


ANSWERS: dict[str, tuple[str, Fault]] = {
    "an error in words": ("Answer", said(f"Error: {TELLTALE}: CUDA out of memory")),
    "an error in JSON": ("Answer", said(json.dumps({"error": TELLTALE}))),
    "a null": ("Answer", said("null")),
    "a list": ("Answer", said(f'["{TELLTALE}"]')),
    "two objects": ("Answer", said(told() + told(scene=TELLTALE))),
    "words around it": ("Answer", said(f"Here it is, {TELLTALE}: {told()}")),
    "NaN": ("Answer", said(told(place=TELLTALE).replace("[]", "NaN"))),
    "a number too long": ("Answer", said(f'{{"scene": {"9" * 5000}, "place": "{TELLTALE}"}}')),
    "a key twice": ("Answer", said(told()[:-1] + f', "scene": "{TELLTALE}"}}')),
    "deep nesting": ("Answer", said(nested(900))),
    "deeper nesting": ("Answer", said(nested(90_000))),
    "blanks without end": ("Answer", said(" \n" * 50_000 + TELLTALE)),
    "a megabyte": ("Answer", said(told(scene=TELLTALE + "word " * 200_000))),
    "a loop": ("Answer", said(told(scene=f"{TELLTALE} goes on. " * 20))),
    "a loop of short words": ("Answer", said(told(scene=f"{TELLTALE}! " + "No. " * 60))),
    "no words": ("Answer", said(told(scene="..."))),
    "a lone surrogate as words": ("Answer", said(f"\ud800 {TELLTALE} \x00")),
    "nothing": ("Answer", said("")),
    "no content": ("Answer", said(None)),
    "only a tool call": ("Answer", said(None, "tool_calls")),
    "an object in place of words": ("Request", said({"text": TELLTALE})),
    "no choices": ("Answer", said("", choices=[])),
    "broken choices": ("Request", said("", choices=TELLTALE)),
    "a cut": ("Truncated", said(f'{{"scene": "{TELLTALE}', "length")),
    "a cut that says stop": ("Truncated", said(f'{{"scene": "{TELLTALE}')),
    "thoughts without end": ("Truncated", said(f"<think>{TELLTALE}")),
    "a refusal": ("Refused", said(f"\ud800 {TELLTALE}", "content_filter")),
    "broken JSON around it": ("Request", Fault(body=f'{{"choices": "{TELLTALE}')),
    "an error with status 200": ("Request", Fault(body={"error": {"message": f"{TELLTALE} \ud800"}})),
    "status 400": ("Request", Fault(status=400, body={"error": {"message": f"{TELLTALE} \ud800 \x00"}})),
    "status 422 in HTML": ("Request", Fault(status=422, body=f"<html>{TELLTALE}</html>")),
    "status 413": ("TooLong", Fault(status=413, body=TELLTALE)),
    "a count of tokens that is none": (
        "",
        said(told(), usage={"prompt_tokens": 10**30, "completion_tokens": "x"}),
    ),
    "a fence": ("", said(f"```json\n{told()}\n```")),
    "thoughts before it": ("", said(f"<think>{TELLTALE} {{}}</think>\n<think>So.</think>{told()}")),
    "content in parts": ("", said([{"type": "text", "text": told()}])),
    "right to left": ("", said(told(scene="\u202e\u05e9\u05dc\u05d5\u05dd"))),
    "characters that are no text": ("", said(told(objects=["a\x00b", "c\ud800", "\x1b[31md"]))),
    "times that are none": (
        "",
        said(
            told(
                changes=[
                    {"t": t, "what": f"{TELLTALE} {n}"}
                    for n, t in enumerate((-1, 1e300, "soon", "99:99", 1e9))
                ]
            ).replace("1e+300", "1e400")
        ),
    ),
}
"""By kind: the error class that is to stand in the ledger (none: an entry is written), and the answer."""


class Odd(ChatServer):
    """Answers each window of 0.5 s with the next kind of fault, whenever it is asked for that window."""

    faulty = True

    def next_fault(self) -> Fault:
        label = next(part["text"] for part in self.asked[-1]["messages"][-1]["content"])
        seconds = float(label.removeprefix("Frame at 0:").rstrip(":"))
        if self.asked[-1]["max_tokens"] == 64:  # a trial before the first window
            return Fault()
        if not self.faulty:
            return said(told())
        return list(ANSWERS.values())[int(seconds * 2)][1]


@pytest.fixture
def server() -> Iterator[Odd]:
    with Odd() as made:
        yield made


@pytest.fixture
def clip(tmp_path, ffmpeg) -> Path:
    """As many windows of 0.5 s as there are kinds of answers."""
    (tmp_path / "media").mkdir()
    path = tmp_path / "media" / "a.mp4"
    source = f"testsrc2=s=64x48:r=4:d={len(ANSWERS) / 2}"
    subprocess.run(
        [ffmpeg, "-loglevel", "error", "-f", "lavfi", "-i", source, "-g", "4", str(path)], check=True
    )
    return path


@pytest.fixture
def index(evicat, server, clip, tmp_path):
    (tmp_path / "r.toml").write_text(RECIPE)
    where = f'endpoint = "{server.url}"\npatience_seconds = 2\nconcurrency = 1'
    (tmp_path / "p.toml").write_text(f'[engines."{MODEL}"]\n{where}\n')

    def run(*more, catalog="c"):
        before = len(server.asked)
        made = evicat(
            "index",
            clip.parent,
            "-c",
            catalog,
            "--recipe",
            "r.toml",
            "--profile",
            "p.toml",
            *more,
            cwd=tmp_path,
        )
        return made.code, f"{made.out} {made.err}", len(server.asked) - before

    return run


def test_whatever_is_answered_is_an_outcome_and_never_an_entry(
    index, server, evicat, tmp_path, equal_part
) -> None:
    code, out, _ = index()
    assert code == 3, out
    assert "unexpected" not in out
    catalog = Catalog.open(str(tmp_path / "c"))
    rows = catalog.coverage().sort("start_s")
    found = dict(zip(ANSWERS, rows["error_class"], strict=True))
    assert found == {kind: error_class for kind, (error_class, _) in ANSWERS.items()}
    entries = catalog.entries()
    assert len(entries) == sum(not error_class for error_class, _ in ANSWERS.values())
    assert TELLTALE not in str(entries.to_dicts())
    assert rows["raw"].str.len_chars().max() < 101_000
    assert max(rows["attempts"]) <= 3
    checked = evicat("status", "-c", "c", "--check", cwd=tmp_path)
    assert checked.code == 0, checked.out
    assert index()[::2] == (3, 0), "what failed is made again only where it is asked for"

    server.faulty = False
    written = set(entries["entry_id"])
    failed = rows.filter(pl.col("error_class") != "")
    code, out, asked = index("--retry", "failed", "--retry", "refused")
    assert (code, asked) == (0, len(failed) + 2), out
    assert evicat("status", "-c", "c", "--check", cwd=tmp_path).code == 0
    assert index(catalog="unbroken")[0] == 0
    healed = equal_part(tmp_path / "c").filter(~pl.col("entry_id").is_in(written))
    assert healed.equals(equal_part(tmp_path / "unbroken").filter(~pl.col("entry_id").is_in(written)))
    assert len(healed) == len(failed)
