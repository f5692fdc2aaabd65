"""Faults of media files through the command line: each costs what it must, and is recorded."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
import unicodedata
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from evicat.catalog.query import Catalog
from evicat.storage.reader import Reader

FAST = """
name = "fast"
[[scales]]
kind = "local"
window_seconds = 10
describer = "sight"
frames = { per_window = 4, max_width = 64 }
options = { ocr_frames = 0 }
[speech]
subtitles = "only"
"""
"""Loads no weights."""
PICTURES = FAST.partition("[speech]")[0]


@pytest.fixture
def make(ffmpeg: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """``make("clip.mp4", "-f lavfi -i ...")`` writes a file into the folder ``media``."""
    media = tmp_path / "media"
    media.mkdir()

    def run(name: str, words: str) -> Path:
        path = media / name
        subprocess.run([ffmpeg, "-v", "error", "-y", *words.split(), path], check=True, cwd=media)
        return path

    return run


@pytest.fixture
def index(evicat, tmp_path: Path):
    """Index the folder ``media``; the run."""
    (tmp_path / "fast.toml").write_text(FAST)
    return lambda *more: evicat(
        *("index", tmp_path / "media", "--catalog", tmp_path / "c", "--recipe", tmp_path / "fast.toml"), *more
    )


def clip(seconds: float, rate: str = "25") -> str:
    return f"-f lavfi -i testsrc2=s=64x64:r={rate}:d={seconds} -c:v libx264 -pix_fmt yuv420p"


def rows(catalog: Path, table: str) -> pl.DataFrame:
    return pl.from_arrow(Reader.open(catalog).dataset(table).to_table())


def test_b05_a_file_that_was_cut_off_is_described_to_its_end(make, index, tmp_path) -> None:
    whole = make("whole.mkv", f"{clip(40)} -g 25")
    content = whole.read_bytes()
    (whole.parent / "cut.mkv").write_bytes(content[: len(content) * 6 // 10])
    whole.unlink()
    run = index()
    assert run.code == 0
    assert "but its header promises 40.00 s" in " ".join(run.out.split())
    catalog = Catalog.open(str(tmp_path / "c"))
    video = catalog.videos().to_dicts()[0]
    facts = json.loads(rows(tmp_path / "c", "videos")["facts"][0])
    assert facts["flags"] == ["partial_file"]
    assert facts["header_duration_us"] == 40_000_000
    assert 20 < video["duration_s"] == facts["decoded_until_us"] / 1e6 < 28
    entries = catalog.entries(kind="local")
    assert entries["end_s"].max() == video["duration_s"]
    windows = rows(tmp_path / "c", "coverage").filter(pl.col("kind") == "local")
    assert windows["outcome"].to_list() == ["done"] * len(entries)
    before = Reader.open(tmp_path / "c").head
    assert index().code == 0
    assert Reader.open(tmp_path / "c").head == before


def test_b07_bad_files_cost_themselves_and_are_not_tried_again(make, index, tmp_path) -> None:
    good = make("m_good.mp4", clip(2))
    media = good.parent
    bad = {
        "a_zero.mp4": b"",
        "b_text.mp4": b"not a video",
        "x_random.mp4": random.Random(1).randbytes(4096),
        "z_cut.mp4": good.read_bytes()[:3000],
    }
    for name, content in bad.items():
        (media / name).write_bytes(content)
    (media / "folder.mp4").mkdir()
    run = index()
    assert (run.code, "1 indexed, 4 failed" in run.out) == (3, True)
    videos = rows(tmp_path / "c", "videos")
    assert sorted(videos["status"]) == ["failed"] * 4 + ["ok"]
    failed = videos.filter(pl.col("status") == "failed")
    assert set(failed["error_class"]) == {"UnreadableMedia"}
    for name in bad:
        assert failed["message"].str.contains(name, literal=True).sum() == 1
    assert set(Catalog.open(str(tmp_path / "c")).entries()["video"]) == {"m_good.mp4"}
    again = index()
    assert (again.code, "1 unchanged, 4 failed" in again.out) == (3, True), again.out
    (media / "b_text.mp4").write_bytes(make("other.mp4", clip(1)).read_bytes())
    (media / "other.mp4").unlink()
    assert "3 failed" in index().out


@pytest.mark.parametrize("name", ["cover.m4a", "sound.mp4"])
def test_b08_a_song_has_no_picture_windows(make, index, tmp_path, name: str) -> None:
    cover = make("cover.jpg", "-f lavfi -i color=red:s=64x64 -frames:v 1")
    art = f"-i {cover} -map 0 -map 1 -c:v copy -disposition:v:0 attached_pic" if name == "cover.m4a" else ""
    make(name, f"-f lavfi -i sine=d=3 {art} -c:a aac")
    assert index().code == 0
    coverage = rows(tmp_path / "c", "coverage")
    assert set(coverage["scale"]) == {"speech"}
    assert Catalog.open(str(tmp_path / "c")).entries().is_empty()


def test_b11_nothing_is_told_of_a_hole(make, index, tmp_path, evicat) -> None:
    make("hole.mkv", f"{clip(4)} -vf setpts='if(gte(N,50),PTS+60/TB,PTS)' -fps_mode vfr")
    assert index().code == 0
    coverage = rows(tmp_path / "c", "coverage").filter(pl.col("kind") == "local").sort("start_s")
    assert coverage["outcome"].to_list() == ["done", *["no_frames"] * 5, "done"]
    entries = Catalog.open(str(tmp_path / "c")).entries(kind="local").sort("start_s")
    assert entries["start_s"].to_list() == [0.0, 60.0]
    shown = rows(tmp_path / "c", "entries").sort("start_s")["frames"].to_list()
    assert shown[1][0]["time_s"] >= 62.0
    found = evicat("search", "colours", "--between", "30:40", "--catalog", tmp_path / "c", "--mode", "text")
    assert found.code in (0, 1)
    assert "hole.mkv" not in found.out


def test_b12_a_single_picture_is_one_entry_of_one_frame(make, index, tmp_path) -> None:
    make("single.mp4", f"{clip(1)} -frames:v 1")
    make("short.mp4", clip(0.9))
    make("moving.gif", "-f lavfi -i testsrc2=s=64x64:r=10:d=1")
    assert index().code == 0
    entries = Catalog.open(str(tmp_path / "c")).entries(kind="local")
    assert sorted(entries["video"]) == ["moving.gif", "short.mp4", "single.mp4"]
    (entry_id,) = entries.filter(pl.col("video") == "single.mp4")["entry_id"]
    single = rows(tmp_path / "c", "entries").filter(pl.col("entry_id") == entry_id).to_dicts()[0]
    assert (single["start_s"], single["end_s"], len(single["frames"])) == (0.0, 0.04, 1)


NAMES = [
    *("a b.mp4", "it's.mp4", 'q"uote.mp4', "new\nline.mp4", "a%03d.mp4", "a:b.mp4", "file,with|pipe.mp4"),
    *("-dash.mp4", "clip[1].mp4", "x.v1.2.mp4", " lead.mp4", "UP.MP4", os.fsdecode(b"\xff\xfe.mp4")),
    *(unicodedata.normalize(form, "日本語é.mp4") for form in ("NFC", "NFD")),
]


def test_b19_every_name_is_indexed_and_found(make, index, tmp_path, evicat) -> None:
    content = make("plain.mp4", clip(0.2)).read_bytes()
    (tmp_path / "media" / "plain.mp4").unlink()
    for number, name in enumerate(NAMES):
        # A free box at the end makes every file an asset of its own.
        path = tmp_path / "media" / name
        path.write_bytes(content + (8 + 4).to_bytes(4, "big") + b"free" + number.to_bytes(4, "big"))
    assert index().code == 0
    videos = Catalog.open(str(tmp_path / "c")).videos()
    assert len(set(videos["video"])) == len(set(videos["asset_id"])) == len(NAMES)
    plain = [name for name in NAMES if name.isprintable()]
    assert set(plain) <= set(videos["video"])
    for name in videos["video"]:
        shown = evicat("show", "--catalog", tmp_path / "c", "--json", "--", name)
        assert shown.code == 0, shown.err
        found = {json.loads(line)["video"] for line in shown.out.splitlines()}
        assert found == {name}
    bare = Path(tmp_path / "media" / "bare")
    bare.write_bytes(content)
    assert evicat("index", bare, "--catalog", tmp_path / "c", "--recipe", tmp_path / "fast.toml").code == 0


def test_b21_no_sound_and_an_empty_stream_leave_the_pictures_whole(make, index, tmp_path) -> None:
    make("none.mp4", clip(2))
    sources = "-f lavfi -i testsrc2=s=64x64:r=25:d=3 -f lavfi -i sine=d=3 -map 0 -map 1 -c:v libx264"
    make("empty.mkv", f"{sources} -c:a pcm_s16le -af atrim=end_sample=0")
    make("sound.mkv", f"{sources} -c:a pcm_s16le")
    assert index().code == 0
    coverage = rows(tmp_path / "c", "coverage")
    assert coverage.filter(pl.col("kind") == "local")["outcome"].to_list() == ["done"] * 3
    speech = coverage.filter(pl.col("kind") == "speech")
    assert set(speech["outcome"]) == {"empty"}
    flags = [json.loads(facts)["flags"] for facts in rows(tmp_path / "c", "videos")["facts"]]
    assert sorted(flags) == [[], [], ["empty_audio"]]
    assert Catalog.open(str(tmp_path / "c")).entries(kind="speech").is_empty()


MISBEHAVING = """
import os, sys
if "evicat.catalog.media.worker_process" in " ".join(sys.orig_argv):
    from evicat.catalog.media import frames, probe

    def told(name, real):
        def steps(path, *arguments):
            if path.name.startswith(name + "_hang"):
                import time
                yield None
                time.sleep(600)
            if path.name.startswith(name + "_abort"):
                yield None
                os.abort()
            yield from real(path, *arguments)
        return steps

    probe.probe_steps = told("probe", probe.probe_steps)
    frames.decode_steps = told("see", frames.decode_steps)
