"""Snapshots by the command line: read later, handed on to another machine, and shown with frames there."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from evicat.catalog.cited_frames import Citation, write_frames
from evicat.catalog.media_files import MediaFiles
from evicat.catalog.query import Catalog
from evicat.flows.ingest import ingest
from evicat.schemas.errors import UsageError

RECIPE = """
name = "shared"
[[scales]]
kind = "local"
window_seconds = 2
describer = "sight"
frames = { per_window = 2, max_width = 128 }
options = { ocr_frames = 0 }
[speech]
subtitles = "only"
"""


@dataclass(frozen=True)
class Desk:
    """One machine: its media, and the catalog that it made of them."""

    media: Path
    catalog: Path


def index(folder: Path, samples: Path) -> Desk:
    """Two films, and a cut of one of them that a manifest names."""
    media = folder / "media"
    media.mkdir(parents=True)
    for name in ("street.mp4", "phone.mp4"):
        shutil.copy(samples / name, media / name)
    (media / "cuts.csv").write_text("id,path,in_s,out_s\ncut,street.mp4,1.5,4\n")
    (folder / "shared.toml").write_text(RECIPE)
    catalog = folder / "catalog"
    summary = ingest([str(media), str(media / "cuts.csv")], str(catalog), str(folder / "shared.toml"))
    assert summary.all_done
    return Desk(media, catalog)


@pytest.fixture(scope="module")
def desk(prefect_server, tmp_path_factory, evicat_samples, evicat) -> Desk:
    made = index(tmp_path_factory.mktemp("desk") / "here", evicat_samples)
    assert evicat("snapshot", "create", "v1", "-c", made.catalog, "--note", "to share").code == 0
    return made


@pytest.fixture(scope="module")
def elsewhere(desk, tmp_path_factory, evicat) -> Path:
    """The catalog as somebody else has it: exported, moved, imported."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run = evicat("snapshot", "export", "v1", folder / "sent", "-c", desk.catalog)
    assert run.code == 0, run.err
    (folder / "sent").rename(folder / "received")
    run = evicat("snapshot", "import", folder / "received", "-c", folder / "catalog")
    assert run.code == 0, run.err
    return folder / "catalog"


@pytest.fixture
def copy(desk, tmp_path) -> Path:
    return Path(shutil.copytree(desk.catalog, tmp_path / "copy"))


def content_hash(evicat, catalog, name):
    return json.loads(evicat("snapshot", "show", name, "-c", catalog, "--check", "--json").out)[
        "content_hash"
    ]


@pytest.mark.slow
def test_a_library_indexed_on_another_machine_has_the_same_content_hash(
    desk, tmp_path, evicat_samples, evicat
) -> None:
    other = index(tmp_path / "other", evicat_samples)
    assert evicat("snapshot", "create", "mine", "-c", other.catalog).code == 0
    assert content_hash(evicat, other.catalog, "mine") == content_hash(evicat, desk.catalog, "v1")


def test_snapshots_are_listed_shown_and_deleted(copy, evicat) -> None:
    listed = evicat("snapshot", "list", "--catalog", copy)
    assert listed.code == 0
    assert all(word in listed.out for word in ("v1", "to share"))
    shown = evicat("snapshot", "show", "v1", "--catalog", copy, "--check").out
    assert all(word in shown for word in ("entries", "sight", "default", "checked: rows and content hash"))
    assert [
        json.loads(line)["name"] for line in evicat("snapshot", "list", "-c", copy, "--json").out.splitlines()
    ] == ["v1"]
    assert evicat("snapshot", "create", "v1", "-c", copy).code == 2
    assert evicat("snapshot", "delete", "v1", "-c", copy).code == 0
    assert "No snapshots" in evicat("snapshot", "list", "-c", copy).out
    gone = evicat("status", "-c", copy, "--at", "v1")
    assert (gone.code, "unknown snapshot 'v1'; known: none" in gone.err) == (2, True)


