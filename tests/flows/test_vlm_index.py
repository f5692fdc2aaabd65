"""A library indexed by vision-language describers; the model's part is played by a recording engine."""

import json
import shutil
from concurrent.futures import Future
from typing import ClassVar

import pytest

from evicat.catalog import kit
from evicat.catalog.engines.base import ChatAnswer, Engine
from evicat.catalog.query import Catalog

RECIPE = """
name = "vlm"
[[scales]]
kind = "local"
window_seconds = 4
describer = "vlm-local"
frames = { per_window = 3, max_width = 160 }
options = { model = "m", dialogue = true }
[[scales]]
kind = "narrative"
window_seconds = 6
describer = "vlm-narrative"
frames = { per_window = 4, max_width = 160 }
options = { model = "m" }
[speech]
subtitles = "only"
"""
SUBTITLES = (
    "1\n00:00:01,000 --> 00:00:02,000\nWho is there?\n\n2\n00:00:07,000 --> 00:00:08,000\nIt is Paul.\n"
)
TELLTALE = "butler-did-it"


class RecordingEngine(Engine):
    """Answers by its schema, and keeps what it was asked. Of one stretch it tells another cast."""

    name = "recording"
    asked: ClassVar = []
    refuses: ClassVar = ()

    def check(self, request): ...

    def submit(self, request):
        self.asked.append(request)
        text = "\n".join(request.texts)
        future = Future()
        number = len(self.asked)
        if "narrative" in request.schema["properties"]:
            begins = text.partition("This stretch: ")[2].partition("-")[0]
            paul = "Paul" in text
            one = {"name": "Paul" if paul else "the visitor", "descriptor": "a red box", "formerly": ""}
            one["formerly"] = "the visitor" if paul else ""
            told = {"narrative": f"Told from {begins} on.", "cast": [one]}
        else:
            told = {n: [] if f["type"] == "array" else "" for n, f in request.schema["properties"].items()}
            told |= {"scene": f"picture {text.count('Frame at')}", "objects": ["a box"]}
        refused = any(f"This stretch: {begin}" in text for begin in self.refuses)
        reason = "refused" if refused else "stop"
        future.set_result(ChatAnswer(json.dumps(told), reason, 100, number, "m"))
        return future

    def close(self): ...


@pytest.fixture
def recording(monkeypatch):
    monkeypatch.setattr(RecordingEngine, "asked", [])
    monkeypatch.setattr(RecordingEngine, "refuses", ())
    monkeypatch.setattr(
        kit, "open_engine", lambda model, profile: RecordingEngine(model, profile.engines["*"], profile)
    )
    return RecordingEngine


@pytest.fixture
def library(tmp_path, colour_clips):
    """One clip of 8 s whose file, id and benchmark give the answer away."""
    shutil.copy(colour_clips["red"], tmp_path / f"{TELLTALE}.mp4")
    (tmp_path / f"{TELLTALE}.srt").write_text(SUBTITLES)
    (tmp_path / "vlm.toml").write_text(RECIPE)
    (tmp_path / "p.toml").write_text('[engines."*"]\nengine = "openai"\nconcurrency = 4\n')
    row = {"id": f"{TELLTALE}-id", "path": f"{TELLTALE}.mp4", "benchmark": TELLTALE, "source_id": TELLTALE}
    (tmp_path / "m.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


@pytest.fixture
def index(evicat, library):
    def run(*more):
        return evicat(
            "index", "m.jsonl", "-c", "c", "--recipe", "vlm.toml", "--profile", "p.toml", *more, cwd=library
        )

    return run


def test_names_ids_and_manifests_never_reach_a_prompt(index, recording, library):
    run = index()
    assert run.code == 0, run.err
    assert len(recording.asked) == 4
    for request in recording.asked:
        told = "\n".join([*request.texts, json.dumps(request.schema)])
        assert TELLTALE not in told
        assert "butler" not in told
        assert "vlm" not in told
        assert all(TELLTALE.encode() not in picture.jpeg for picture in request.pictures)
    heard = ["Who is there?" in "\n".join(request.texts) for request in recording.asked]
    assert sum(heard) == 2, "one local window and one narrative"


def test_entries_cast_and_ledger_hold_what_was_told_and_a_second_run_asks_nothing(
    index, recording, library, evicat
):
    index()
    catalog = Catalog.open(str(library / "c"))
    assert catalog.entries(kind="narrative")["text"].to_list() == [
        "Told from 0:00.0 on.",
        "Told from 0:06.0 on.",
    ]
    (paul,) = catalog.cast(f"{TELLTALE}-id").to_dicts()
    assert (paul["identity"], paul["formerly"], len(paul["entries"])) == ("Paul", ["the visitor"], 2)
    assert (paul["first_seen_s"], paul["last_seen_s"]) == (0.0, 8.0)
    units = catalog.units().filter(kind="local")
    assert units["prompt_tokens"].to_list() == [200]
    asked = len(recording.asked)
    assert index().code == 0
    assert len(recording.asked) == asked
    checked = evicat("status", "-c", "c", "--check", cwd=library)
    assert checked.code == 0, checked.out


def test_a_refused_narrative_leaves_a_gap_that_the_next_is_told_of(index, recording, library, evicat):
    recording.refuses = ("0:00.0",)
    assert index().code == 3
    catalog = Catalog.open(str(library / "c"))
    outcomes = catalog.coverage().filter(kind="narrative")["outcome"].to_list()
    assert outcomes == ["refused", "done"]
    last = next(request for request in recording.asked if "This stretch: 0:06.0" in "\n".join(request.texts))
    assert "Nothing before this stretch was described" in "\n".join(last.texts)
    assert evicat("status", "-c", "c", "--check", cwd=library).code == 0


def test_other_subtitles_make_what_hears_them_again(index, recording, library):
    index()
    (library / f"{TELLTALE}.srt").write_text(SUBTITLES.replace("Who", "What"))
    before = len(recording.asked)
    assert index().code == 0
    again = ["\n".join(request.texts) for request in recording.asked[before:]]
    assert len(again) == 4
    assert sum("What is there?" in text for text in again) == 2


def test_a_narrative_that_is_made_later_makes_the_next_stale_until_it_is_told_anew(
    index, recording, library, evicat
):
    recording.refuses = ("0:00.0",)
    index()
    recording.refuses = ()
    assert index("--retry", "refused").code == 0
    catalog = Catalog.open(str(library / "c"))
    assert catalog.coverage().filter(kind="narrative")["outcome"].to_list() == ["done", "stale"]
    assert evicat("status", "-c", "c", "--check", cwd=library).code == 0
    before = len(recording.asked)
    assert index("--retry", "stale").code == 0
    (again,) = recording.asked[before:]
    assert "What came before (0:00.0-0:06.0): Told from 0:00.0 on." in "\n".join(again.texts)
    catalog = Catalog.open(str(library / "c"))
    assert catalog.coverage().filter(kind="narrative")["outcome"].to_list() == ["done", "done"]
    assert evicat("status", "-c", "c", "--check", cwd=library).code == 0