"""
"""Decoders of child processes hang or abort where the name of a file tells them to."""


@pytest.mark.slow
def test_a_decoder_that_hangs_or_dies_costs_its_file_alone(
    make, tmp_path, prefect_server, monkeypatch
) -> None:
    names = ["a_good", "probe_hang", "probe_abort", "see_hang", "see_abort", "z_good"]
    for number, name in enumerate(names):
        make(f"{name}.mp4", clip(1 + number / 5))
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "sitecustomize.py").write_text(textwrap.dedent(MISBEHAVING))
    (tmp_path / "fast.toml").write_text(PICTURES)
    (tmp_path / "profile.toml").write_text("decode_timeout_seconds = 8\nvideos_at_once = 3\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))
    monkeypatch.setenv("PREFECT_API_URL", prefect_server)
    command = [sys.executable, "-m", "evicat.flows.cli", "index", "media", "--catalog", "c"]
    options = ["--recipe", "fast.toml", "--profile", "profile.toml"]
    run = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 3, run.stdout + run.stderr
    catalog = Catalog.open(str(tmp_path / "c"))
    assert set(catalog.entries()["video"]) == {"a_good.mp4", "z_good.mp4"}
    said = " ".join(run.stdout.split())
    assert "probe_hang.mp4: no progress for 8 s; the decoder was ended" in said
    assert "probe_abort.mp4: the decoding process died of SIGABRT" in said
    coverage = rows(tmp_path / "c", "coverage").filter(pl.col("outcome") == "failed")
    assert sorted(coverage["error_class"]) == ["DecodeStalled", "DecoderCrashed"]
    assert coverage["message"].str.contains("see_").all()
