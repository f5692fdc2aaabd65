"""Files that are copied, linked, overwritten, renamed, taken away: what is shown then, and at what cost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from evicat.catalog.query import Catalog
from evicat.storage.head import earlier_heads
from evicat.storage.layout import Layout
from evicat.storage.reader import Reader


def _swap_bytes(path: Path, clip: Path) -> None:
    """Other content of the same size under the same name and modification time."""
    stat = path.stat()
    content = clip.read_bytes()
    content = content[: stat.st_size].ljust(stat.st_size, b"\0")
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


class TestLikeNames:
    @pytest.fixture
    def shelf(self, rerun):
        """Three contents under like names, a copy, a link, a loop and a side file of macOS."""
        rerun.put("a/lec.1.mp4", "red")
        rerun.put("a/lec.2.mp4", "blue")
        rerun.put("b/lec.1.mp4", "grey")
        rerun.put("copy.mp4", "red")
        (rerun.media / "l.mp4").symlink_to("a/lec.1.mp4")
        (rerun.media / "a" / "loop").symlink_to("..")
        (rerun.media / "a" / "._lec.1.mp4").write_bytes(b"\0" * 4096)
        return rerun

    def test_three_contents_are_three_assets_and_nobody_is_overwritten(self, shelf) -> None:
        summary = shelf.index()
        assert (len(summary.made), summary.copies, summary.all_done) == (3, 2, True)
        names = dict(Catalog.open(str(shelf.catalog)).videos().select("video", "asset_id").iter_rows())
        assert set(names) == {"a/lec.1.mp4", "a/lec.2.mp4", "b/lec.1.mp4", "copy.mp4", "l.mp4"}
        assert len(set(names.values())) == 3
        assert names["copy.mp4"] == names["l.mp4"] == names["a/lec.1.mp4"]
        texts = [tuple(shelf.texts(name)) for name in ("a/lec.1.mp4", "a/lec.2.mp4", "b/lec.1.mp4")]
        assert len(set(texts)) == 3
        assert len(shelf.calls) == 3 * (4 + 2)

    @pytest.mark.slow
    def test_each_further_change_of_names_costs_no_call(self, shelf) -> None:
        shelf.index()
        texts = {name: shelf.texts(name) for name in ("a/lec.1.mp4", "a/lec.2.mp4", "b/lec.1.mp4")}

        def touch_rename_and_swap() -> None:
            os.utime(shelf.media / "a" / "lec.1.mp4")
            shelf.index()
            (shelf.media / "b" / "lec.1.mp4").rename(shelf.media / "b" / "moved.mp4")
            shelf.index()
            first, second = shelf.media / "a" / "lec.1.mp4", shelf.media / "a" / "lec.2.mp4"
            first.rename(shelf.media / "a" / "x.mp4")
            second.rename(first)
            (shelf.media / "a" / "x.mp4").rename(second)
            shelf.index()

        assert shelf.made_by(touch_rename_and_swap) == []
        assert shelf.texts("a/lec.1.mp4") == texts["a/lec.2.mp4"]
        assert shelf.texts("a/lec.2.mp4") == texts["a/lec.1.mp4"]
        assert shelf.texts("b/moved.mp4") == texts["b/lec.1.mp4"]
        assert "b/lec.1.mp4" not in set(Catalog.open(str(shelf.catalog)).videos()["video"])

    def test_a_second_run_changes_no_head(self, shelf) -> None:
        shelf.index()
        head = Reader.open(shelf.catalog).head
        assert shelf.made_by(shelf.index) == []
        assert Reader.open(shelf.catalog).head == head


def test_replaced_bytes_with_restored_times_swap_the_text_in_one_head(rerun) -> None:
    film = rerun.put("film.mp4")
    rerun.put("other.mp4", "grey")
    rerun.index()
    old = rerun.texts("film.mp4")
    _swap_bytes(film, rerun.clips["blue"])
    rerun.index()
    new = rerun.texts("film.mp4")
    assert old != new
    seen = []
    for head in reversed(earlier_heads(Layout.of(rerun.catalog))):
        catalog = Catalog(Reader.open(rerun.catalog, head), None)
        if "film.mp4" in set(catalog.videos()["video"]):
            shown = catalog.entries(kind="local")
            seen.append(shown.filter(shown["video"] == "film.mp4")["text"].to_list())
    assert [text for text in seen if text] == sorted((text for text in seen if text), key=[old, new].index)
    assert {tuple(text) for text in seen if text} == {tuple(old), tuple(new)}
    assert seen[-1] == new


def test_old_text_is_shown_until_all_of_the_new_is_made(rerun) -> None:
    film = rerun.put("film.mp4")
    rerun.index()
    old = rerun.texts("film.mp4")
    shutil.copy(rerun.clips["blue"], film)
    assert rerun.index(limit_windows=3).stopped
    assert rerun.texts("film.mp4") == old
    rerun.index()
    assert rerun.texts("film.mp4") != old


class TestGoneAndBack:
    @pytest.fixture
    def shelf(self, rerun):
        rerun.put("kept.mp4", "red")
        rerun.put("gone.mp4", "blue")
        rerun.index()
        return rerun

    def test_a_deleted_file_leaves_the_default_view_and_comes_back_without_a_call(
        self, shelf, evicat
    ) -> None:
        away = shelf.folder / "away.mp4"
        (shelf.media / "gone.mp4").rename(away)
        assert shelf.index().missing == ["gone.mp4"]
        assert shelf.shown() == {"kept.mp4"}
        words = ("search", "picture", "--mode", "text", "--limit", 100, "--json", "--catalog", shelf.catalog)
        hits = [json.loads(line) for line in evicat(*words).out.splitlines()]
        assert {hit["video"] for hit in hits} == {"kept.mp4"}
        assert "gone.mp4 missing since" in evicat("status", "--catalog", shelf.catalog).out
        shown = evicat("show", "gone.mp4", "--catalog", shelf.catalog)
        assert "No entries" in shown.out
        assert shelf.index().missing == [], "it is told once"
        away.rename(shelf.media / "gone.mp4")
        assert shelf.made_by(shelf.index) == []
        assert shelf.shown() == {"kept.mp4", "gone.mp4"}

    def test_one_name_less_of_a_copy_leaves_the_other(self, shelf) -> None:
        shelf.put("copy.mp4", "blue")
        shelf.index()
        (shelf.media / "copy.mp4").unlink()
        shelf.index()
        assert set(Catalog.open(str(shelf.catalog)).videos()["video"]) == {"kept.mp4", "gone.mp4"}
        assert shelf.shown() == {"kept.mp4", "gone.mp4"}

    def test_indexing_another_folder_deletes_nothing(self, shelf) -> None:
        (shelf.media / "gone.mp4").unlink()
        other = shelf.folder / "other"
        other.mkdir()
        shutil.copy(shelf.clips["grey"], other / "film.mp4")
        assert shelf.index(other).missing == []
        assert shelf.shown() == {"kept.mp4", "gone.mp4", "film.mp4"}

    @pytest.mark.parametrize("leave_folder", [True, False])
    def test_an_unmounted_root_deletes_nothing_and_is_said(self, shelf, evicat, leave_folder: bool) -> None:
        shutil.rmtree(shelf.media)
        if leave_folder:
            shelf.media.mkdir()
        other = shelf.folder / "other"
        other.mkdir()
        shutil.copy(shelf.clips["grey"], other / "film.mp4")
        index = ("index", shelf.media, other, "--catalog", shelf.catalog, "--recipe", shelf.recipe)
        run = evicat(*index)
        assert run.code == 3
        expected = "no media in folder" if leave_folder else "no such file, folder or pattern"
        assert expected in run.out
        assert shelf.shown() == {"kept.mp4", "gone.mp4", "film.mp4"}

    def test_an_emptied_mount_point_inside_the_root_deletes_nothing_and_is_said(self, shelf) -> None:
        inner = shelf.put("disk/film.mp4", "grey")
        shelf.index()
        inner.unlink()
        summary = shelf.index()
        assert summary.missing == []
        assert any("is empty, as if a disk were not mounted" in note for note in summary.notes)
        assert "disk/film.mp4" in shelf.shown()

    def test_an_unreadable_folder_inside_the_root_deletes_nothing_and_is_said(
        self, shelf, monkeypatch
    ) -> None:
        folder = shelf.put("locked/film.mp4", "grey").parent
        shelf.index()
        _lock(folder, monkeypatch)
        summary = shelf.index()
        assert summary.missing == []
        assert any(f"cannot read folder {folder}" in problem for problem in summary.problems)
        assert any(f"{folder} cannot be read" in note for note in summary.notes)
        assert "locked/film.mp4" in shelf.shown()

    def test_a_root_without_any_film_but_with_other_files_is_in_reach(self, shelf, evicat) -> None:
        (shelf.media / "notes.txt").write_text("kept")
        for name in ("kept.mp4", "gone.mp4"):
            (shelf.media / name).unlink()
        run = evicat("index", shelf.media, "--catalog", shelf.catalog, "--recipe", shelf.recipe)
        assert run.code == 3
        assert "2 missing" in run.out
        assert f"no media in folder {shelf.media}" in " ".join(run.out.split())
        assert shelf.shown() == set()


def _lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder unreadable; for root, whom no permission stops, its listing is made to fail."""
    if os.getuid():
        folder.chmod(0)
        return
    real = os.scandir

    def scandir(path=".", /):
        if Path(os.fsdecode(path)) == folder:
            raise PermissionError(13, "Permission denied", str(folder))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


