"""The viewer as a reader meets it, in a browser: search, choose, play, compare."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from evicat.catalog.media.clock import Clock
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, FrameRef, Outcome, WindowResult
from evicat.schemas.identity import Unit, entry_id
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import US, Span
from evicat.storage.store import Store

from .gallery import BROKEN, HOSTILE, LOCAL, OTHER, VIDEO

GRAVE = ("serious", "critical")
PLAYS = "() => document.getElementById('player')?.readyState >= 1"


def at(page) -> float:
    return page.evaluate("document.getElementById('player').currentTime")


def is_at(page, seconds: float) -> None:
    page.wait_for_function(
        "seconds => Math.abs(document.getElementById('player').currentTime - seconds) < 0.05", arg=seconds
    )


def pages(gallery) -> dict[str, str]:
    asset_id = gallery.asset_ids[VIDEO]
    return {
        "library": "/",
        "search": "/search?q=platform&mode=text",
        "no search": "/search",
        "video": f"/v/{asset_id}?e={gallery.locals[0]}",
        "compare": f"/compare/{asset_id}",
        "quality": "/quality",
        "broken": f"/v/{gallery.asset_ids[BROKEN]}",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_is_whole_accessible_and_asks_nobody_else(
    viewer, gallery, tabs, theme: str, width: int
) -> None:
    axe = Axe()
    for name, path in pages(gallery).items():
        page = tabs.open(viewer + path, width=width, theme=theme)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        found = axe.run(page).response["violations"]
        grave = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in GRAVE]
        assert grave == [], name
        assert page.evaluate("window.ran") is None, name
    assert tabs.seen.outside(viewer + "/") == []


def test_from_the_library_to_the_second_in_which_a_thing_was_said(viewer, gallery, tabs) -> None:
    page = tabs.open(viewer)
    page.get_by_role("searchbox", name="Search all videos").fill("mind the gap")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hits")
    assert page.locator("mark").first.inner_text().lower() in ("mind", "the", "gap")
    page.locator("a.moment").first.click()
    page.wait_for_selector("html[data-player]")
    page.wait_for_function(PLAYS)
    is_at(page, 0.5)
    assert "Mind the gap." in page.locator("#details").inner_text()
    assert page.locator(".row.chosen").count() == 1


def test_choosing_an_entry_moves_the_player_and_the_player_moves_the_page(viewer, gallery, tabs) -> None:
    page = tabs.open(f"{viewer}/v/{gallery.asset_ids[VIDEO]}")
    page.wait_for_function(PLAYS)
    page.locator(f'.row a[href$="{gallery.locals[1]}"]').click()
    is_at(page, 2.0)
    page.keyboard.press("ArrowRight")
    is_at(page, 4.0)
    page.evaluate("document.getElementById('player').currentTime = 6.2")
    page.wait_for_selector(".row.now")
    assert "door slams" in " ".join(page.locator(".row.now").all_inner_texts())
    cursor, axis = (page.locator(each).bounding_box() for each in ("#axis .cursor", "#axis"))
    assert (cursor["x"] - axis["x"]) / axis["width"] == pytest.approx(6.2 / 8, abs=0.02)


def test_the_player_can_show_what_is_said(viewer, gallery, tabs) -> None:
    page = tabs.open(f"{viewer}/v/{gallery.asset_ids[VIDEO]}")
    page.wait_for_function(PLAYS)
    page.evaluate("document.getElementById('player').textTracks[0].mode = 'showing'")
    page.wait_for_function("() => document.getElementById('player').textTracks[0].cues?.length === 4")
    first = page.evaluate("document.getElementById('player').textTracks[0].cues[0].text")
    assert first.endswith("Mind the gap.")


def test_the_list_follows_what_is_played(viewer, gallery, tabs) -> None:
    page = tabs.open(f"{viewer}/v/{gallery.asset_ids[VIDEO]}?t=5.5")
    page.wait_for_function(PLAYS)
    is_at(page, 5.5)
    page.evaluate("document.getElementById('player').muted = true")
    page.keyboard.press("p")
    page.wait_for_function("() => document.getElementById('player').currentTime > 6.2")
    page.keyboard.press("p")
    assert page.evaluate("document.getElementById('player').paused")


@pytest.mark.parametrize(("query", "seconds"), [("t=3.5", 3.5), ("t=0:04", 4.0), ("e={entry}", 2.0)])
def test_links_lead_to_entries_and_times(viewer, gallery, tabs, query: str, seconds: float) -> None:
    query = query.replace("{entry}", gallery.locals[1])
    page = tabs.open(f"{viewer}/v/{gallery.asset_ids[VIDEO]}?{query}")
    page.wait_for_function(PLAYS)
    is_at(page, seconds)
    assert page.locator(".row.chosen").count() == 1


def test_a_link_to_an_entry_that_is_not_here_says_so(viewer, gallery, tabs) -> None:
    asset_id = gallery.asset_ids[VIDEO]
    page = tabs.open(f"{viewer}/v/{asset_id}?e={asset_id[:12]}.gone")
    assert f"the entry {asset_id[:12]}.gone, which is not shown" in page.locator("#told").inner_text()
    page.keyboard.press("j")
    assert "not shown" not in page.locator("#told").inner_text()


def test_pages_can_be_walked_without_a_mouse(viewer, gallery, tabs) -> None:
    page = tabs.open(viewer)
    page.keyboard.press("/")
    page.keyboard.type("plain")
    page.keyboard.press("Enter")
    page.wait_for_url("**name=plain**")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.video")
    assert page.locator("h1").inner_text() == OTHER


def test_light_and_dark_are_kept_over_pages(viewer, tabs) -> None:
    page = tabs.open(viewer)
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("link", name="Quality").click()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Light / dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_a_view_is_chosen_at_once_and_kept_over_links(viewer, gallery, tabs) -> None:
    page = tabs.open(viewer)
    page.get_by_label("View").select_option("w/o narrative")
    page.wait_for_url("**view=w**")
    page.wait_for_selector("html[data-ready]")
    assert "narrative" not in page.locator(".naming .facts").inner_text()
    page.locator("table.videos tbody th a").first.click()
    page.wait_for_selector("html[data-player]")
    assert "view=w" in page.url
    assert page.locator(".kind-narrative").count() == 0


def test_hostile_texts_are_shown_as_they_are(viewer, gallery, tabs) -> None:
    page = tabs.open(f"{viewer}/v/{gallery.asset_ids[VIDEO]}?e={gallery.locals[0]}")
    assert page.locator("h1").inner_text() == VIDEO
    assert HOSTILE[0] in page.locator("#details").inner_text()
    page.goto(f"{viewer}/search?q=%3Cscript%3Ealert(1)%3C/script%3E&mode=text")
    assert "<script>" in page.locator(".hits").inner_text()
    assert page.get_by_role("searchbox").input_value() == "<script>alert(1)</script>"
    assert page.evaluate("window.ran") is None


def test_the_policy_stops_what_would_run(viewer, tabs) -> None:
    page = tabs.open(viewer)
    page.evaluate(
        "() => { const made = document.createElement('script'); made.textContent = 'window.ran = 9';"
        " document.body.append(made); }"
    )
    assert page.evaluate("window.ran") is None
    assert len(tabs.seen.complaints) == 1
    assert "Content Security Policy" in tabs.seen.complaints.pop()


def test_a_file_that_is_not_where_it_was_is_told_and_its_entries_can_be_read(
    serve, gallery, tabs, tmp_path: Path
) -> None:
    uri = tmp_path / "copy.catalog"
    shutil.copytree(gallery.uri, uri)
    with Store.connect(uri, write=True) as store:
        store.add_root(Root("media", "folder", str(tmp_path)))
    page = tabs.open(f"{serve(str(uri))}/v/{gallery.asset_ids[VIDEO]}")
    assert page.locator("video").count() == 0
    assert "not where it was" in page.locator(".player").inner_text()
    page.locator(f'.row a[href$="{gallery.speech[0]}"]').click()
    assert "Mind the gap." in page.locator("#details").inner_text()
    page.wait_for_load_state("networkidle")
    tabs.seen.complaints.clear()  # its pictures are not there either


def test_of_a_file_that_the_browser_cannot_play_the_frames_are_shown(
    serve, tabs, ffmpeg: Path, tmp_path: Path
) -> None:
    film = tmp_path / "film.avi"
    picture = ["-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=4", "-c:v", "mpeg4"]
    subprocess.run([str(ffmpeg), "-loglevel", "error", *picture, str(film)], check=True)
    asset_id, size = hash_file(film)
    asset = probe(film, asset_id=asset_id, size_bytes=size)
    uri = tmp_path / "avi.catalog"
    with Store.connect(uri, write=True, create=True) as store:
        store.add_root(Root("media", "folder", str(tmp_path)))
        store.add_asset(asset)
        store.add_name(VideoName("media", "film.avi", asset_id, "film.avi", FileStamp.of(film.stat())))
        tell(store, asset, (0.4, 2.4))
    page = tabs.open(f"{serve(str(uri))}/v/{asset_id}?t=3")
    page.wait_for_selector("#still:not([hidden])")
    assert "cannot play the file (video/x-msvideo)" in page.locator(".player").inner_text()
    assert not page.locator("video").is_visible()
    assert page.locator("#still").get_attribute("src").endswith("/3000.jpg")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('#still[src$="/0.jpg"]')
    page.wait_for_function("() => document.getElementById('still').naturalWidth === 64")


def tell(store: Store, asset: Asset, times_s: tuple[float, ...]) -> None:
    """Entries of 2 s each, that cite the frames at these times."""
    unit = Unit(asset_id=asset.asset_id, producer_id=LOCAL.producer_id, kind="local", scale=LOCAL.scale)
    store.add_producer(LOCAL)
    store.open(unit)
    clock = Clock.of(asset.video)
    for number, time_s in enumerate(times_s):
        span = Span(2 * number * US, 2 * (number + 1) * US)
        pts = round(time_s / clock.time_base) + clock.origin_pts
        entry = Entry(
            entry_id=entry_id(unit, span.start_us, 0),
            **unit.model_dump(include={"asset_id", "producer_id", "kind", "scale"}),
            unit_id=unit.unit_id,
            span=span,
            text=f"part {number}",
            frames=(FrameRef(pts=pts, time_s=clock.time_us(pts) / US),),
            time_base=asset.video.time_base,
            shown_width=64,
            shown_height=48,
        )
        store.write(unit, WindowResult(span=span, outcome=Outcome.DONE, entries=(entry,)))
    store.close(unit, complete=True)


def test_producers_are_compared_side_by_side(viewer, gallery, tabs) -> None:
    page = tabs.open(f"{viewer}/v/{gallery.asset_ids[VIDEO]}")
    page.get_by_role("link", name="Compare producers").click()
    page.wait_for_selector("table.compare")
    page.get_by_label("Left").select_option(index=0)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**a=**")
    assert page.locator("table.compare tbody tr").count() >= 2
    page.locator("table.compare tbody th a").last.click()
    page.wait_for_selector("html[data-player]")
    page.wait_for_function(PLAYS)
    is_at(page, 4.0)