@pytest.mark.slow
def test_every_reading_command_reads_at_a_snapshot_or_a_head(copy, evicat, evicat_samples, tmp_path) -> None:
    commands = (
        ("search", "picture", "--mode", "text", "--json"),
        ("show", "street.mp4", "--json"),
        ("status",),
    )
    before = [evicat(*words, "-c", copy).out for words in commands]
    head = json.loads(evicat("snapshot", "show", "v1", "-c", copy, "--json").out)["head"]["number"]
    shutil.copy(evicat_samples / "globe.mp4", tmp_path / "street.mp4")
    (tmp_path / "shared.toml").write_text(RECIPE)
    ingest([str(tmp_path / "street.mp4")], str(copy), str(tmp_path / "shared.toml"))
    assert [evicat(*words, "-c", copy).out for words in commands] != before
    for at in ("v1", head):
        assert [evicat(*words, "-c", copy, "--at", at).out for words in commands] == before
    assert len(Catalog.open(str(copy)).videos()) == 4
    assert len(Catalog.open(str(copy), at="v1").videos()) == 3


def test_what_was_handed_on_answers_as_the_original_does(desk, elsewhere, evicat) -> None:
    for words in (
        ("search", "picture", "--mode", "text", "--json"),
        ("search", "picture", "--json"),
        ("show", "cut", "--json"),
        ("status",),
        ("snapshot", "show", "v1", "--check", "--json"),
    ):
        runs = [evicat(*words, "-c", catalog) for catalog in (desk.catalog, elsewhere)]
        assert [run.code for run in runs] == [0, 0], runs[1].err
        if words[0] != "snapshot":
            assert runs[0].out == runs[1].out
    assert content_hash(evicat, elsewhere, "v1") == content_hash(evicat, desk.catalog, "v1")


def test_indexing_the_media_where_it_was_gives_an_import_its_places_back(desk, elsewhere, tmp_path) -> None:
    catalog = Path(shutil.copytree(elsewhere, tmp_path / "catalog"))
    (tmp_path / "shared.toml").write_text(RECIPE)
    opened = Catalog.open(str(catalog))
    asset = opened.asset(opened.asset_ids("street.mp4")[0])
    assert opened.media_files().find(asset) is None
    ingest([str(desk.media)], str(catalog), str(tmp_path / "shared.toml"))
    assert Catalog.open(str(catalog)).media_files().find(asset) == desk.media / "street.mp4"


def test_indexing_the_media_again_elsewhere_makes_nothing_anew(elsewhere, evicat_samples, tmp_path) -> None:
    catalog = Path(shutil.copytree(elsewhere, tmp_path / "catalog"))
    entries = Catalog.open(str(catalog)).entries().drop("video")
    (tmp_path / "shared.toml").write_text(RECIPE)
    shutil.copy(evicat_samples / "street.mp4", tmp_path / "road.mp4")
    summary = ingest([str(tmp_path / "road.mp4")], str(catalog), str(tmp_path / "shared.toml"))
    assert (summary.all_done, sum(summary.outcomes.values())) == (True, 0)
    assert Catalog.open(str(catalog)).entries().drop("video").equals(entries)


