"""The viewer over HTTP: what it answers, what it refuses, and that it writes nothing."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import cv2
import numpy as np
import pytest

from evicat.catalog import Catalog
from evicat.schemas.errors import UnknownNameError
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.storage.layout import SCHEMA, Layout
from evicat.storage.snapshots import create_snapshot, delete_snapshot, find_snapshot, write_manifest
from evicat.storage.store import Store
from evicat.viewer import app_pages, app_search, serve_files, serve_pictures
from evicat.viewer.app_compare import Said, marked
from evicat.viewer.app_search import Piece, pieces
from evicat.viewer.library_page import library_page, stretches
from evicat.viewer.serve_pictures import Kept, Key

from .app_serving import Answer, ask
from .gallery import BROKEN, OTHER, VIDEO


def paths(gallery) -> list[str]:
    asset_id, entry = gallery.asset_ids[VIDEO], gallery.locals[0]
    return [
        "/",
        "/?name=plain&sort=length&page=1",
        "/search",
        "/search?q=platform&mode=text&kind=narrative&limit=50",
        "/quality",
        f"/v/{asset_id}",
        f"/v/{asset_id}?e={entry}",
        f"/v/{asset_id}?t=1:02",
        f"/v/{gallery.asset_ids[BROKEN]}",
        f"/compare/{asset_id}",
        f"/media/{asset_id}",
        f"/captions/{asset_id}.vtt",
        f"/frame/{entry}/0.jpg",
        f"/shown/{asset_id}/1200.jpg?size=small",
        "/static/page.css",
        "/static/player.js",
        "/?view=w/o+narrative",
    ]


def test_every_page_answers_and_lets_nothing_run_that_is_not_its_own(viewer, gallery) -> None:
    for path in paths(gallery):
        for method in ("GET", "HEAD"):
            answer = ask(viewer, path, method)
            assert answer.status == 200, (path, answer.body[:300])
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
            assert bool(answer.body) == (method == "GET")


def test_texts_of_the_catalog_never_stand_in_a_page_as_markup(viewer, gallery) -> None:
    for path in paths(gallery):
        body = ask(viewer, path).body
        if b"<!DOCTYPE html>" in body:
            assert not re.search(rb"<script>window|<img src=x|</script><script>|<!--<script>", body), path
    found = ask(viewer, "/search?q=script&mode=text").text
    assert "&lt;<mark>script</mark>&gt;" in found
    assert "1 moment" in found or "moments" in found


def test_the_data_block_of_a_video_is_json_with_its_texts(viewer, gallery) -> None:
    page = ask(viewer, f"/v/{gallery.asset_ids[VIDEO]}").text
    block = re.search(r'<script type="application/json" id="evicat-data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(block[1])
    assert data["video"] == VIDEO
    assert {entry["entry_id"] for entry in data["entries"]} >= {*gallery.locals, *gallery.narratives}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/search?q=x", "/static/page.css", "/nowhere"])
def test_only_reading_is_answered(viewer, method: str, path: str) -> None:
    answer = ask(viewer, path, method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:80", 421),
        ("[::1]evil", 421),
        ("", 421),
        ("localhost", 200),
        ("LOCALHOST:1234", 200),
        ("127.0.0.1:99", 200),
    ],
)
def test_other_hosts_do_not_reach_a_viewer_on_loopback(viewer, host: str, status: int) -> None:
    assert ask(viewer, "/", Host=host).status == status


TRAVERSALS = [
    "/static/../app.py",
    "/static/../../../../../../etc/passwd",
    "/static/%2e%2e/app.py",
    "/static/%2e%2e%2fapp.py",
    "/static/..%5capp.py",
    "/static/%252e%252e%252fapp.py",
    "/static//etc/passwd",
    "/static/page.css%00.js",
    "/static/__init__.py",
    "/media//etc/passwd",
    "/media/../../etc/passwd",
    "/media/%2fetc%2fpasswd",
    "/media/..%2f..%2fetc%2fpasswd",
    "/media/file:%2f%2f%2fetc%2fpasswd",
    "/v/..%2f..",
    "/compare/%2e%2e",
    "/frame/..%2f..%2fetc%2fpasswd/0.jpg",
    "/shown/%2e%2e/0.jpg",
    "//etc/passwd",
    "/../../etc/passwd",
    "/.git/config",
    "/templates/base.html",
    "/media/",
    "/frame/x",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_paths_lead_to_pages_only(viewer, path: str) -> None:
    answer = ask(viewer, path)
    assert answer.status == 404
    assert b"root:" not in answer.body
    assert b"Traceback" not in answer.body
    assert b"There is no such page" in answer.body


def test_a_file_is_not_led_to_by_its_name(viewer, gallery) -> None:
    assert ask(viewer, f"/media/{quote(OTHER)}").status == 404
    assert ask(viewer, f"/media/{quote(str(gallery.media / OTHER), safe='')}").status == 404
    assert ask(viewer, f"/media/{'0' * 32}").status == 404


ODD_QUERIES = [
    ("/?nothing=1", 404, "unknown parameter"),
    ("/?name=a&name=b", 400, "twice"),
    ("/?page=0", 400, "whole number"),
    ("/?page=-1", 400, "whole number"),
    ("/?page=2", 400, "from 1 to 1"),
    ("/?page=1e3", 400, "whole number"),
    ("/?page=99999999999999999999", 400, "whole number"),
    ("/?sort=colour", 404, "unknown sort"),
    ("/?at=nosuch", 404, "unknown snapshot"),
    ("/?at=9999", 404, "unknown head"),
    ("/?at=..%2f..%2fetc", 400, "name of a snapshot"),
    ("/?view=nosuch", 404, "unknown view"),
    ("/?name=%00", 400, "control characters"),
    ("/search?q=" + "a" * 1001, 400, "1001 characters"),
    ("/search?q=x&limit=201", 400, "whole number"),
    ("/search?q=x&limit=ten", 400, "whole number"),
    ("/search?q=x&mode=magic", 404, "unknown mode"),
    ("/search?q=x&kind=sonnet", 404, "unknown kind"),
    ("/search?q=x&view=default&view=default", 400, "twice"),
    ("/v/{asset}?t=yesterday", 400, "not a time"),
    ("/v/{asset}?t=-5", 400, "not a time"),
    ("/v/{asset}?t=nan", 400, "not a time"),
    ("/v/{asset}?e=other", 400, "none of this video"),
    ("/v/{asset}?x=1", 404, "unknown parameter"),
    ("/compare/{asset}?a=zz&b=zz", 400, "beginning of 0 producers"),
    ("/compare/{asset}?page=7", 400, "whole number"),
    ("/frame/{entry}/2.jpg", 404, "unknown frame"),
    ("/frame/{entry}/0.jpg?size=huge", 404, "unknown size"),
    ("/frame/{entry}/99999.jpg", 404, "no such page"),
    ("/frame/nothing/0.jpg", 400, "no entry of this catalog"),
    ("/frame/%27%20OR%201=1--/0.jpg", 404, "no such page"),
    ("/shown/{asset}/9999999.jpg", 204, ""),
    ("/" + "a" * 9000, 414, "too long"),
    ("/search?q=" + "%41" * 3000, 414, "too long"),
]


@pytest.mark.parametrize(("query", "status", "said"), ODD_QUERIES, ids=lambda each: str(each)[:40])
def test_what_cannot_be_answered_is_said_in_plain_words(viewer, gallery, query, status, said) -> None:
    target = query.replace("{asset}", gallery.asset_ids[VIDEO]).replace("{entry}", gallery.locals[0])
    answer = ask(viewer, target)
    assert answer.status == status, answer.body
    assert said in answer.text
    assert "Traceback" not in answer.text


def test_words_are_no_syntax_of_a_filter(viewer) -> None:
    for word in ("' OR 1=1 --", '"', "\"'\\", "(", "text:x AND", "%", "*"):
        answer = ask(viewer, f"/search?q={quote(word)}&mode=text")
        assert answer.status == 200, answer.body
        assert ask(viewer, f"/?name={quote(word)}").status == 200
    answer = ask(viewer, f"/search?q=x&mode=text&video={quote(chr(39) + ' OR 1=1 --')}")
    assert answer.status == 200
    assert "unknown video" in answer.text


# Media


@pytest.fixture(scope="module")
def film(gallery) -> bytes:
    return (gallery.media / VIDEO).read_bytes()


def ranges(size: int) -> Iterator[tuple[str, int, slice | None]]:
    """A header, the status, and the bytes that answer it."""
    yield "bytes=0-0", 206, slice(0, 1)
    yield "bytes=5-9", 206, slice(5, 10)
    yield "bytes=5-", 206, slice(5, size)
    yield "bytes=-7", 206, slice(size - 7, size)
    yield f"bytes=-{size * 2}", 206, slice(0, size)
    yield f"bytes=0-{size * 9}", 206, slice(0, size)
    yield f"bytes={size - 1}-", 206, slice(size - 1, size)
    yield f"bytes={size}-", 416, None
    yield "bytes=-0", 416, None
    yield "bytes=0-1,3-4", 416, None
    yield "bytes=" + ",".join(f"{at}-{at}" for at in range(200)), 416, None
    yield "bytes=a-b", 416, None
    yield "bytes=", 416, None
    yield "bytes=-", 416, None
    yield "bytes=--5", 416, None
    yield "bytes=5-2-3", 416, None
    yield "bytes=0x0-0x5", 416, None
    yield "bytes=1_0-2_0", 416, None
    yield "bytes=" + "9" * 5000 + "-", 416, None
    yield "bytes=9-5", 400, None
    yield "lines=1-2", 200, slice(0, size)
    yield "nonsense", 200, slice(0, size)


def test_ranges_are_answered_exactly_or_refused(viewer, gallery, film) -> None:
    path = f"/media/{gallery.asset_ids[VIDEO]}"
    for header, status, part in ranges(len(film)):
        answer = ask(viewer, path, Range=header)
        assert answer.status == status, header
        if part is not None:
            assert answer.body == film[part], header
            assert int(answer.headers["content-length"]) == len(film[part])
        if status == 206:
            told = f"bytes {part.start}-{part.stop - 1}/{len(film)}"
            assert answer.headers["content-range"] == told
        if status == 416:
            assert answer.headers["content-range"] == f"bytes */{len(film)}"
            assert len(answer.body) < 200


def test_media_says_what_it_is_and_a_changed_copy_is_not_continued(viewer, gallery, film) -> None:
    path = f"/media/{gallery.asset_ids[VIDEO]}"
    whole = ask(viewer, path)
    assert whole.body == film
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    tag = whole.headers["etag"]
    assert ask(viewer, path, Range="bytes=3-5", If_Range=tag).body == film[3:6]
    assert ask(viewer, path, Range="bytes=3-5", If_Range='"other"').body == film
    assert ask(viewer, path, "HEAD", Range="bytes=3-5").status == 200


def copied(gallery, folder: Path, location: Path) -> str:
    """A copy of the catalog that says its media lies in ``location``."""
    uri = folder / "copy.catalog"
    shutil.copytree(gallery.uri, uri)
    with Store.connect(uri, write=True) as store:
        store.add_root(Root("media", "folder", str(location)))
    return str(uri)


def test_a_file_whose_bytes_changed_is_refused_until_it_is_itself_again(
    serve, gallery, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(serve_files, "LOOK_AGAIN_S", 0.0)
    media = tmp_path / "media"
    shutil.copytree(gallery.media, media)
    viewer = serve(copied(gallery, tmp_path, media))
    asset_id = gallery.asset_ids[VIDEO]
    path = f"/media/{asset_id}"
    film = media / VIDEO
    original = film.read_bytes()
    assert ask(viewer, path).body == original
    film.write_bytes(original[:-1] + b"?")  # as many bytes as before
    answer = ask(viewer, path)
    assert answer.status == 410
    assert "was moved, removed, or written to since" in answer.text
    assert ask(viewer, path, Range="bytes=0-9").status == 410
    page = ask(viewer, f"/v/{asset_id}").text
    assert "<video" not in page
    assert "bytes have changed" in page
    assert ask(viewer, f"/frame/{gallery.locals[0]}/0.jpg").status == 410
    film.write_bytes(original)
    assert ask(viewer, path).body == original
    assert "<video" in ask(viewer, f"/v/{asset_id}").text
    film.unlink()
    assert ask(viewer, path).status == 410


def test_media_that_was_moved_is_found_below_a_media_root(serve, gallery, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "deep"
    other.mkdir(parents=True)
    shutil.copy(gallery.media / VIDEO, other / "renamed.bin")
    uri = copied(gallery, tmp_path, tmp_path / "nowhere")
    path = f"/media/{gallery.asset_ids[VIDEO]}"
    assert ask(serve(uri), path).status == 410
    answer = ask(serve(uri, media_roots=(str(tmp_path / "elsewhere"),)), path, Range="bytes=0-3")
    assert answer.status == 206
    assert answer.headers["content-type"] == "video/mp4"


def test_what_is_said_is_there_for_the_player(viewer, gallery) -> None:
    answer = ask(viewer, f"/captions/{gallery.asset_ids[VIDEO]}.vtt")
    assert answer.headers["content-type"] == "text/vtt; charset=utf-8"
    assert "00:00:00.500 --> 00:00:01.400" in answer.text
    assert "Mind the gap." in answer.text
    assert "<" not in answer.text
    assert ask(viewer, f"/captions/{'0' * 32}.vtt").status == 404


# Pictures


def picture(answer: Answer) -> np.ndarray:
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "image/jpeg"
    return cv2.cvtColor(
        cv2.imdecode(np.frombuffer(answer.body, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB
    )


def test_a_picture_is_the_frame_that_the_entry_cites(viewer, gallery) -> None:
    frames = Catalog.open(gallery.uri).frames(gallery.locals[1])
    for index, frame in enumerate(frames):
        shown = picture(ask(viewer, f"/frame/{gallery.locals[1]}/{index}.jpg"))
        assert shown.shape == (180, 320, 3)
        assert np.abs(shown.astype(int) - frame.image).mean() < 6
        small = picture(ask(viewer, f"/frame/{gallery.locals[1]}/{index}.jpg?size=small"))
        assert small.shape[1] == 240
    for time_ms in (3100, 3900):
        nearest = ask(viewer, f"/shown/{gallery.asset_ids[VIDEO]}/{time_ms}.jpg")
        assert nearest.body == ask(viewer, f"/frame/{gallery.locals[1]}/1.jpg").body


def test_pictures_of_many_readers_come_from_a_bounded_number_of_decoders(serve, gallery, monkeypatch) -> None:
    viewer = serve(gallery.uri)
    running, most, lock = 0, 0, threading.Lock()
    decode = serve_pictures.Pictures._decode

    def counted(self, *arguments) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            decode(self, *arguments)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(serve_pictures.Pictures, "_decode", counted)
    wanted = [
        f"/frame/{entry}/{index}.jpg?size={size}"
        for entry in gallery.locals
        for index in (0, 1)
        for size in ("small", "shown")
    ] * 4
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda path: ask(viewer, path), wanted))
    assert {answer.status for answer in answers} == {200}
    assert 1 <= most <= serve_pictures.DECODERS


def test_pictures_are_kept_up_to_a_number_of_bytes() -> None:
    kept = Kept(most_bytes=100)
    keys = [Key("a", number, 240) for number in range(4)]
    for key in keys[:3]:
        kept.put(key, b"x" * 30)
    assert kept.get(keys[0])
    kept.put(keys[3], b"x" * 30)
    assert kept.get(keys[1]) is None
    assert kept.get(keys[0])
    assert kept.bytes == 90
    kept.put(keys[0], b"x" * 10)
    assert kept.bytes == 70


# The state of the catalog


def test_a_viewer_follows_the_head_and_keeps_to_a_snapshot_that_was_chosen(
    serve, gallery, tmp_path: Path
) -> None:
    uri = copied(gallery, tmp_path, gallery.media)
    viewer = serve(uri)
    assert ask(viewer, "/?at=before").status == 404
    create_snapshot(uri, "before", note="all of it")
    assert "newcomer" not in ask(viewer, "/").text
    film = gallery.media / OTHER
    with Store.connect(uri, write=True) as store:
        stamp = FileStamp.of(film.stat())
        store.add_name(VideoName("media", "newcomer.mp4", gallery.asset_ids[OTHER], OTHER, stamp))
    now, then = ask(viewer, "/").text, ask(viewer, "/?at=before").text
    assert "newcomer.mp4" in now
    assert "newcomer" not in then
    assert '<option value="before" selected>' in then
    assert f'href="/v/{gallery.asset_ids[VIDEO]}?at=before"' in then
    found = ask(viewer, "/search?q=gap&mode=text&at=before").text
    assert f'href="/v/{gallery.asset_ids[VIDEO]}?at=before&amp;e={gallery.speech[0]}"' in found
    delete_snapshot(uri, "before")
    create_snapshot(uri, "before", note="another")
    assert "newcomer.mp4" in ask(viewer, "/?at=before").text


def test_a_snapshot_of_another_catalog_schema_is_not_offered(serve, gallery, tmp_path: Path) -> None:
    uri = copied(gallery, tmp_path, gallery.media)
    for name in ("former", "ours"):
        create_snapshot(uri, name, note="")
    layout = Layout.of(uri)
    former = find_snapshot(layout, "former").model_copy(update={"catalog_schema": SCHEMA - 1})
    write_manifest(layout, former)
    viewer = serve(uri)
    assert '<option value="ours"' in ask(viewer, "/").text
    assert "former" not in ask(viewer, "/").text
    assert "has catalog schema" in ask(viewer, "/?at=former").text


def test_nothing_is_written(viewer, gallery) -> None:
    def state() -> list[tuple[str, int, int]]:
        found = sorted([*Path(gallery.uri).rglob("*"), *gallery.media.rglob("*")])
        return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in found]

    before = state()
    for path in paths(gallery):
        ask(viewer, path)
        ask(viewer, path, "POST")
    assert state() == before


def test_a_search_is_that_of_the_catalog(viewer, gallery) -> None:
    catalog = Catalog.open(gallery.uri)
    for question in ("platform", '"mind the gap"', "dark blue picture"):
        hits = catalog.search(question, mode="text", limit=20)["entry_id"].to_list()
        page = ask(viewer, f"/search?q={quote(question)}&mode=text").text
        assert re.findall(r'href="/v/[0-9a-f]+\?e=([^"]+)"', page) == hits
        assert hits


def test_a_search_that_takes_long_does_not_stop_other_pages(serve, gallery, monkeypatch) -> None:
    viewer = serve(gallery.uri)
    go, begun = threading.Event(), threading.Semaphore(0)

    def slow(*_: object) -> list[object]:
        begun.release()
        assert go.wait(60)
        return []

    monkeypatch.setattr(app_search, "found", slow)
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(ask, viewer, "/search?q=slow") for _ in range(20)]
        assert begun.acquire(timeout=30)
        assert ask(viewer, "/").status == 200
        assert ask(viewer, f"/media/{gallery.asset_ids[OTHER]}", Range="bytes=0-9").status == 206
        assert ask(viewer, f"/frame/{gallery.locals[0]}/0.jpg").status == 200
        assert not any(each.done() for each in waiting)
        go.set()
        assert {each.result().status for each in waiting} == {200}


def test_a_fault_is_told_without_what_it_says(serve, gallery, monkeypatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("a secret")

    monkeypatch.setattr(app_pages.Pages, "quality", broken)
    answer = ask(serve(gallery.uri), "/quality")
    assert answer.status == 500
    assert "Something went wrong here" in answer.text
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


# Two producers


def test_two_producers_stand_side_by_side_in_time(viewer, gallery) -> None:
    catalog = Catalog.open(gallery.uri)
    makers = {row["kind"]: row["producer_id"][:8] for row in catalog.active().to_dicts()}
    asset_id = gallery.asset_ids[VIDEO]
    page = ask(viewer, f"/compare/{asset_id}?a={makers['narrative']}&b={makers['local']}").text
    rows = re.findall(r'<tr><th scope="row"><a href="/v/[0-9a-f]+\?t=([0-9.]+)">', page)
    assert rows == ["0.0", "4.0"]
    assert "failed: Truncated: the answer was cut" in page
    assert "A man waits on a platform, part 1" in page
    assert "nothing to compare" in ask(viewer, f"/compare/{gallery.asset_ids[OTHER]}").text


def test_words_are_marked_that_the_other_side_lacks_unless_they_are_most() -> None:
    said = Said("a", 0.0, 10.0, (Piece("The man in a red coat waits.", False),))
    others = {"the", "man", "in", "a", "blue", "coat", "waits"}
    [shown] = marked([said], others)
    assert [piece.text for piece in shown.pieces if piece.is_sought] == ["red"]
    assert "".join(piece.text for piece in shown.pieces) == "The man in a red coat waits."
    assert list(marked([said], {"a", "dog"})) == [said]


@pytest.mark.parametrize(
    ("text", "q", "shown"),
    [
        ("Mind the gap.", "GAP mind", "[Mind] the [gap]."),
        ("Mindful gapes", "gap mind", "Mindful gapes"),
        ("x " * 300 + "gap" + " y" * 300, "gap", "… " + "x " * 44 + "[gap]" + " y" * 134 + " …"),
        ("gap", '"', "gap"),
    ],
)
def test_hits_show_the_part_with_the_words(text: str, q: str, shown: str) -> None:
    found = "".join(f"[{piece.text}]" if piece.is_sought else piece.text for piece in pieces(text, q))
    assert found == shown


# The library


def test_the_library_is_filtered_sorted_and_cut_into_pages(gallery) -> None:
    catalog = Catalog.open(gallery.uri)
    page = library_page(catalog)
    assert [row.video for row in page.rows] == sorted([VIDEO, OTHER, BROKEN])
    assert page.entries == {"narrative": 2, "local": 4, "speech": 3, "sound": 1}
    assert (page.videos, page.matching, page.failures) == (3, 3, 1)
    assert page.hours == pytest.approx(16 / 3600)
    assert library_page(catalog, sort="failures").rows[0].video == VIDEO
    assert library_page(catalog, sort="length").rows[-1].video == BROKEN
    assert [row.video for row in library_page(catalog, name="PLAIN").rows] == [OTHER]
    second = library_page(catalog, offset=1, limit=1)
    assert ([row.video for row in second.rows], second.matching) == ([BROKEN], 3)
    with pytest.raises(UnknownNameError, match="unknown order 'colour'"):
        library_page(catalog, sort="colour")


def test_a_lane_shows_the_worst_of_each_part_and_what_is_pending() -> None:
    runs = [(0.0, 30.0, "done"), (30.0, 30.5, "failed"), (30.5, 60.0, "done"), (90.0, 120.0, "empty")]
    found = [(each.start, each.end, each.outcome) for each in stretches(runs, 120.0)]
    assert found == [
        (0, 30, "done"),
        (30, 31, "failed"),
        (31, 60, "done"),
        (60, 90, "pending"),
        (90, 120, "empty"),
    ]
    assert stretches(runs, 0.0) == ()
