"""Files as users move, copy, overwrite and rename them between runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from evicat.catalog import build
from evicat.catalog.describers.sight import Sight
from evicat.catalog.query import Catalog
from evicat.flows.ingest import ingest
from evicat.schemas.errors import WindowError
from evicat.storage.reader import Reader

RECIPE = """
name = "library"
[[scales]]
kind = "local"
window_seconds = 5
describer = "sight"
frames = { per_window = 2, max_width = 128 }
options = { ocr_frames = 0 }
[speech]
subtitles = "only"
"""


class Shelf:
    """A folder of films and the catalog of it."""

    def __init__(self, folder: Path, samples: Path) -> None:
        self.media = folder / "media"
        self.media.mkdir()
        self.samples = samples
        self.catalog = str(folder / "catalog")
        self.recipe = folder / "library.toml"
        self.recipe.write_text(RECIPE)

    def put(self, name: str, sample: str = "phone.mp4") -> Path:
        return Path(shutil.copy(self.samples / sample, self.media / name))

    def index(self, *paths: Path):
        return ingest([str(path) for path in paths or [self.media]], self.catalog, str(self.recipe))

    def found(self) -> set[str]:
        return set(Catalog.open(self.catalog).search("picture", mode="text", limit=100)["video"])


@pytest.fixture
def shelf(prefect_server, tmp_path: Path, evicat_samples: Path) -> Shelf:
    return Shelf(tmp_path, evicat_samples)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every window that a describer was called for."""
    seen: list[object] = []
    real = Sight.describe
    monkeypatch.setattr(Sight, "describe", lambda self, window: seen.append(window) or real(self, window))
    return seen


def test_renames_copies_links_and_touches_cost_no_call(shelf, calls) -> None:
    film = shelf.put("film.mp4")
    shelf.index()
    made = len(calls)
    film.rename(shelf.media / "renamed.mp4")
    shelf.put("copy.mp4")
    (shelf.media / "link.mp4").symlink_to("renamed.mp4")
    os.utime(shelf.media / "renamed.mp4")
    summary = shelf.index()
    assert (made, len(calls) - made) == (1, 0)
    assert (summary.unchanged, summary.copies) == (1, 2)
    names = Catalog.open(shelf.catalog).videos()
    assert {"renamed.mp4", "copy.mp4", "link.mp4"} <= set(names["video"])
    assert names["asset_id"].n_unique() == 1


