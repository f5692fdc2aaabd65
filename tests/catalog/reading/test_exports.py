"""Exports: complete, free of leaks, and read back by the tools that people use."""

import json
import multiprocessing
import os
import signal
import tarfile

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pysubs2
import pytest

from evicat.catalog.exports.export import _folder_beside, export
from evicat.catalog.exports.rows import EXPORT_SCHEMA, Choice, choose
from evicat.catalog.exports.splits import parse_shares, split_of
from evicat.schemas.entry import Entry, Outcome, WindowResult
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp, VideoName
from evicat.schemas.span import US, Span
from evicat.storage.store import Store

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)
SHARES = {"train": 0.5, "test": 0.5}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory, making_shelf, direction):
    shelf = making_shelf(tmp_path_factory.mktemp("exports") / "catalog")
    for number in range(6):
        rows = [
            (at, at + 10, f"picture {at}", {"vector": direction(1, at + number + 1)})
            for at in range(0, 40, 10)
        ]
        shelf.write(f"folder/v{number}.mp4", LOCAL, rows)
    speech = [
        (1, 2.5, 'she\nsays: "a --> b" {\\i1}<b>', {"speaker": "Ann"}),
        (3, 4, "doubted", {"flags": ("unsure_speech",)}),
        (5, 5.0004, "very short, ünïcode 日本語"),
    ]
    shelf.write("folder/v0.mp4", SPEECH, speech)
    return shelf.catalog


def test_parquet_is_read_by_everybody(catalog, tmp_path):
    import datasets

    done = export(catalog, tmp_path / "out", "parquet", Choice(shares=SHARES), vectors=True)
    assert sum(done.rows.values()) == 26
    assert done.left_out == {"flagged": 1, "partial": 0}
    pattern = str(tmp_path / "out" / "t*" / "*.parquet")
    assert pl.read_parquet(pattern).schema == EXPORT_SCHEMA
    assert len(pl.read_parquet(pattern)) == 26
    assert duckdb.sql(f"SELECT count(*) FROM '{pattern}' WHERE kind = 'speech'").fetchall() == [(2,)]
    local = next((tmp_path / "out").glob("*/local.parquet"))
    assert pd.read_parquet(local)["text"].str.startswith("picture").all()
    files = {split: str(tmp_path / "out" / split / "*.parquet") for split in done.rows}
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == done.rows
    vectors = pl.read_parquet(str(tmp_path / "out" / "vectors" / "*" / "*.parquet"))
    assert len(vectors) == 24
    assert len(vectors["vector"][0]) == 384


def test_json_lines_hold_the_same_rows(catalog, tmp_path):
    export(catalog, tmp_path / "out", "jsonl")
    rows = [json.loads(line) for file in (tmp_path / "out" / "all").iterdir() for line in _lines(file)]
    assert len(rows) == 26
    assert {"entry_id", "text", "source_id", "split"} <= rows[0].keys()


def _lines(file):
    return file.read_text(encoding="utf-8").splitlines()


def test_no_source_is_in_two_splits_and_none_moves_when_the_library_grows(catalog):
    rows = choose(catalog, Choice(shares=SHARES)).rows
    assert rows.group_by("source_id").agg(pl.col("split").n_unique())["split"].to_list() == [1] * 6
    assert set(rows["split"]) == {"train", "test"}
    before = {f"s{n}": split_of(f"s{n}", SHARES, seed=3) for n in range(2000)}
    assert abs(sum(split == "train" for split in before.values()) / 2000 - 0.5) < 0.05
    assert before != {name: split_of(name, SHARES, seed=4) for name in before}


def test_subtitles_say_what_the_entries_say(catalog, tmp_path):
    for form in ("srt", "vtt"):
        export(catalog, tmp_path / form, form, Choice(kind="speech", flagged=True))
        (file,) = (tmp_path / form).glob(f"*.{form}")
        assert file.name == f"folder_v0.mp4.speech.{form}"
        cues = list(pysubs2.SSAFile.load(str(file)))
        assert [(cue.start, cue.end) for cue in cues] == [(1000, 2500), (3000, 4000), (5000, 5001)]
        assert cues[0].plaintext == 'Ann: she says: "a \u2192 b" (/i1)\u2039b\u203a'
        assert cues[2].plaintext.endswith("日本語")


def test_markers_have_exact_times_and_lead_back(catalog, tmp_path):
    export(catalog, tmp_path / "out", "csv", Choice(video="v1.mp4"))
    (file,) = (tmp_path / "out").glob("*.csv")
    rows = pl.read_csv(file)
    assert rows["start"].to_list() == ["0:00:00.000", "0:00:10.000", "0:00:20.000", "0:00:30.000"]
    assert set(rows["entry_id"]) == set(catalog.entries("v1.mp4")["entry_id"])


def test_videos_whose_names_are_alike_have_files_of_their_own(shelf, tmp_path):
    for name in ("a/b.mp4", "a_b.mp4", "A_B.mp4", "...", "/"):
        shelf.write(name, LOCAL, [(0, 10, name)])
    done = export(shelf.catalog, tmp_path / "out", "srt")
    names = [file.name for file in (tmp_path / "out").glob("*.srt")]
    assert len({name.lower() for name in names}) == done.files == 5


