"""Factors in the page of a video, in the search of the viewer, and as a plot."""

from __future__ import annotations

import shutil

import httpx
import polars as pl
import pytest
from playwright.sync_api import expect

from evicat.catalog.query import Catalog
from evicat.catalog.tagging.loaders import TaggerOptions, tagger
from evicat.catalog.tagging.run import run
from evicat.catalog.tagging.vocabulary import load_vocabulary
from evicat.catalog.tagging.work import find_work
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.recipe import Profile
from evicat.storage.store import Store
from evicat.viewer import plots
from evicat.viewer.report import video_report, write_report

from .gallery import VIDEO

VOCABULARY = """
vocabulary = "rail"
version = 1
description = "What stations hold."
kinds = ["local", "narrative", "speech"]
fields = ["text"]

[[factors]]
id = "rail:platform"
descriptor = "a platform"
words = ["platform"]

[[factors]]
id = "rail:gap"
descriptor = "a gap is warned of"
words = ["gap"]
"""


@pytest.fixture(scope="module")
def tagged(gallery, tmp_path_factory) -> str:
    """The gallery with tags: two narratives on the platform, one warning of the gap."""
    folder = tmp_path_factory.mktemp("tagged")
    uri = str(folder / "catalog")
    shutil.copytree(gallery.uri, uri)
    (folder / "rail.toml").write_text(VOCABULARY)
    words = load_vocabulary(str(folder / "rail.toml"))
    with (
        Store.connect(uri, write=True, run_id="tag") as store,
        tagger("fields", store.reader, Profile(), TaggerOptions()) as made,
    ):
        run(store, find_work(store.reader(), made, (words,), (), ()))
    return uri


@pytest.fixture(scope="module")
def address(tagged, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("report") / "page.html"
    write_report(path, video_report(Catalog.open(tagged), VIDEO).html)
    return path.as_uri()


def rows(page) -> list[str]:
    return page.locator(".row:visible .text").all_inner_texts()


def test_choosing_a_factor_keeps_what_carries_it(tabs, address) -> None:
    page = tabs.open(address)
    every = page.locator("#count").inner_text()
    dim = page.locator(".mark.dim").count()
    assert page.locator("#factor option").all_inner_texts() == ["any", "rail:gap (1)", "rail:platform (2)"]
    page.keyboard.press("f")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#count")).to_contain_text("2 of ")
    assert all("platform, part" in text for text in rows(page))
    assert page.locator(".mark.dim").count() > dim
    assert page.url.endswith("#f=rail:platform")
    page.locator("#search").fill("part 2")
    expect(page.locator("#count")).to_contain_text("1 of ")
    page.locator("#search").fill("")
    page.locator("#factor").select_option("")
    expect(page.locator("#count")).to_have_text(every)
    assert "#" not in page.url


def test_a_link_leads_to_a_factor_and_an_entry(tabs, address) -> None:
    page = tabs.open(f"{address}#f=rail:gap")
    assert rows(page) == ["Mind the gap."]
    page.locator(".row a").first.click()
    link = page.url
    assert link.endswith("&f=rail:gap")
    again = tabs.open(link)
    assert again.locator(".row.chosen .text").inner_text() == "Mind the gap."
    assert again.locator("#factor").input_value() == "rail:gap"


def test_a_factor_that_no_entry_carries_keeps_all(tabs, address) -> None:
    page = tabs.open(f"{address}#f=%3Cscript%3Ewindow.ran=1%3C/script%3E")
    assert page.locator("#factor").input_value() == ""
    assert len(rows(page)) > 3
    assert page.evaluate("window.ran") is None


def test_without_tags_there_is_nothing_to_choose(tabs, gallery, tmp_path) -> None:
    write_report(tmp_path / "page.html", video_report(Catalog.open(gallery.uri), VIDEO).html)
    page = tabs.open((tmp_path / "page.html").as_uri())
    assert not page.locator("#factor").is_visible()


def test_the_search_of_the_viewer_takes_factors(serve, tagged) -> None:
    viewer = serve(tagged)

    def asked(factors: str) -> httpx.Response:
        params = {"q": "platform gap", "mode": "text", "factors": factors}
        return httpx.get(f"{viewer}/search", params=params)

    assert asked("rail:gap").text.count('<li class="hit') == 1
    assert asked("rail:gap or rail:platform").text.count('<li class="hit') == 3
    assert asked("rail:gap and rail:platform").text.count('<li class="hit') == 0
    wrong = asked('"><script>alert(1)</script>')
    assert "<script>alert" not in wrong.text
    assert "rail:gap" in asked("rail:gab").text


def test_the_plot_counts_what_the_catalog_counts(tagged, tmp_path) -> None:
    catalog = Catalog.open(tagged)
    for by, name in (("time", "time"), ("video", "label")):
        chart = plots.factors(catalog, by)
        cells = chart.data
        assert name in cells.columns
        counted = dict(cells.group_by("factor").agg(pl.sum("entries")).iter_rows())
        assert counted == {"rail:gap": 1, "rail:platform": 2}
        chart.save(tmp_path / f"{by}.png")
        assert (tmp_path / f"{by}.png").stat().st_size > 2_000


def test_a_plot_of_nothing_is_told(tagged, gallery) -> None:
    with pytest.raises(UsageError, match="evicat tag"):
        plots.factors(Catalog.open(gallery.uri))
    with pytest.raises(UnknownNameError, match="time"):
        plots.factors(Catalog.open(tagged), "tiem")
