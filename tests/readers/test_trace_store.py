"""Traces come back as they were stored, and their calls give the same again."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evicat.catalog.query import Catalog
from evicat.flows.cli import app
from evicat.readers.replay import replay
from evicat.readers.session import LONGEST_CALL, Session
from evicat.readers.trace import Trace
from evicat.readers.trace_store import Recorder, TraceStore
from evicat.schemas.errors import IntegrityError, UsageError

from ..viewer.gallery import OTHER, Gallery, make_gallery


def crop(start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {"start_time": start, "end_time": end, "sampling_strategy": "coarse"} | more


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, ffmpeg: Path) -> Gallery:
    """Of these tests alone: traces are stored beside it."""
    return make_gallery(tmp_path_factory.mktemp("asked"), ffmpeg)


@pytest.fixture(scope="module")
def trace(gallery: Gallery) -> Trace:
    """Of calls that hit, find nothing, and are not valid."""
    session = Session(Catalog.open(gallery.uri), OTHER, "What is shown?")
    session.call("crop_video", crop(0.0, 1.5))
    session.call("ClipSearch", {"query": "nothing of this kind is said"})
    session.call("crop_video", '{"start_time": 1.0, "end_time": NaN, "sampling_strategy": "coarse"}')
    session.call("crop_video", "no JSON \u2028 [red]")
    session.call("NoTool", {})
    return session.trace


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / "traces")


def test_a_trace_comes_back_as_it_was(store: TraceStore, trace: Trace) -> None:
    assert [step.valid for step in trace.steps] == [True, True, False, False, False]
    store.save(trace)
    assert store.load(trace.trace_id) == trace
    assert store.load(trace.trace_id[:12]) == trace


def test_it_is_stored_while_it_grows(store: TraceStore, trace: Trace) -> None:
    recorder = Recorder(store, every=2)
    stored = []
    for count in range(1, 6):
        recorder.keep(replace(trace, steps=trace.steps[:count]))
        stored.append(len(store.load(trace.trace_id).steps) if store.ids() else 0)
    recorder.keep(trace, ended=True)
    assert stored == [0, 2, 2, 4, 4]
    assert store.load(trace.trace_id) == trace


def test_a_trace_without_steps_leaves_no_file(store: TraceStore, trace: Trace) -> None:
    Recorder(store).keep(replace(trace, steps=()), ended=True)
    assert store.ids() == []


@pytest.mark.parametrize("name", ["../head", "", "a/b", ".", "a" * 200, "a\nb"])
def test_an_id_never_leaves_the_folder(store: TraceStore, trace: Trace, name: str) -> None:
    with pytest.raises(UsageError, match="letters"):
        store.save(replace(trace, trace_id=name))
    with pytest.raises(UsageError, match="no trace"):
        store.load(name)


def test_unknown_and_ambiguous_ids_say_what_there_is(store: TraceStore, trace: Trace) -> None:
    for name in ("abc1", "abc2"):
        store.save(replace(trace, trace_id=name))
    with pytest.raises(UsageError, match=r"2 traces begin with 'ab'.*abc1, abc2"):
        store.load("ab")
    with pytest.raises(UsageError, match=r"near it: abc"):
        store.load("abc3")


@pytest.mark.parametrize("content", [b"", b"PAR1 torn", os.urandom(300)])
def test_a_broken_file_is_named(store: TraceStore, trace: Trace, content: bytes) -> None:
    store.save(trace)
    (store.folder / f"{trace.trace_id}.parquet").write_bytes(content)
    with pytest.raises(IntegrityError, match=trace.trace_id):
        store.load(trace.trace_id)


def test_replay_gives_the_same_and_says_what_differs(gallery: Gallery, trace: Trace) -> None:
    assert [result.differs for result in replay(trace)] == [()] * 5
    changed = replace(trace.steps[0], text="something else", entry_ids=("no.such.entry",))
    other = replace(trace, steps=(changed, *trace.steps[1:]))
    assert [set(result.differs) for result in replay(other)] == [{"text", "entry_ids"}, *[set()] * 4]


def test_the_command_lists_shows_and_replays(gallery: Gallery, trace: Trace) -> None:
    store = TraceStore.of(gallery.uri)
    store.save(trace)
    store.save(replace(trace, trace_id="changed", steps=(replace(trace.steps[0], text="else"),)))

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["trace", *words, "--catalog", gallery.uri], env={"COLUMNS": "200"})
        return done.exit_code, done.output

    listed = [json.loads(line) for line in run("list", "--json")[1].splitlines()]
    [own] = [row for row in listed if row["trace_id"] == trace.trace_id]
    assert (own["steps"], own["invalid"], own["video"]) == (5, 3, OTHER)
    code, shown = run("show", trace.trace_id)
    assert (code, shown.count("not valid")) == (0, 3)
    assert "[red]" in shown
    assert run("replay", trace.trace_id)[0] == 0
    code, told = run("replay", "changed")
    assert code == 1
    assert "text differs" in told


def test_what_a_model_answered_or_is_kept_cut_is_not_made_again(trace: Trace) -> None:
    answered = replace(trace.steps[0], tokens=(7, 1))
    cut = replace(trace.steps[3], raw="x" * LONGEST_CALL)
    results = replay(replace(trace, steps=(answered, cut, trace.steps[0])))
    assert [result.after is None for result in results] == [True, True, False]


def test_upkeep_of_the_catalog_leaves_traces_alone(gallery: Gallery, trace: Trace, tmp_path: Path) -> None:
    store = TraceStore.of(gallery.uri)
    store.save(trace)
    done = CliRunner().invoke(app, ["maintain", "--catalog", gallery.uri])
    assert done.exit_code == 0, done.output
    assert store.load(trace.trace_id) == trace

    def proofs() -> list[Any]:
        told = CliRunner().invoke(app, ["status", "--check", "--json", "--catalog", gallery.uri]).output
        rows = [json.loads(line) for line in told.splitlines()]
        return [row | {"cases": sorted(map(json.dumps, row["cases"]))} for row in rows]

    beside = proofs()
    store.folder.rename(tmp_path / "away")
    without = proofs()
    (tmp_path / "away").rename(store.folder)
    assert len(beside) > 3
    assert beside == without