def test_the_manifest_says_where_it_comes_from(catalog, tmp_path):
    export(catalog, tmp_path / "out", "parquet", Choice(kind="local", shares=SHARES, seed=9))
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert facts["catalog_head"] == catalog.version
    assert facts["view"] == "default"
    assert facts["choice"]["shares"] == SHARES
    assert facts["choice"]["seed"] == 9
    assert sum(facts["rows"].values()) == 24


@pytest.mark.parametrize(
    ("form", "more", "said"),
    [
        ("xml", {}, r"format 'xml'.*parquet"),
        ("srt", {"vectors": True}, "vectors go with parquet"),
        ("parquet", {"choice": Choice(kind="narrative")}, "no entry fits"),
        ("parquet", {"choice": Choice(shares={"a": 0.5})}, "add up to 1, got 0.5"),
        ("parquet", {"choice": Choice(shares={"a": 1.5, "b": -0.5})}, "above 0, got -0.5"),
    ],
)
def test_what_cannot_be_exported_leaves_nothing(catalog, tmp_path, form, more, said):
    with pytest.raises((UsageError, UnknownNameError), match=said):
        export(catalog, tmp_path / "out", form, **more)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_not_written_to(catalog, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        export(catalog, tmp_path, "parquet")


def test_a_split_that_nothing_fell_into_is_told(shelf, tmp_path):
    shelf.write("a.mp4", SPEECH, [(0, 1, "hello")])
    done = export(shelf.catalog, tmp_path / "out", "jsonl", Choice(shares={"train": 0.5, "test": 0.5}))
    assert sorted(done.rows.values()) == [0, 1]
    assert json.loads((tmp_path / "out" / "export.json").read_text())["rows"] == done.rows
    with pytest.raises(UsageError, match="splits go with parquet, jsonl or webdataset"):
        export(shelf.catalog, tmp_path / "srt", "srt", Choice(shares={"train": 0.5, "test": 0.5}))


def test_the_folder_that_one_is_in_is_not_replaced(shelf, tmp_path, monkeypatch):
    shelf.write("a.mp4", SPEECH, [(0, 1, "hello")])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="is the current folder"):
        export(shelf.catalog, ".", "csv")
    assert export(shelf.catalog, "out", "csv").files == 1


def test_odd_texts_stay_in_their_cues(shelf, tmp_path):
    texts = ["[V4+ Styles]", "{1}{2}x", "WEBVTT", "42", "1 00:00:01,000 00:00:02,000", "A &lt; B & C"]
    rows = [(at, at + 1, text, {"speaker": "A\n\nB --> {c}"}) for at, text in enumerate(texts)]
    shelf.write("a.mp4", SPEECH, rows)
    for form in ("srt", "vtt"):
        export(shelf.catalog, tmp_path / form, form)
        (file,) = (tmp_path / form).glob(f"*.{form}")
        lines = file.read_text(encoding="utf-8").splitlines()
        assert sum("-->" in line for line in lines) == len(texts)
        assert sum(line.startswith("A B \u2192 (c): ") for line in lines) == len(texts)
        assert lines[-1 if lines[-1] else -2].endswith("A &lt; B & C" if form == "srt" else "&amp;lt; B & C")


def test_markers_are_never_calculated_by_a_spreadsheet(shelf, tmp_path):
    texts = [str(number) for number in range(120)] + ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "a=1"]
    shelf.write("a.mp4", LOCAL, [(at, at + 1, text) for at, text in enumerate(texts)])
    export(shelf.catalog, tmp_path / "out", "csv")
    (file,) = (tmp_path / "out").glob("*.csv")
    shown = pl.read_csv(file, infer_schema=False)["text"].to_list()
    assert shown == [*texts[:120], "'=HYPERLINK(1)", "'+1", "'-1", "'@SUM(1)", "a=1"]


def test_a_video_name_longer_than_a_file_name_is_cut(shelf, tmp_path):
    shelf.write("日本語" * 60 + "/a.mp4", LOCAL, [(0, 10, "a")])
    assert export(shelf.catalog, tmp_path / "out", "srt").files == 1


@pytest.mark.parametrize("name", ["../up", "/up", "", ".", "vectors", "Vectors"])
def test_a_split_is_a_folder_of_its_own_inside(catalog, tmp_path, name):
    with pytest.raises(UsageError, match="a split cannot be called"):
        export(catalog, tmp_path / "out", "jsonl", Choice(shares={name: 1.0}))
    with pytest.raises(UsageError, match="a split cannot be called"):
        export(catalog, tmp_path / "out", "jsonl", Choice(shares={"a": 0.5, "A": 0.5}))


def test_vectors_go_with_the_entries_of_a_producer_that_is_not_shown(shelf, direction, tmp_path):
    other = LOCAL.model_copy(update={"version": 2})
    shelf.write("a.mp4", LOCAL, [(0, 10, "a", {"vector": direction(1)})])
    shelf.write("a.mp4", other, [(0, 10, "b", {"vector": direction(0, 1)})])
    export(shelf.catalog, tmp_path / "out", "parquet", Choice(producer=other.producer_id), vectors=True)
    (file,) = (tmp_path / "out" / "vectors").glob("*/*.parquet")
    assert pl.read_parquet(file)["vector"][0].to_list() == pytest.approx(direction(0, 1))


