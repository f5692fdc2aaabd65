"""``evicat report`` on the command line, and how many bytes its pages take."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import re
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from evicat.catalog.query import Catalog
from evicat.flows import cli
from evicat.schemas.errors import UnreadableMediaError
from evicat.schemas.naming import Root
from evicat.storage.store import Store
from evicat.viewer import report, report_pictures
from evicat.viewer.page_data import video_page
from evicat.viewer.report import video_report
from evicat.viewer.report_library import library_report
from evicat.viewer.report_pictures import take_pictures

from .gallery import BROKEN, OTHER, VIDEO


@pytest.fixture
def evicat(gallery, monkeypatch):
    """Calls the command line over the gallery: exit code, and what it printed."""

    def call(*arguments: object) -> tuple[int, str]:
        told = io.StringIO()
        monkeypatch.setattr(sys, "argv", ["evicat", *map(str, arguments), "--catalog", gallery.uri])
        monkeypatch.setenv("COLUMNS", "200")
        with redirect_stdout(told), redirect_stderr(told), pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, told.getvalue()

    return call


def pictures(html: str) -> dict[str, str]:
    block = re.search(r'id="evicat-pictures">(.*?)</script>', html, re.DOTALL)[1]
    return json.loads(block)["by_pts"]


def test_a_page_is_written_and_written_again(evicat, tmp_path) -> None:
    path = tmp_path / "new folder" / "page.html"
    code, told = evicat("report", VIDEO, "-o", path)
    assert (code, len(pictures(path.read_text()))) == (0, 6)
    assert f"9 entries and 6 pictures of {VIDEO} are in {path}" in told
    assert evicat("report", VIDEO, "-o", path, "--no-pictures")[0] == 0
    assert pictures(path.read_text()) == {}
    assert [each.name for each in path.parent.iterdir()] == ["page.html"], "nothing else is left there"


def test_another_file_is_left_alone(evicat, tmp_path) -> None:
    path = tmp_path / "notes.html"
    path.write_text("<title>mine</title>")
    code, told = evicat("report", OTHER, "-o", path)
    assert code == 2
    assert "exists and is not a report page" in told
    assert path.read_text() == "<title>mine</title>"


def test_a_pipe_is_not_waited_for(evicat, tmp_path) -> None:
    os.mkfifo(tmp_path / "page.html")
    code, told = evicat("report", OTHER, "-o", tmp_path / "page.html", "--no-pictures")
    assert (code, "is not a report page" in told) == (2, True)


def test_a_full_disk_is_told_and_keeps_no_half_page(evicat, tmp_path, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("evicat.storage.files.os.fsync", full)
    code, told = evicat("report", OTHER, "-o", tmp_path / "page.html", "--no-pictures")
    assert code == 2
    assert f"{tmp_path / 'page.html'} cannot be written: No space left on device" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "page.html"], "give a VIDEO, or --library"),
        ([VIDEO, "--library", "-o", "page.html"], "give a VIDEO, or --library"),
        ([VIDEO, "-o", "page.pdf"], "ends with .html"),
        ([VIDEO, "-o", "page.html", "--no-pictures", "--media-root", "."], "wants none"),
        (["nobody.mp4", "-o", "page.html"], "unknown video 'nobody.mp4'"),
        ([OTHER, "-o", "page.html", "--view", "dreams"], "dreams"),
        ([OTHER, "-o", "page.html", "--at", "77"], "77"),
        (["--library", "-o", "note.txt/page.html"], "is not a folder"),
        (["--library", "-o", "note.txt"], "is not a folder"),
        (["--library", "-o", "folder.html"], "is a folder"),
        ([VIDEO, "-o", "~nobody-here/page.html"], "there is no such home folder"),
        ([VIDEO, "-o", "page.html", "--media-root", "~nobody-here"], "there is no such home folder"),
    ],
)
def test_wrong_usage_is_told(evicat, tmp_path, monkeypatch, arguments, said) -> None:
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text("x")
    Path("folder.html").mkdir()
    code, told = evicat("report", *arguments)
    assert code == 2
    assert said in " ".join(told.split())


def test_a_library_is_one_file_or_a_folder_of_pages(evicat, gallery, tmp_path) -> None:
    assert evicat("report", "--library", "-o", tmp_path / "all.html")[0] == 0
    code, told = evicat("report", "--library", "-o", tmp_path / "pages")
    assert code == 0
    assert "3 pages of videos" in told
    pages = {path.name for path in (tmp_path / "pages").iterdir()}
    assert pages == {
        "index.html",
        *(
            f"{name}-{gallery.asset_ids[video][:12]}.html"
            for name, video in (
                ("img-src-x-onerror-alert-1-it-s-co.mp4", VIDEO),
                ("plain.mp4", OTHER),
                ("broken.mp4", BROKEN),
            )
        ),
    }
    index = (tmp_path / "pages" / "index.html").read_text()
    assert set(re.findall(r'href="([^"]+\.html)"', index)) == pages - {"index.html"}
    assert "href=" not in re.sub(r"<link[^>]*>", "", (tmp_path / "all.html").read_text())


def test_the_same_head_gives_the_same_bytes(gallery) -> None:
    first, second = (video_report(Catalog.open(gallery.uri), VIDEO).html for _ in range(2))
    assert first == second


def test_no_path_of_this_machine_is_in_a_page(gallery) -> None:
    html = video_report(Catalog.open(gallery.uri), VIDEO).html
    assert str(Path(gallery.uri).parent) not in html
    assert str(gallery.media) not in html


def test_no_path_of_this_machine_is_in_what_a_page_says_of_failures(gallery, tmp_path) -> None:
    uri, folder = tmp_path / "a disk" / "moved.catalog", tmp_path / "a disk" / "media"
    shutil.copytree(gallery.uri, uri)
    with Store.connect(uri, write=True) as store:
        store.add_root(Root("media", "folder", str(folder)))
        store.add_video_failed(
            gallery.asset_ids[BROKEN], 7, UnreadableMediaError(f"{folder / BROKEN}: no media")
        )
    catalog = Catalog.open(str(uri))
    lost, broken = (video_report(catalog, video) for video in (VIDEO, BROKEN))
    assert "broken.mp4: no media" in broken.html
    assert "was not found" in lost.html
    for html in (lost.html, broken.html, library_report(catalog)):
        assert str(tmp_path) not in html
        assert "a disk" not in html


def test_nothing_is_written_into_a_catalog(evicat, gallery) -> None:
    for output in ("page.html", "tables/page.html"):
        code, told = evicat("report", VIDEO, "-o", f"{gallery.uri}/{output}", "--no-pictures")
        assert (code, "lies inside the catalog" in told) == (2, True)
    code, told = evicat("report", "--library", "-o", gallery.uri, "--no-pictures")
    assert (code, "lies inside the catalog" in told) == (2, True)
    code, told = evicat("export", "csv", f"{gallery.uri}/tables/x")
    assert (code, "lies inside the catalog" in told) == (2, True)


def test_a_page_in_the_way_is_told_before_any_is_made(evicat, tmp_path) -> None:
    (tmp_path / "index.html").write_text("<title>mine</title>")
    code, told = evicat("report", "--library", "-o", tmp_path)
    assert (code, "is not a report page" in told) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["index.html"]


@pytest.mark.parametrize(("room", "least"), [(1_000_000, 6), (24_500, 6), (16_000, 3), (5_000, 1), (0, 0)])
def test_pictures_keep_to_their_room(gallery, room, least) -> None:
    catalog = Catalog.open(gallery.uri)
    page = video_page(catalog, VIDEO)
    taken = take_pictures(catalog, page, room)
    assert sum(len(key) + len(value) for key, value in taken.by_pts.items()) <= room
    assert len(taken.by_pts) >= least
    cited = [{frame.pts for frame in entry.frames} for entry in page.entries if entry.frames]
    with_one = [bool(pts & {int(key) for key in taken.by_pts}) for pts in cited]
    assert len(taken.by_pts) < len(with_one) or all(with_one), "every entry gets one before any gets two"
    boxed = next(entry for entry in page.entries if entry.boxes)
    if taken.by_pts:
        assert str(boxed.frames[1].pts) in taken.by_pts, "the frame with boxes comes first"
    assert bool(taken.note) == (len(taken.by_pts) < 6)
    for value in taken.by_pts.values():
        assert base64.b64decode(value)[:2] == b"\xff\xd8"


def test_a_page_stays_below_its_bound(gallery, monkeypatch) -> None:
    catalog = Catalog.open(gallery.uri)
    bare = len(video_report(catalog, VIDEO, pictures=False).html.encode())
    for module in (report, report_pictures):
        monkeypatch.setattr(module, "PAGE_BYTES", bare + 20_000)
    made = video_report(catalog, VIDEO)
    assert bare < len(made.html.encode()) <= bare + 20_000
    assert made.pictures
