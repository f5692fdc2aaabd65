"""Report pages as a reader meets them: in a browser, from a file, without any network."""

from __future__ import annotations

import re
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from evicat.catalog.query import Catalog
from evicat.schemas.naming import Root
from evicat.storage.store import Store
from evicat.viewer.report import video_report, write_report

from .gallery import EMOJI, HOSTILE, LONG, RTL, VIDEO

SEVERE = ("serious", "critical")


@pytest.fixture(scope="module")
def address(gallery, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("report") / 'it\'s "one".html'
    write_report(path, video_report(Catalog.open(gallery.uri), VIDEO).html)
    return path.as_uri()


@pytest.fixture
def page(tabs, address):
    return tabs.open(address)


def rows(page) -> list[str]:
    """Texts of the rows that are shown."""
    return page.locator(".row:visible .text").all_inner_texts()


def chosen(page) -> str:
    return page.locator(".row.chosen .text").inner_text()


def details(page) -> str:
    return page.locator("#details").inner_text()


def test_it_shows_the_entries_in_time_and_nothing_runs(page, tabs, address) -> None:
    assert page.locator("h1").inner_text() == VIDEO
    shown = rows(page)
    assert [text for text in (HOSTILE[0], RTL, HOSTILE[1], EMOJI) if text not in shown] == []
    times = page.locator(".row time").all_inner_texts()
    assert times == sorted(times)
    assert times[0] == "0:00.0"
    assert page.evaluate("window.ran") is None
    assert page.locator("img:not([src^='data:'])").count() == 0
    assert tabs.seen.outside(address) == []


def test_a_click_shows_what_an_entry_is(page, gallery) -> None:
    page.locator(".row", has_text=HOSTILE[0]).locator("a").first.click()
    told = details(page)
    for text in (
        "Local 2 s",
        "0:00.0 to 0:02.0",
        HOSTILE[0],
        HOSTILE[3],
        "EXIT",
        "the man with the bag (grey coat)",
    ):
        assert text in told
    assert "PTS 5120" in told
    assert "0:00.5" in told
    assert "ocr, confidence 0.88" in told
    assert gallery.locals[0] in told
    assert "sight v2" in told
    assert 'models/<i>"tiny"</i>, digest abababababab' in told
    assert page.url.endswith(f"#e={gallery.locals[0]}")
    assert page.evaluate("window.ran") is None


def test_boxes_lie_where_they_were_seen(page) -> None:
    page.locator(".row", has_text=HOSTILE[0]).locator("a").first.click()
    frame = page.locator("figure.large")
    assert "1 box" in frame.locator("figcaption").inner_text()
    picture, box = frame.locator("img").bounding_box(), frame.locator(".box").bounding_box()
    where = [
        (box["x"] - picture["x"]) / picture["width"],
        (box["y"] - picture["y"]) / picture["height"],
        box["width"] / picture["width"],
        box["height"] / picture["height"],
    ]
    assert where == pytest.approx([0.1, 0.2, 0.35, 0.5], abs=0.01)
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")


def test_supports_lead_both_ways(page) -> None:
    page.locator(".row", has_text="A man waits on a platform, part 1").locator("a").click()
    told = details(page)
    assert "observed" in told
    assert "0.75" in told
    assert "Nothing carries it." in told
    assert "Made from 2 entries" in told
    page.locator(".sentences a", has_text="Mind the gap.").click()
    assert chosen(page) == "Mind the gap."
    assert "Sentences that rest on this" in details(page)
    page.locator("#details .links a", has_text="A man waits on a platform.").click()
    assert "part 1" in chosen(page)


def test_search_takes_any_case_and_records_and_says_how_many(page) -> None:
    page.locator("#search").fill("mind THE")
    expect(page.locator("#count")).to_contain_text("1 of 9")
    assert rows(page) == ["Mind the gap."]
    assert page.locator(".row mark").inner_text() == "Mind the"
    assert page.locator(".mark.dim").count() > 0
    page.locator("#search").fill("exit")
    page.wait_for_selector(".row .in mark")
    assert page.locator(".row:visible .in").inner_text() == "screen text: EXIT"
    page.locator("#search").fill("nowhere at all")
    page.wait_for_selector("#nothing:visible")
    assert "nowhere at all" in page.locator("#nothing").inner_text()
    page.keyboard.press("Escape")
    assert len(rows(page)) == 10


def test_what_was_not_made_is_named(page) -> None:
    assert "failed it did not work" in page.locator("#legend").inner_text()
    page.locator(".row.gap a").click()
    told = details(page)
    assert f"Truncated: the answer was cut: {HOSTILE[2]}" in told
    assert page.locator(".stretch.outcome-failed").count() == 1


def test_flags_are_told_in_words(page) -> None:
    page.locator(".row", has_text="A dancer").locator("a").click()
    assert "the transcriber itself doubts that this is speech" in details(page)


def test_the_keyboard_walks_entries_and_tracks(page) -> None:
    page.keyboard.press("ArrowRight")
    assert "part 1" in chosen(page)
    page.keyboard.press("ArrowRight")
    assert "part 2" in chosen(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert chosen(page) == HOSTILE[0]
    page.keyboard.press("ArrowDown")
    assert chosen(page) == "Mind the gap."
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    page.keyboard.press("ArrowUp")
    assert chosen(page) == HOSTILE[0]
    page.keyboard.press("j")
    assert chosen(page) == "Mind the gap."
    page.keyboard.press("Escape")
    assert page.locator(".row.chosen").count() == 0
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("g?+")
    assert page.locator("#search").input_value() == "g?+", "keys are letters where one types"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.locator("#help").click()
    page.get_by_role("button", name="Close").click()
    assert not page.locator("#keys").is_visible()


def test_zoom_keeps_what_is_chosen_in_sight(page) -> None:
    page.locator(".row", has_text="A dancer").locator("a").click()
    before = page.locator("#axis").bounding_box()["width"]
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert page.locator("#axis").bounding_box()["width"] == pytest.approx(4 * before, rel=0.01)
    strip, mark = page.locator("#scroll").bounding_box(), page.locator(".lane-speech .ring").bounding_box()
    assert strip["x"] <= mark["x"]
    assert mark["x"] + mark["width"] <= strip["x"] + strip["width"]
    page.locator("#zoom-all").click()
    assert page.locator("#axis").bounding_box()["width"] == pytest.approx(before, rel=0.01)


def test_a_time_leads_to_what_is_said_then(page) -> None:
    page.keyboard.press("g")
    page.keyboard.type("0:04.5")
    page.keyboard.press("Enter")
    assert chosen(page) == EMOJI
    page.locator("#goto").fill("soon")
    page.locator("#goto").press("Enter")
    assert page.evaluate("document.getElementById('goto').validationMessage") != ""


def test_a_click_on_the_timeline_chooses(page) -> None:
    page.locator(".lane-speech .mark", has_text="Mind the gap").first.click()
    assert chosen(page) == "Mind the gap."


def test_a_track_is_switched_off_and_on(page) -> None:
    label = page.locator("#labels button", has_text="Speech")
    label.click()
    assert "Mind the gap." not in rows(page)
    assert label.get_attribute("aria-pressed") == "false"
    label.click()
    assert "Mind the gap." in rows(page)


def test_links_lead_to_an_entry_and_to_a_time(tabs, address, gallery) -> None:
    page = tabs.open(f"{address}#e={gallery.speech[1]}")
    assert chosen(page) == HOSTILE[1]
    assert chosen(tabs.open(f"{address}#t=4.5")) == EMOJI
    page.locator("#search").fill("dancer")
    expect(page.locator("#count")).to_contain_text("1 of 9")
    page.evaluate(f"location.hash = 'e={gallery.speech[0]}'")
    expect(page.locator(".row.chosen .text")).to_have_text("Mind the gap.")
    assert page.locator("#search").input_value() == "", "what is named is shown"
    lost = tabs.open(f"{address}#e=nobody%22%3E")
    assert lost.locator(".row.chosen").count() == 0


def test_a_link_to_what_is_not_there_says_so(page, tabs, address) -> None:
    stale = tabs.open(f"{address}#e=nosuch")
    assert "leads to the entry nosuch" in stale.locator("#told").inner_text()
    page.locator("#goto").fill("1:00:00")
    page.keyboard.press("Enter")
    told = page.locator("#told")
    assert told.inner_text() == "The video ends at 0:08.0, before 1:00:00.0: this is the last of it."
    assert told.get_attribute("role") == "status"
    page.keyboard.press("k")
    assert told.inner_text() == ""


def test_how_to_cite_an_entry_is_copied_or_marked(page, gallery) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('denied')); }")
    page.locator(".row", has_text="Mind the gap.").locator("a").click()
    page.get_by_role("button", name="Copy citation").click()
    expect(page.locator(".copies")).to_contain_text("press Ctrl+C")
    cited = page.evaluate("getSelection().toString()")
    assert cited.startswith(
        f"{VIDEO} 0:00:00.500-0:00:01.400 [{gallery.speech[0]}], gallery.catalog at head "
    )
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }")
    page.keyboard.press("c")
    expect(page.locator(".copies")).to_contain_text("Copied")
    assert page.evaluate("window.copied") == cited