def test_a_file_of_other_bytes_is_described_anew_and_the_old_text_is_gone(shelf, calls) -> None:
    film = shelf.put("film.mp4")
    shelf.index()
    before = Catalog.open(shelf.catalog).entries()["asset_id"].unique().to_list()
    stat = film.stat()
    content = bytearray(film.read_bytes())
    content[-40] ^= 1  # in the last frame's data or a trailing box: same size, other bytes
    film.write_bytes(content)
    os.utime(film, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    shelf.index()
    after = Catalog.open(shelf.catalog).entries()["asset_id"].unique().to_list()
    assert len(before) == len(after) == 1
    assert before != after
    assert shelf.found() == {"film.mp4"}


def test_swapped_names_show_the_right_text(shelf, calls) -> None:
    shelf.put("a.mp4", "phone.mp4")
    shelf.put("b.mp4", "card.mp4")
    shelf.index()
    text = {name: Catalog.open(shelf.catalog).entries(name)["text"].to_list() for name in ("a.mp4", "b.mp4")}
    made = len(calls)
    (shelf.media / "a.mp4").rename(shelf.media / "x.mp4")
    (shelf.media / "b.mp4").rename(shelf.media / "a.mp4")
    (shelf.media / "x.mp4").rename(shelf.media / "b.mp4")
    shelf.index()
    catalog = Catalog.open(shelf.catalog)
    assert catalog.entries("a.mp4")["text"].to_list() == text["b.mp4"]
    assert catalog.entries("b.mp4")["text"].to_list() == text["a.mp4"]
    assert len(calls) == made


def test_of_copies_with_different_subtitles_the_same_one_leads_in_every_run(shelf) -> None:
    for name in ("b", "a"):
        shelf.put(f"{name}.mp4")
        (shelf.media / f"{name}.srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\nSubtitle {name}.\n")
    shelf.index()
    head = Reader.open(shelf.catalog).head
    speech = Catalog.open(shelf.catalog).entries(kind="speech")["text"].to_list()
    assert speech == ["Subtitle a."]
    for _ in range(3):
        assert shelf.index().unchanged == 1
    assert Reader.open(shelf.catalog).head == head


def test_a_changed_side_car_replaces_speech_without_a_call_for_the_pictures(shelf, calls) -> None:
    film = shelf.put("film.mp4")
    side_car = film.with_suffix(".srt")
    for text in ("First.", "Second."):
        side_car.write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n")
        shelf.index()
        assert Catalog.open(shelf.catalog).entries(kind="speech")["text"].to_list() == [text]
    assert len(calls) == 1


def test_a_side_car_that_cannot_be_decoded_fails_speech_alone(shelf) -> None:
    film = shelf.put("film.mp4")
    film.with_suffix(".srt").mkdir()
    film.with_suffix(".ass").write_bytes(b"\xff\xfe\x00")
    summary = shelf.index()
    assert "film.mp4" in summary.made
    assert shelf.found() == {"film.mp4"}


def test_ids_and_splits_of_a_manifest_may_change(shelf, calls) -> None:
    shelf.put("film.mp4")
    manifest = shelf.media / "m.jsonl"
    rows = [{"id": "one", "path": "film.mp4"}, {"id": "two", "path": "film.mp4", "split": "test"}]
    manifest.write_text(json.dumps(rows[0]))
    shelf.index(manifest)
    manifest.write_text("\n".join(map(json.dumps, rows)))
    shelf.index(manifest)
    rows[0] |= {"split": "train", "source_id": "yt1"}
    manifest.write_text("\n".join(map(json.dumps, rows)))
    shelf.index(manifest)
    videos = Catalog.open(shelf.catalog).videos().select("video", "split", "source_id")
    assert videos.rows() == [("one", "train", "yt1"), ("two", "test", "yt1")]
    assert len(calls) == 1


def test_clips_of_one_parent_are_assets_of_one_source(shelf) -> None:
    shelf.put("film.mp4", "street.mp4")
    manifest = shelf.media / "m.jsonl"
    clips = [{"id": f"clip{n}", "path": "film.mp4", "in_s": n, "out_s": n + 4.5} for n in range(4)]
    manifest.write_text("\n".join(map(json.dumps, clips)))
    shelf.index(manifest)
    videos = Catalog.open(shelf.catalog).videos()
    assert videos["asset_id"].n_unique() == 4
    assert videos["source_id"].n_unique() == 1
    assert (videos["duration_s"] - 4.5).abs().max() <= 0.04


def test_windows_that_failed_are_told_in_every_run(shelf, monkeypatch) -> None:
    shelf.put("film.mp4")

    def fail(self: Sight, window: object) -> None:
        raise WindowError("no answer")

    monkeypatch.setattr(Sight, "describe", fail)
    assert shelf.index().failed_windows == 1
    again = shelf.index()
    assert (again.failed_windows, again.earlier_failures, again.all_done) == (0, 1, False)
    assert "1 windows that failed in an earlier run" in again.headline()


def test_a_decoder_that_dies_is_tried_again_in_the_next_run(shelf, monkeypatch) -> None:
    from evicat.catalog import build
    from evicat.schemas.errors import DecoderCrashedError

    shelf.put("film.mp4")
    with monkeypatch.context() as patch:
        patch.setattr(build, "probe", lambda *_, **__: (_ for _ in ()).throw(DecoderCrashedError("died")))
        assert list(shelf.index().failures) == ["film.mp4"]
    assert shelf.index().made == ["film.mp4"]


def test_a_side_car_counts_beside_whatever_copy_it_lies(shelf) -> None:
    """However the copies are asked for, and in whatever order, the same subtitles are read."""
    for folder in ("a", "b"):
        (shelf.media / folder).mkdir()
        shelf.put(f"{folder}/film.mp4")
    (shelf.media / "a" / "film.srt").write_text("1\n00:00:00,500 --> 00:00:02,000\nHello there.\n")
    speech = []
    for asked in (["b"], ["b", "a"], ["a"], ["a", "b"], ["b"]):
        shelf.index(*(shelf.media / name for name in asked))
        speech.append(Catalog.open(shelf.catalog).entries(kind="speech")["text"].to_list())
    assert speech == [[], *[["Hello there."]] * 4]


def test_a_file_that_was_out_of_reach_for_a_while_is_made_later(shelf, monkeypatch) -> None:
    film = shelf.put("film.mp4")
    real = build.probe

    def gone(path, *arguments, **options):
        film.rename(film.with_suffix(".away"))
        try:
            return real(path, *arguments, **options)
        finally:
            film.with_suffix(".away").rename(film)

    with monkeypatch.context() as patch:
        patch.setattr(build, "probe", gone)
        assert "No such file" in shelf.index().failures["film.mp4"]
    assert shelf.index().made == ["film.mp4"]


def test_a_film_is_called_by_its_real_path_and_not_by_that_of_a_link(shelf) -> None:
    (shelf.media / "real").mkdir()
    shelf.put("real/film.mp4")
    (shelf.media / "a").mkdir()
    (shelf.media / "a" / "link").symlink_to(shelf.media / "real")
    shelf.index()
    assert Catalog.open(shelf.catalog).videos()["video"].to_list() == ["real/film.mp4"]
