"""The main path over real media: every promise about times, outcomes and repetition, read from the tables."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import av
import polars as pl
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.grid import windows
from evicat.schemas.span import Span, to_us
from evicat.storage.reader import Reader

pytestmark = pytest.mark.slow


def test_every_window_of_every_scale_has_exactly_one_outcome(indexed: Path, library: Path) -> None:
    catalog = Catalog.open(str(indexed))
    videos, coverage = catalog.videos(), catalog.coverage()
    assert sorted(videos["video"]) == sorted(path.name for path in library.iterdir())
    for video in videos.to_dicts():
        own = coverage.filter(pl.col("asset_id") == video["asset_id"])
        for scale, seconds in (("local-10s", 10), ("narrative-60s", 60)):
            rows = own.filter(pl.col("scale") == scale).sort("start_s")
            spans = [Span.from_seconds(row["start_s"], row["end_s"]) for row in rows.to_dicts()]
            has_scale = video["has_video"] or scale == "narrative-60s"
            assert spans == (windows(to_us(video["duration_s"]), seconds * 1_000_000) if has_scale else [])
    assert set(coverage["outcome"]) <= {"done", "empty"}


def test_speech_and_vectors_cover_the_whole_timeline(indexed: Path) -> None:
    catalog = Catalog.open(str(indexed))
    lengths = dict(catalog.videos().select("asset_id", "duration_s").iter_rows())
    units = catalog.coverage().filter(pl.col("kind").is_in(["speech", "embedding"])).partition_by("unit_id")
    assert units
    for unit in units:
        rows = unit.sort("start_s")
        assert rows["start_s"][0] == 0
        assert rows["end_s"][-1] == lengths[rows["asset_id"][0]]
        assert rows["start_s"].to_list()[1:] == rows["end_s"].to_list()[:-1]


def test_every_stored_frame_is_a_decoded_frame_at_pts_minus_origin(indexed: Path, library: Path) -> None:
    entries = pl.from_arrow(Reader.open(indexed).dataset("entries").to_table())
    names = dict(Catalog.open(str(indexed)).videos().select("asset_id", "video").iter_rows())
    local = entries.filter(pl.col("kind") == "local")
    assert set(local["asset_id"].replace_strict(names)) == {
        "bunny.webm", "card.mp4", "interview.mp4", "phone.mkv", "street.mp4",
    }  # fmt: skip
    for (asset_id,), own in local.group_by("asset_id"):
        with av.open(str(library / names[asset_id])) as container:
            stream = container.streams.video[0]
            pts = [frame.pts for frame in container.decode(stream)]
            base = Fraction(stream.time_base)
        for row in own.to_dicts():
            assert Fraction(row["time_base"]) == base
            assert len(row["frames"]) >= 5
            for frame in row["frames"]:
                assert frame["pts"] in set(pts)
                assert to_us(frame["time_s"]) == round((frame["pts"] - min(pts)) * base * 1_000_000)
                assert row["start_s"] <= frame["time_s"] < row["end_s"]


@pytest.mark.parametrize(
    ("video", "words", "start_s", "end_s"),
    [
        ("conversation.wav", "Hello", 6.68, 7.16),
        ("conversation.wav", "originally from Chicago also", 17.79, 20.2),
        ("interview.mp4", "originally from Chicago also", 22.79, 25.2),
        ("interview.mp4", "I'm Sheila", 19.44, 22.77),
    ],
)
def test_speech_is_cited_within_half_a_second_of_where_it_is_spoken(
    indexed: Path, video: str, words: str, start_s: float, end_s: float
) -> None:
    """By the transcript that comes with the conversation (demo/README.md)."""
    hits = Catalog.open(str(indexed)).search(words, kind="speech", video=video, mode="text", limit=3)
    near = hits.filter((pl.col("start_s") - start_s).abs() < 0.5, (pl.col("end_s") - end_s).abs() < 0.5)
    assert len(near) == 1, hits


def test_json_hits_have_the_documented_fields_and_lead_to_the_card(evicat, indexed: Path) -> None:
    run = evicat("search", "thanks for watching", "--catalog", indexed, "--mode", "text", "--json")
    hits = [json.loads(line) for line in run.out.splitlines()]
    assert list(hits[0]) == ["entry_id", "video", "start_s", "end_s", "kind", "text", "score"]
    assert hits[0]["video"] == "card.mp4"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_filters_keep_what_they_say(indexed: Path) -> None:
    catalog = Catalog.open(str(indexed))
    every = catalog.search("picture", limit=100)
    assert set(every["kind"]) >= {"local", "narrative"}
    assert set(catalog.search("picture", kind="local", limit=100)["kind"]) == {"local"}
    between = catalog.search("picture", video="interview.mp4", kind="local", between=Span.parse("12:18"))
    assert between.select("start_s", "end_s").rows() == [(10.0, 20.0)]
    assert len(catalog.search("   ")) == 0


def test_a_second_run_makes_no_call_and_changes_no_row(evicat, indexed: Path, library: Path) -> None:
    before = Reader.open(indexed)
    run = evicat("index", library, "--catalog", indexed)
    after = Reader.open(indexed)
    assert run.code == 0
    assert f"{len(list(library.iterdir()))} unchanged" in run.out
    assert after.head == before.head


def test_show_and_status_are_readable(evicat, indexed: Path) -> None:
    shown = evicat("show", "card.mp4", "--catalog", indexed)
    lines = shown.out.splitlines()
    assert lines[0].split() == ["rank", "time", "span", "kind", "description"]
    assert "narrative" in lines[1]
    assert '"THANKS FOR WATCHING"' in " ".join(shown.out.split())
    status = evicat("status", "--catalog", indexed)
    assert all(word in status.out for word in ("interview.mp4", "0:00:36.036", "local-10s", "4 done"))


def test_equal_libraries_give_equal_catalogs(
    evicat, equal_part, indexed: Path, library: Path, tmp_path: Path
) -> None:
    assert evicat("index", library, "--catalog", tmp_path / "again").code == 0
    assert equal_part(tmp_path / "again").equals(equal_part(indexed))
