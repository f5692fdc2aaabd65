import json
import os
from pathlib import Path

import pytest

from evicat.catalog.sources import find, read_manifest
from evicat.schemas.errors import UsageError
from evicat.schemas.span import Span


def _touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def _names(*requests: object) -> list[str]:
    return [source.name for source in find([str(r) for r in requests])[0]]


def test_a_folder_gives_its_media_by_relative_path_and_leaves_hidden_files_out(tmp_path) -> None:
    _touch(tmp_path, "b.mp4", "a/lec.1.MP4", "a/._lec.1.mp4", ".trash/x.mp4", "a/notes.txt", "sound.flac")
    assert _names(tmp_path) == ["b.mp4", "sound.flac", "a/lec.1.MP4"]


def test_links_are_followed_and_a_loop_ends(tmp_path) -> None:
    _touch(tmp_path, "a/film.mp4")
    (tmp_path / "link.mp4").symlink_to("a/film.mp4")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert _names(tmp_path) == ["link.mp4", "a/film.mp4"]


@pytest.mark.parametrize(
    "name",
    [
        "a b.mp4",
        "it's.mp4",
        'q"uote.mp4',
        "new\nline.mp4",
        "a%03d.mp4",
        "a:b.mp4",
        "clip[1].mp4",
        "-dash.mp4",
    ],
)
def test_odd_names_are_found_as_file_and_in_a_folder(tmp_path, name: str) -> None:
    _touch(tmp_path, name)
    assert _names(tmp_path) == _names(tmp_path / name) == [name]


def test_names_that_are_no_utf8_are_written_so_that_tables_can_hold_them(tmp_path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.mp4"))).write_bytes(b"x")
    assert _names(tmp_path) == ["\\xff\\xfe.mp4"]


def test_a_glob_that_the_shell_did_not_expand(tmp_path) -> None:
    _touch(tmp_path, "a/x.mp4", "b/y.mp4", "b/z.txt")
    assert _names(tmp_path / "*" / "*.mp4") == ["x.mp4", "y.mp4"]


def test_what_means_nothing_is_reported_and_the_rest_is_found(tmp_path) -> None:
    _touch(tmp_path, "ok.mp4", "empty/readme.txt")
    sources, problems = find([str(tmp_path / "gone.mp4"), str(tmp_path / "empty"), str(tmp_path / "ok.mp4")])
    assert [source.name for source in sources] == ["ok.mp4"]
    assert problems[0] == f"no such file, folder or pattern: {tmp_path / 'gone.mp4'}"
    assert problems[1].startswith(f"no media in folder {tmp_path / 'empty'}: looked for .3gp")


def test_a_file_named_twice_is_one_source(tmp_path) -> None:
    _touch(tmp_path, "a.mp4")
    assert _names(tmp_path / "a.mp4", tmp_path / "a.mp4") == ["a.mp4"]


def test_csv_and_jsonl_manifests_mean_the_same(tmp_path) -> None:
    row = {"id": "v1", "path": "clips/a.mp4", "benchmark": "cg", "split": "test", "source_id": "yt1"}
    row |= {"in_s": 1.5, "out_s": 9, "duration_s": 60, "subtitle": "a.srt", "subtitle_offset_s": -0.5}
    (tmp_path / "m.jsonl").write_text(
        json.dumps(row) + "\n\n" + json.dumps({"id": "v2", "path": "b.mp4"}) + "\n"
    )
    header = ",".join(row)
    values = ",".join(str(value) for value in row.values())
    (tmp_path / "m.csv").write_text(f"\ufeff{header}\n{values}\nv2,b.mp4{',' * 8}\n", encoding="utf-8")
    from_csv, from_json = read_manifest(tmp_path / "m.csv"), read_manifest(tmp_path / "m.jsonl")
    for one, two in zip(from_csv, from_json, strict=True):
        assert (one.name, one.path, one.clip, one.subtitle) == (two.name, two.path, two.clip, two.subtitle)
    first = from_csv[0]
    assert (first.path, first.clip) == (tmp_path / "clips/a.mp4", Span(1_500_000, 9_000_000))
    assert (first.subtitle_offset_us, first.expected_duration_s, first.split) == (-500_000, 60.0, "test")
    assert from_csv[1].clip is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a"}', r"m\.jsonl, line 1, path: Field required"),
        (
            '{"id": "a", "path": "x", "in_s": 5, "out_s": 2}',
            r"line 1, row: .*out_s must be > in_s, got in_s=5",
        ),
        ('{"id": "a", "path": "x", "in_s": 5}', "in_s and out_s must stand together"),
        ('{"id": "a", "path": "x"}\n{"id": "a", "path": "y"}', r"line 2: id 'a' stands twice"),
        ('{"id": "a", "path": "x"}\n{broken', r"m\.jsonl, line 2: not JSON"),
        ('{"id": "a", "path": "x", "title": "y"}', "line 1, title: Extra inputs"),
    ],
)
def test_a_wrong_row_is_named_with_file_line_and_field(tmp_path, text: str, message: str) -> None:
    (tmp_path / "m.jsonl").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_manifest(tmp_path / "m.jsonl")
