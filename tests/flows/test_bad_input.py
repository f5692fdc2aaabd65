"""What users get wrong, and what files do: a clear message, the rest is done, nothing stored is touched."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from evicat.catalog.query import Catalog
from evicat.storage.reader import Reader

FAST = """
name = "fast"
[[scales]]
kind = "local"
window_seconds = 4
describer = "sight"
frames = { per_window = 2, max_width = 128 }
options = { ocr_frames = 0 }
"""


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    """A recipe that loads no weights."""
    file = tmp_path / "fast.toml"
    file.write_text(FAST)
    return file


def test_bad_files_are_named_and_the_good_one_is_finished(evicat, evicat_samples, fast, tmp_path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    (media / "empty.mp4").touch()
    (media / "text.mp4").write_text("not a video")
    (media / "random.mp4").write_bytes(random.Random(7).randbytes(4096))
    (media / "cut.mp4").write_bytes((evicat_samples / "street.mp4").read_bytes()[:20_000])
    os.mkfifo(media / "pipe.mp4")
    shutil.copy(evicat_samples / "phone.mp4", media / "good.mp4")
    run = evicat("index", media, tmp_path / "gone.mp4", "--catalog", tmp_path / "c", "--recipe", fast)
    assert run.code == 3
    assert "1 indexed, 6 failed" in run.out
    for name in ("empty.mp4", "text.mp4", "random.mp4", "cut.mp4", "gone.mp4", "pipe.mp4"):
        assert name in run.out
    catalog = Catalog.open(str(tmp_path / "c"))
    status = dict(catalog.videos().select("video", "status").iter_rows())
    assert status == {"good.mp4": "ok"} | dict.fromkeys(
        ["empty.mp4", "text.mp4", "random.mp4", "cut.mp4"], "failed"
    )
    assert set(catalog.entries()["video"]) == {"good.mp4"}
    shown = evicat("status", "--catalog", tmp_path / "c").out
    assert "failed" in shown
    assert "empty.mp4" in shown


def test_failed_bytes_are_not_tried_again_until_they_change(evicat, evicat_samples, fast, tmp_path) -> None:
    film = tmp_path / "media" / "film.mp4"
    film.parent.mkdir()
    film.write_text("not a video")
    index = ("index", film.parent, "--catalog", tmp_path / "c", "--recipe", fast)
    assert evicat(*index).code == 3
    head = Reader.open(tmp_path / "c").head
    again = evicat(*index)
    assert again.code == 3
    assert "not tried again" in " ".join(again.out.split())
    assert Reader.open(tmp_path / "c").head == head
    shutil.copy(evicat_samples / "phone.mp4", film)
    assert evicat(*index).code == 0
    assert set(Catalog.open(str(tmp_path / "c")).entries()["video"]) == {"film.mp4"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "gone", "--catalog", "c"], "no such file, folder or pattern: gone"),
        (["index", "empty", "--catalog", "c"], "no media in folder empty: looked for .3gp"),
        (["index", "m", "--catalog", "c", "--recipe", "defualt"], "unknown recipe 'defualt'; known: "),
        (["index", "m", "--catalog", "c", "--recipe", "wrong.toml"], "scales.0.window_seconds: "),
        (["index", "m", "--catalog", "empty.txt"], "a catalog needs a folder of its own"),
        (["index", "m", "--catalog", "full"], "full"),
        (["index", "m", "--catalog", "newer"], "schema 99"),
        (["search", "x", "--catalog", "gone"], "is not a catalog"),
        (["search", "x", "--catalog", "full"], "is not a catalog"),
        (["search", "x", "--catalog", "newer"], "schema 99"),
        (["status", "--catalog", "gone"], "is not a catalog"),
        (["search", "x", "--between", "9:3", "--catalog", "gone"], "end must be > start"),
        (["search", "x", "--between", "soon", "--catalog", "gone"], "not a span: 'soon'"),
        (["search", "x"], "--catalog"),
        (["index"], "Usage"),
    ],
)
def test_wrong_usage_is_exit_2_with_a_message_and_touches_nothing(
    evicat, evicat_samples, tmp_path, arguments: list[str], message: str
) -> None:
    for folder in ("empty", "m", "full", "newer"):
        (tmp_path / folder).mkdir()
    shutil.copy(evicat_samples / "phone.mp4", tmp_path / "m" / "phone.mp4")
    (tmp_path / "empty.txt").write_text("hello")
    (tmp_path / "full" / "precious.txt").write_text("mine")
    (tmp_path / "newer" / "evicat.json").write_text(json.dumps({"format": "evicat-catalog", "schema": 99}))
    (tmp_path / "wrong.toml").write_text(FAST.replace("= 4", "= -4"))
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    run = evicat(*arguments, cwd=tmp_path)
    said = " ".join((run.out + run.err).split())
    assert run.code == 2, said
    assert message in said
    assert "Traceback" not in said
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


def test_unknown_video_mode_and_kind_list_what_is_known(evicat, evicat_samples, fast, tmp_path) -> None:
    catalog = tmp_path / "c"
    assert evicat("index", evicat_samples / "phone.mp4", "--catalog", catalog, "--recipe", fast).code == 0
    for arguments, message in (
        (["show", "film.mp4"], "unknown video 'film.mp4'; known: phone.mp4"),
        (["search", "x", "--mode", "magic"], "unknown mode 'magic'; known: hybrid, text, vector"),
        (
            ["search", "x", "--kind", "smell"],
            "unknown kind 'smell'; known: local, narrative, objects, sound, speech",
        ),
    ):
        run = evicat(*arguments, "--catalog", catalog)
        assert (run.code, message in " ".join(run.err.split())) == (2, True), run.err


ODD_NAMES = ["a b.mp4", "it's.mp4", "a:b.mp4", "file,with|pipe.mp4", "clip[1].mp4", "日本語é.mp4"]


def test_files_asked_for_by_odd_names_are_indexed_and_found(evicat, evicat_samples, fast, tmp_path) -> None:
    for number, name in enumerate(ODD_NAMES, 1):
        content = (evicat_samples / "phone.mp4").read_bytes()
        (tmp_path / name).write_bytes(content + bytes(number))  # each an asset of its own
    assert evicat("index", *ODD_NAMES, "--catalog", "c", "--recipe", fast, cwd=tmp_path).code == 0
    for name in ODD_NAMES:
        shown = evicat("show", name, "--catalog", "c", "--json", cwd=tmp_path)
        assert {json.loads(line)["video"] for line in shown.out.splitlines()} == {name}


def test_a_manifest_names_cuts_splits_and_doubts(evicat, evicat_samples, fast, tmp_path) -> None:
    rows = [
        {"id": "whole", "path": "film.mp4", "benchmark": "b", "split": "test", "duration_s": 99},
        {"id": "cut", "path": "film.mp4", "in_s": 2.0, "out_s": 7.0, "duration_s": 5},
    ]
    shutil.copy(evicat_samples / "street.mp4", tmp_path / "film.mp4")
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = evicat("index", tmp_path / "m.jsonl", "--catalog", tmp_path / "c", "--recipe", fast)
    assert run.code == 0, run.err
    assert "is 10.00 s long, but the manifest says 99.00 s" in " ".join(run.out.split())
    videos = Catalog.open(str(tmp_path / "c")).videos()
    whole, cut = (videos.filter(videos["video"] == name).to_dicts()[0] for name in ("whole", "cut"))
    assert (whole["duration_s"], whole["split"]) == (10.0, "test")
    assert abs(cut["duration_s"] - 5.0) <= 0.05
    assert cut["asset_id"] != whole["asset_id"]
    assert cut["source_id"] == whole["source_id"]