class TestFrames:
    @pytest.mark.parametrize("video", ["street.mp4", "cut"])
    def test_frames_are_those_that_entries_cite(self, desk, evicat, tmp_path, video) -> None:
        run = evicat("show", video, "-c", desk.catalog, "--frames", tmp_path / "frames")
        assert run.code == 0, run.err
        catalog = Catalog.open(str(desk.catalog))
        cited = catalog.cited_frames(video).to_dicts()
        written = sorted(path.name for path in (tmp_path / "frames").iterdir())
        assert written == sorted(f"{row['entry_id']}_{row['time_s']:013.6f}s.jpg" for row in cited)
        assert cited
        pictures = decoded(desk.media / "street.mp4")
        for row in cited:
            seen = cv2.imread(str(tmp_path / "frames" / f"{row['entry_id']}_{row['time_s']:013.6f}s.jpg"))
            assert seen.shape[1] == row["shown_width"]
            errors = {pts: difference(seen, picture) for pts, picture in pictures.items()}
            assert errors[row["pts"]] == min(errors.values()) < 8

    @pytest.mark.slow
    def test_media_is_found_by_its_bytes_below_a_media_root(self, desk, elsewhere, evicat, tmp_path) -> None:
        deep = tmp_path / "disk" / "2024"
        deep.mkdir(parents=True)
        shutil.copy(desk.media / "street.mp4", deep / "renamed.bin")
        same_size = bytearray((deep / "renamed.bin").read_bytes())
        same_size[-1] ^= 1
        (deep / "a.mp4").write_bytes(same_size)
        for video in ("street.mp4", "cut"):
            lost = evicat("show", video, "-c", elsewhere, "--frames", tmp_path / "none")
            assert lost.code == 3
            assert f"the media of {video} was not found (asset" in lost.err
            assert "--media-root" in lost.err
            assert not (tmp_path / "none").exists()
            there = evicat(
                "show",
                video,
                "-c",
                elsewhere,
                "--frames",
                tmp_path / video,
                "--media-root",
                tmp_path / "disk",
            )
            here = evicat("show", video, "-c", desk.catalog, "--frames", tmp_path / f"{video} here")
            assert (there.code, here.code) == (0, 0), there.err
            assert there.out == here.out
            assert contents(tmp_path / video) == contents(tmp_path / f"{video} here") != {}

    def test_what_is_not_there_is_said(self, desk, elsewhere, evicat, tmp_path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        run = evicat("show", "phone.mp4", "-c", elsewhere, "--frames", tmp_path / "f", "--media-root", empty)
        assert (run.code, f"Looked in {empty}." in run.err) == (3, True)
        run = evicat(
            "show", "phone.mp4", "-c", elsewhere, "--frames", tmp_path / "f", "--media-root", tmp_path / "x"
        )
        assert (run.code, "is not a folder" in run.err) == (2, True)
        run = evicat("show", "phone.mp4", "-c", elsewhere, "--media-root", empty)
        assert (run.code, "give --frames" in run.err) == (2, True)

    def test_a_file_whose_bytes_changed_is_not_taken_for_the_asset(self, desk, tmp_path) -> None:
        catalog = Catalog.open(str(desk.catalog))
        (asset_id,) = catalog.asset_ids("phone.mp4")
        asset = catalog.asset(asset_id)
        path = Path(shutil.copy(desk.media / "phone.mp4", tmp_path / "phone.mp4"))
        assert MediaFiles([], [], [tmp_path]).find(asset) == path
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        assert MediaFiles([], [], [tmp_path]).find(asset) is None
        path.write_bytes(path.read_bytes()[:-1])
        assert MediaFiles([], [], [tmp_path]).find(asset) is None
        assert catalog.media_files().find(asset) == desk.media / "phone.mp4"

    def test_a_frame_that_does_not_decode_is_named(self, desk, tmp_path) -> None:
        catalog = Catalog.open(str(desk.catalog))
        (asset_id,) = catalog.asset_ids("street.mp4")
        asset = catalog.asset(asset_id)
        real = next(iter(decoded(desk.media / "street.mp4")))
        citations = [Citation("a", real, 64), Citation("b", real + 1, 64), Citation("c", real, None)]
        written = write_frames(desk.media / "street.mp4", asset, citations, tmp_path)
        assert [path.name.partition("_")[0] for path in written.files] == ["a", "c"]
        assert written.not_decoded == [citations[1]]
        assert cv2.imread(str(written.files[1])).shape[1] == asset.video.width

    def test_a_media_root_must_be_a_folder(self, tmp_path) -> None:
        with pytest.raises(UsageError, match="is not a folder"):
            MediaFiles([], [], [tmp_path / "none"])


def decoded(path: Path) -> dict[int, np.ndarray]:
    """Every picture of a file, by its PTS, 128 pixels wide."""
    with av.open(str(path)) as container:
        return {frame.pts: small(frame.to_ndarray(format="bgr24")) for frame in container.decode(video=0)}


def small(picture: np.ndarray) -> np.ndarray:
    height = round(picture.shape[0] * 128 / picture.shape[1])
    return cv2.resize(picture, (128, height), interpolation=cv2.INTER_AREA)


def difference(seen: np.ndarray, picture: np.ndarray) -> float:
    resized = cv2.resize(picture, (seen.shape[1], seen.shape[0]))
    return float(np.abs(resized.astype(int) - seen.astype(int)).mean())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