def test_a_long_text_is_cut_in_the_list_and_whole_in_the_details(page) -> None:
    row = page.locator(".row", has_text="An endless description")
    assert row.bounding_box()["height"] < 120
    row.locator("a").click()
    assert page.locator("#details .full").inner_text() == LONG


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(tabs, address, gallery, theme) -> None:
    page = tabs.open(f"{address}#e={gallery.narratives[0]}", theme=theme)
    page.locator("#about summary").click()
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in SEVERE] == []


def test_the_theme_can_be_turned(tabs, address) -> None:
    page = tabs.open(address, theme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_a_phone_shows_it_without_scrolling_sideways(tabs, address) -> None:
    page = tabs.open(address, width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".row", has_text="Mind the gap.").locator("a").click()
    sheet, row = page.locator("#details").bounding_box(), page.locator(".row.chosen").bounding_box()
    assert row["y"] + row["height"] <= sheet["y"], "the chosen row is not behind its details"
    page.locator("#details .close").click()
    assert not page.locator("#details").is_visible()


def test_print_has_every_entry_whole(page) -> None:
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#about table").is_visible()
    assert not page.locator("#search").is_visible()
    assert page.evaluate(
        "[...document.querySelectorAll('.row .text')].every(e => e.scrollHeight <= e.clientHeight + 1)"
    )
    assert LONG.strip() in page.locator(".rows").inner_text()
    assert page.pdf()[:5] == b"%PDF-"


def test_a_page_says_why_it_has_no_pictures(tabs, gallery, tmp_path) -> None:
    moved = tmp_path / "moved.catalog"
    shutil.copytree(gallery.uri, moved)
    with Store.connect(moved, write=True) as store:
        store.add_root(Root("media", "folder", str(tmp_path / "gone")))
    lost = video_report(Catalog.open(str(moved)), VIDEO)
    assert re.search("was not found", lost.problem)
    write_report(tmp_path / "lost.html", lost.html)
    page = tabs.open((tmp_path / "lost.html").as_uri() + f"#e={gallery.locals[0]}")
    assert "was not found" in details(page)
    assert "PTS 5120" in details(page)
    assert "was not found" in page.locator(".timeline .note").inner_text()
    found = video_report(Catalog.open(str(moved)), VIDEO, media_roots=[gallery.media])
    assert (found.problem, found.pictures) == ("", 6)
