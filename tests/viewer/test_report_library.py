"""The page of all videos in a browser."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from evicat.catalog.query import Catalog
from evicat.viewer.report import video_report, write_report
from evicat.viewer.report_library import library_report, page_names

from .gallery import BROKEN, HOSTILE, OTHER, VIDEO


@pytest.fixture(scope="module")
def folder(gallery, tmp_path_factory):
    made = tmp_path_factory.mktemp("library")
    catalog = Catalog.open(gallery.uri)
    names = page_names(catalog)
    write_report(made / "index.html", library_report(catalog, names))
    asset_id = gallery.asset_ids[OTHER]
    page = video_report(catalog, asset_id, pictures=False, library="index.html")
    write_report(made / names[asset_id], page.html)
    return made


@pytest.fixture
def page(tabs, folder):
    return tabs.open((folder / "index.html").as_uri())


def names(page) -> list[str]:
    return page.locator("tbody tr:visible th").all_inner_texts()


def test_every_video_is_there_with_what_became_of_it(page, tabs, folder) -> None:
    assert sorted(names(page)) == sorted([VIDEO, OTHER, BROKEN])
    row = page.locator("tbody tr", has_text="onerror")
    assert row.locator("svg[role=img]").all_inner_texts()
    labels = [each.get_attribute("aria-label") for each in row.locator("svg").all()]
    assert labels == ["Narrative 4 s: 2 done", "Local 2 s: 3 done, 1 failed", "Speech: 1 done"]
    failed = row.locator("rect.cell-failed")
    assert (failed.get_attribute("x"), failed.get_attribute("width")) == ("90", "30"), "the last quarter"
    assert HOSTILE[0] in page.locator("tbody tr", has_text=BROKEN).inner_text()
    table = page.locator(".wide")
    assert table.evaluate("each => each.scrollWidth <= each.clientWidth"), "all columns are in sight"
    assert page.evaluate("window.ran") is None
    assert tabs.seen.outside(folder.as_uri()) == []


def test_it_is_sorted_by_a_column_and_searched_by_name(page) -> None:
    page.get_by_role("button", name="failed").click()
    assert names(page)[0] == VIDEO
    assert page.locator("th[aria-sort]").inner_text().split()[0] == "failed"
    page.get_by_role("button", name="video").click()
    ascending = names(page)
    page.get_by_role("button", name="video").click()
    assert names(page) == ascending[::-1]
    page.locator("#filter").fill("PLAIN")
    expect(page.locator("#count")).to_have_text("1 of 3 videos")
    assert names(page) == [OTHER]
    page.locator("#filter").fill("nobody")
    expect(page.locator("#nothing")).to_be_visible()


def test_a_video_leads_to_its_page_and_back(page) -> None:
    page.get_by_role("link", name=OTHER).click()
    expect(page.locator("h1")).to_have_text(OTHER)
    page.get_by_role("link", name="All videos").click()
    expect(page.locator("h1")).to_have_text("gallery.catalog")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(tabs, folder, theme) -> None:
    page = tabs.open((folder / "index.html").as_uri(), theme=theme)
    found = Axe().run(page).response["violations"]
    severe = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in severe] == []


def test_a_phone_shows_it_without_scrolling_sideways(tabs, folder) -> None:
    page = tabs.open((folder / "index.html").as_uri(), width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    strip = page.locator(".cells").first.bounding_box()
    assert strip["x"] + strip["width"] <= 390
