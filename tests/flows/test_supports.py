"""Supports in a library: made by a run, shown by the command line, made again with what they rest on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from evicat.catalog.audit import audit
from evicat.catalog.query import SUPPORT_SCHEMA, Catalog
from evicat.catalog.sentences import sentences
from evicat.schemas.errors import WindowError
from evicat.storage.reader import Reader

pytestmark = pytest.mark.slow

EMBEDDER = """
[embedder]
name = "sentence-transformers"
model = "packaged:all-MiniLM-L6-v2"
"""
CUE = "1\n00:00:02,500 --> 00:00:03,500\n{}\n"


@pytest.fixture(scope="module")
def shared(new_rerun, tmp_path_factory: pytest.TempPathFactory):
    """A clip with a subtitle, indexed with supports; only read from."""
    made = new_rerun(tmp_path_factory.mktemp("supported"))
    prepare(made)
    assert made.index().all_done
    return made


def prepare(rerun) -> None:
    """One video with a subtitle, and a recipe with supports."""
    rerun.recipe.write_text(rerun.recipe.read_text() + EMBEDDER + "[supports]\n")
    say(rerun, "Look at the green light.")


def say(rerun, text: str) -> None:
    rerun.put("clip.mp4").with_suffix(".srt").write_text(CUE.format(text))


def supports(rerun) -> pl.DataFrame:
    return Catalog.open(str(rerun.catalog)).supports("clip.mp4")


def holds(rerun) -> bool:
    return audit(Reader.open(rerun.catalog)).holds


def test_every_sentence_of_every_narrative_has_its_support(shared) -> None:
    catalog, found = Catalog.open(str(shared.catalog)), supports(shared)
    narratives = catalog.entries("clip.mp4", kind="narrative")
    told = [sentence for text in narratives["text"] for sentence in sentences(text)]
    assert found["text"].to_list() == told
    assert found.schema == SUPPORT_SCHEMA
    (said,) = found.filter(pl.col("text").str.contains("green light")).to_dicts()
    best = said["rests_on"][0]
    assert (said["role"], best["kind"], best["start_s"]) == ("quoted", "speech", 2.5)
    assert holds(shared)


def test_show_prints_sentences_under_their_narratives(shared, evicat: Callable) -> None:
    run = evicat("show", "clip.mp4", "--supports", "--catalog", shared.catalog)
    assert run.code == 0
    assert "0:00:00.000-0:00:04.000 narrative-4s" in run.out
    (said,) = [line for line in run.out.splitlines() if "green light" in line]
    assert said.startswith("quoted")
    assert "0:00:02.500-0:00:03.500 speech 1.00" in said
    later = evicat("show", "clip.mp4", "--supports", "--between", "4:8", "--catalog", shared.catalog)
    assert "green light" not in later.out


def test_show_prints_them_as_json(shared, evicat: Callable) -> None:
    run = evicat("show", "clip.mp4", "--supports", "--json", "--catalog", shared.catalog)
    narratives = [json.loads(line) for line in run.out.splitlines()]
    assert [each["kind"] for each in narratives] == ["narrative", "narrative"]
    rows = [row for each in narratives for row in each["supports"]]
    assert [row["text"] for row in rows] == supports(shared)["text"].to_list()
    assert set(rows[0]) == {"sentence", "role", "text", "rests_on"}


def test_show_takes_no_other_kind(shared, evicat: Callable) -> None:
    run = evicat("show", "clip.mp4", "--supports", "--kind", "local", "--catalog", shared.catalog)
    assert run.code == 2
    assert "--supports is about narratives, got --kind local" in run.err


def test_status_and_producers_tell_of_them(shared, evicat: Callable) -> None:
    status = evicat("status", "--catalog", shared.catalog).out
    assert any("supports" in line and "1 done" in line for line in status.splitlines())
    run = evicat("producers", "--json", "--catalog", shared.catalog)
    (row,) = [row for row in map(json.loads, run.out.splitlines()) if row["kind"] == "support"]
    assert (row["state"], row["units"], row["windows"]) == ("active", 1, 1)
    assert evicat("status", "--check", "--catalog", shared.catalog).code == 0


def test_other_supports_call_no_describer_and_are_shown_once_they_are_active(rerun, evicat: Callable) -> None:
    prepare(rerun)
    rerun.index()
    before = supports(rerun)
    assert rerun.made_by(rerun.index) == []
    rerun.recipe.write_text(rerun.recipe.read_text() + "max_links = 1\n")
    assert rerun.made_by(rerun.index) == []
    assert supports(rerun).equals(before)
    run = evicat("producers", "--json", "--catalog", rerun.catalog)
    rows = [row for row in map(json.loads, run.out.splitlines()) if row["kind"] == "support"]
    (other,) = [row["producer_id"] for row in rows if row["state"] == "kept"]
    evicat("activate", other[:8], "--catalog", rerun.catalog)
    assert supports(rerun)["rests_on"].list.len().max() == 1
    (former,) = [row["producer_id"] for row in rows if row["state"] == "active"]
    assert Catalog.open(str(rerun.catalog)).supports("clip.mp4", producer=former[:8]).equals(before)
    assert holds(rerun)


def test_they_follow_what_a_later_run_makes_of_the_video(rerun) -> None:
    prepare(rerun)
    rerun.failing["sight", 2] = WindowError("no answer")
    rerun.index()
    before = supports(rerun)
    assert holds(rerun)
    rerun.failing.clear()
    rerun.index(retry=("failed", "stale"))
    after = supports(rerun)
    assert before["text"].to_list() != after["text"].to_list()
    assert holds(rerun)
    say(rerun, "Look at the other light.")
    rerun.index()
    assert "other light" in " ".join(supports(rerun)["text"])
    assert rerun.index().unchanged == 1
    assert holds(rerun)


def test_narratives_without_them_say_how_to_get_them(rerun, evicat: Callable, tmp_path: Path) -> None:
    rerun.put("clip.mp4")
    rerun.index()
    run = evicat("show", "clip.mp4", "--supports", "--catalog", rerun.catalog)
    assert "a recipe with [supports] makes them" in " ".join(run.out.split())
    assert supports(rerun).is_empty()
