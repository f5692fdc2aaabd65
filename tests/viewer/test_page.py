"""What the page of a video is made of, without a browser."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UsageError
from evicat.schemas.naming import FileStamp, VideoName
from evicat.storage.store import Store
from evicat.viewer.page_data import video_page
from evicat.viewer.page_html import environment, script_json, static_script
from evicat.viewer.page_tracks import Stretch, Windows
from evicat.viewer.page_words import clock, exact_clock, record_pairs, scale_label, size_words, spoken_words

from .gallery import BROKEN, HOSTILE, OTHER, VIDEO


@pytest.fixture(scope="module")
def catalog(gallery) -> Catalog:
    return Catalog.open(gallery.uri)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0:00.0"),
        (59.96, "1:00.0"),
        (63.25, "1:03.2"),
        (3723, "1:02:03.0"),
        (36000, "10:00:00.0"),
        (None, ""),
    ],
)
def test_clock(seconds, shown) -> None:
    assert clock(seconds) == shown


def test_words() -> None:
    assert exact_clock(63.25) == "0:01:03.250"
    assert [size_words(count) for count in (0, 999, 1000, 1_055_736)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "1.1 MB",
    ]
    assert [
        scale_label(*each) for each in (("local", "local-2.5s"), ("speech", "speech"), ("sound", ""))
    ] == [
        "Local 2.5 s",
        "Speech",
        "Sound",
    ]


def test_records_in_words() -> None:
    record = {
        "scene": "a <b>street</b>",
        "place": "",
        "people": [
            {"descriptor": "a man", "details": ["a bag", "a hat"]},
            {"descriptor": "a dog", "details": []},
        ],
        "cast": [{"name": "Ann", "descriptor": "in red", "formerly": ["she"], "first_seen_s": 4.0}],
        "boxes": [{"name": "sign"}],
        "sure": True,
        "average_log_probability": -0.30158,
        "from_elsewhere": {"a": 1, "b": {"c": "d"}},
    }
    assert record_pairs(json.dumps(record)) == (
        ("scene", ("a <b>street</b>",)),
        ("people", ("a man (a bag, a hat)", "a dog")),
        ("cast", ("Ann; in red; formerly she; first seen 0:04.0",)),
        ("sure", ("yes",)),
        ("average log probability", ("-0.3016",)),
        ("from elsewhere", ("a 1; b c d",)),
    )
    assert record_pairs("{}") == ()
    words = [
        {"start_s": 1.23456, "end_s": 2, "text": " Hi.", "probability": 0.987},
        {"start_s": 2, "text": "x"},
    ]
    assert spoken_words(json.dumps({"words": words})) == ((1.235, "Hi.", 0.99), (2, "x", None))


def window(start_s: float, end_s: float, outcome: str, message: str = "") -> dict[str, object]:
    return {"start_s": start_s, "end_s": end_s, "outcome": outcome, "error_class": "", "message": message}


def test_stretches_are_what_is_not_done_and_neighbours_that_ended_alike_are_one() -> None:
    rows = [
        window(0, 10, "done"),
        window(10, 20, "failed", "x"),
        window(20, 30, "failed", "x"),
        window(30, 40, "failed", "y"),
        window(50, 60, "done"),
    ]
    assert Windows(rows, 70.0).stretches == (
        Stretch(10, 30, "failed", message="x", windows=2),
        Stretch(30, 40, "failed", message="y"),
        Stretch(40, 50, "pending"),
        Stretch(60, 70, "pending"),
    )
    assert Windows([], 5.0).stretches == (Stretch(0.0, 5.0, "pending"),)


def test_a_page_has_everything_of_the_video(catalog, gallery) -> None:
    page = video_page(catalog, VIDEO)
    assert [(track.label, track.kind) for track in page.tracks] == [
        ("Narrative 4 s", "narrative"),
        ("Local 2 s", "local"),
        ("Speech", "speech"),
        ("Sound", "sound"),
        ("Screen text", "screen text"),
        ("Boxes", "boxes"),
    ]
    entries = catalog.entries(VIDEO)
    assert {entry.entry_id: entry.text for entry in page.entries} == dict(
        entries.select("entry_id", "text").iter_rows()
    )
    assert [entry.start_s for entry in page.entries] == sorted(entry.start_s for entry in page.entries)
    for entry in page.entries:
        track = page.tracks[entry.track]
        kind, maker = entries.filter(entry_id=entry.entry_id).select("kind", "producer_id").row(0)
        assert (track.kind, page.makers[track.maker].producer_id) == (kind, maker)
    (failed,) = [each for track in page.tracks for each in track.stretches if each.outcome == "failed"]
    assert (failed.start_s, failed.end_s, failed.error_class) == (6.0, 8.0, "Truncated")
    told = {(page.entries[each.entry].entry_id, each.text): each.rests_on for each in page.sentences}
    links = told[gallery.narratives[0], "A man waits on a platform."]
    assert [(link.entry_id, link.score) for link in links] == [
        (gallery.locals[0], 0.75),
        (gallery.speech[0], 0.5),
    ]
    assert [page.entries[link.entry].entry_id for link in links] == [link.entry_id for link in links]
    assert "3 done, 1 failed" in [maker.outcomes for maker in page.makers]


def test_a_view_shows_what_it_shows(catalog) -> None:
    page = video_page(catalog.view("w/o narrative"), VIDEO)
    assert "narrative" not in {track.kind for track in page.tracks}
    assert page.sentences == ()
    assert "view w/o narrative" in page.state
    hidden = [maker for maker in page.makers if not maker.is_shown]
    assert [maker.kind for maker in hidden] == ["narrative"], "it made something of the video, and is told of"


def test_what_was_never_made_of_a_video_is_pending(catalog) -> None:
    page = video_page(catalog, OTHER)
    speech = next(track for track in page.tracks if track.kind == "speech")
    assert speech.stretches == (Stretch(0.0, page.duration_s, "pending"),)


def test_a_file_that_could_not_be_used_has_a_page_that_says_so(catalog) -> None:
    page = video_page(catalog, BROKEN)
    assert page.entries == ()
    assert page.problems == (f"The file could not be used: UnreadableMedia: no media: {HOSTILE[0]}",)


def test_a_file_that_is_gone_is_told_of_and_a_copy_of_it_stands_for_it(gallery, tmp_path) -> None:
    uri = tmp_path / "gone.catalog"
    shutil.copytree(gallery.uri, uri)
    asset_id, since = gallery.asset_ids[OTHER], "2026-01-02T03:04:05+00:00"
    gone = VideoName("media", OTHER, asset_id, OTHER, FileStamp(1, 2, 3, 4), missing_since=since)
    with Store.connect(uri, write=True) as store:
        store.add_name(gone)
    page = video_page(Catalog.open(str(uri)), OTHER)
    assert page.problems == (f"The file is missing since {since}; its entries are not shown.",)
    assert (page.tracks, page.entries) == ((), ())
    with Store.connect(uri, write=True) as store:
        store.add_name(VideoName("media", "a copy.mp4", asset_id, "a copy.mp4", FileStamp(1, 2, 3, 4)))
    page = video_page(Catalog.open(str(uri)), OTHER)
    assert (page.video, page.names, page.problems) == ("a copy.mp4", ("a copy.mp4",), ())
    assert len(page.entries) == 1


def test_a_page_is_known_by_asset_id_and_unknown_names_list_the_known(catalog, gallery) -> None:
    assert video_page(catalog, gallery.asset_ids[VIDEO]).video == VIDEO
    with pytest.raises(UsageError, match=r"plain\.mp4"):
        video_page(catalog, "plane.mp4")


@pytest.mark.parametrize("text", [*HOSTILE, "\u2028\u2029</SCRIPT >", "<!--", "]]>"])
def test_data_cannot_end_its_script_element(text) -> None:
    block = script_json({text: [text]})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == {text: [text]}


@pytest.mark.parametrize("name", ["page.js", "page_table.js"])
def test_a_script_holds_its_modules_each_name_once(name) -> None:
    script = static_script(name)
    assert re.findall(r"^(?:import|export)\b", script, re.MULTILINE) == []
    assert "startTheme();" in script
    assert "</" not in script
    names = re.findall(r"^(?:async )?(?:function|const|let) (\w+)", script, re.MULTILINE)
    assert sorted(names) == sorted(set(names))


def test_templates_escape(catalog) -> None:
    page = video_page(catalog, VIDEO)
    shown = environment().get_template("_video.html").render(page=page, data=page.as_json())
    assert "<img" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert shown.count("<script") == shown.count("</script>") == 1