def test_a_place_where_no_folder_can_be_is_told(catalog, tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "sub", tmp_path / ("x" * 300), "a\0b"):
        with pytest.raises(UsageError, match="cannot be"):
            export(catalog, place, "jsonl")


def test_a_choice_may_be_of_numpy(catalog, tmp_path):
    choice = Choice(video=np.array(["v1.mp4"]), seed=np.int64(3), shares={"a": np.float64(1)})
    export(catalog, tmp_path / "out", "jsonl", choice)
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert (facts["choice"]["video"], facts["choice"]["seed"]) == (["v1.mp4"], 3)


@pytest.mark.parametrize("text", ["train", "train=x", "=1", "a=1,a=1", "a=0.5", "", "a/b=1"])
def test_shares_that_are_none(text):
    with pytest.raises(UsageError):
        parse_shares(text)
    assert parse_shares("train=0.8, test=0.2") == {"train": 0.8, "test": 0.2}


@pytest.mark.filterwarnings("ignore")  # webdataset leaves its file to the collector
def test_entries_without_their_media_are_shards_without_pictures(catalog, tmp_path):
    import webdataset

    done = export(catalog, tmp_path / "out", "webdataset", Choice(kind="local"))
    assert done.problems == [], "none of them cites a picture"
    (shard,) = (tmp_path / "out" / "all").glob("*.tar")
    samples = list(webdataset.WebDataset(str(shard), shardshuffle=False).decode())
    assert len(samples) == 24
    assert {sample["json"]["entry_id"] for sample in samples} == set(
        catalog.entries(kind="local")["entry_id"]
    )
    first = shard.read_bytes()
    export(catalog, tmp_path / "again", "webdataset", Choice(kind="local"))
    assert (tmp_path / "again" / "all" / shard.name).read_bytes() == first
    assert tarfile.is_tarfile(shard)


def test_what_was_made_from_a_part_of_its_window_may_be_left_out(shelf):
    shelf.write("whole.mp4", LOCAL, [(0, 10, "whole")])
    unit = Unit(
        asset_id=shelf.asset_id("a.mp4"), producer_id=LOCAL.producer_id, kind="local", scale=LOCAL.scale
    )
    with Store.connect(shelf.uri, write=True) as store:
        store.add_name(VideoName("r", "a.mp4", unit.asset_id, "a.mp4", FileStamp(1, 2, 3, 4)))
        store.open(unit)
        for start, outcome in ((0, Outcome.DONE), (10, Outcome.PARTIAL), (20, Outcome.DONE)):
            entry = Entry(
                entry_id=entry_id(unit, start * US, 0),
                unit_id=unit.unit_id,
                asset_id=unit.asset_id,
                producer_id=unit.producer_id,
                kind="local",
                scale=unit.scale,
                span=Span.from_seconds(start + 1, start + 9),
                text=f"{outcome} {start}",
            )
            window = Span.from_seconds(start, start + 10)
            store.write(unit, WindowResult(span=window, outcome=outcome, entries=(entry,)))
        store.close(unit, complete=True)
    chosen = choose(shelf.catalog, Choice())
    assert chosen.rows.select("video", "start_s", "outcome").rows() == [
        ("a.mp4", 1.0, "done"),
        ("a.mp4", 11.0, "partial"),
        ("a.mp4", 21.0, "done"),
        ("whole.mp4", 0.0, "done"),
    ]
    whole = choose(shelf.catalog, Choice(partial=False))
    assert whole.left_out == {"flagged": 0, "partial": 1}
    assert whole.rows["start_s"].to_list() == [1.0, 21.0, 0.0]


def test_large_exports_are_whole(shelf, tmp_path):
    starts = [at / 10 for at in range(21_000)]  # from 20,000 rows on, polars filters in several threads
    shelf.write("long.mp4", LOCAL, [(start, start + 0.1, "a picture") for start in starts])
    done = export(shelf.catalog, tmp_path / "out", "parquet")
    assert (done.rows, done.left_out) == ({"all": 21_000}, {"flagged": 0, "partial": 0})
    rows = pl.read_parquet(tmp_path / "out" / "all" / "local.parquet")
    assert rows["start_s"].to_list() == starts
    assert set(rows["outcome"]) == {"done"}


def _be_killed(target):
    """Stands for an export: what it has written so far stays where it is."""
    (_folder_beside(target) / "entries.parquet").write_bytes(b"half of it")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_export_left_is_removed_by_the_next_and_nothing_else(catalog, tmp_path):
    target = tmp_path / "out"
    child = multiprocessing.get_context("spawn").Process(target=_be_killed, args=(target,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    running = _folder_beside(target)  # of this process, which goes on
    assert not left.exists()
    others = _folder_beside(tmp_path / "out.2")
    export(catalog, target, "jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["out", running.name, others.name])