class TestManifest:
    @pytest.fixture
    def shelf(self, rerun):
        rerun.put("one.mp4", "red")
        rerun.put("two.mp4", "blue")
        self.write(rerun, {"id": "one", "path": "one.mp4"}, {"id": "two", "path": "two.mp4"})
        rerun.index(rerun.media / "m.jsonl")
        return rerun

    def write(self, rerun, *rows: dict[str, object]) -> None:
        (rerun.media / "m.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def test_a_removed_row_leaves_the_view_and_comes_back_without_a_call(self, shelf) -> None:
        self.write(shelf, {"id": "one", "path": "one.mp4"})
        assert shelf.index(shelf.media / "m.jsonl").missing == ["two"]
        assert shelf.shown() == {"one"}
        self.write(shelf, {"id": "one", "path": "one.mp4"}, {"id": "two", "path": "two.mp4"})
        assert shelf.made_by(lambda: shelf.index(shelf.media / "m.jsonl")) == []
        assert shelf.shown() == {"one", "two"}

    def test_two_assets_that_claim_one_id_are_refused(self, shelf, evicat) -> None:
        head = Reader.open(shelf.catalog).head
        self.write(shelf, {"id": "one", "path": "one.mp4"}, {"id": "one", "path": "two.mp4"})
        run = evicat("index", shelf.media / "m.jsonl", "--catalog", shelf.catalog, "--recipe", shelf.recipe)
        assert run.code == 2
        assert "line 2: id 'one' stands twice; ids must be unique" in " ".join(run.err.split())
        assert Reader.open(shelf.catalog).head == head

    def test_a_film_in_a_folder_that_cannot_be_read_stays(self, shelf, monkeypatch) -> None:
        folder = shelf.put("locked/film.mp4", "grey").parent
        rows = [{"id": "one", "path": "one.mp4"}, {"id": "far", "path": "locked/film.mp4"}]
        self.write(shelf, *rows)
        shelf.index(shelf.media / "m.jsonl")
        real = os.stat

        def stat(path, *arguments, **options):
            if isinstance(path, (str, os.PathLike)) and Path(path).parent == folder:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *arguments, **options)

        _lock(folder, monkeypatch)
        monkeypatch.setattr(os, "stat", stat)
        summary = shelf.index(shelf.media / "m.jsonl")
        assert summary.missing == []
        assert list(summary.failures) == ["far"]
        assert any("cannot be read" in note for note in summary.notes)
        assert "far" in shelf.shown()
