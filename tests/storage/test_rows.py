"""Values survive the way through staged files and tables unchanged."""

import itertools

import pytest

from evicat.schemas.errors import UnreadableMediaError
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import Span
from evicat.storage.reader import Reader
from evicat.storage.store import Store


@pytest.fixture
def store(catalog):
    with Store.connect(catalog, write=True) as opened:
        yield opened


def test_results_come_back_as_written(making, store):
    unit = making.unit()
    results = [
        making.done(unit, 0).model_copy(
            update={
                "entries": (making.full_entry(unit, 0), making.entry(unit, 0, ordinal=1)),
                "context_hash": "c",
            }
        ),
        making.failed(1, 'said: it\'s "broken"\nand more'),
        making.done(unit, 2, entries=12),
    ]
    store.open(unit)
    for result in results:
        store.write(unit, result)
    expected = {result.span.start_us: result for result in results}
    assert store.open(unit) == expected, "from the journal's memory"
    store.seal(unit)
    assert store.open(unit) == expected, "from the staged file"
    store.close(unit, complete=True)
    store.commit(force=True)
    assert store.open(unit) == expected, "from the tables"


def test_vectors_come_back_as_float32(making, store):
    source, unit = making.unit(), making.unit(producer=making.MINILM)
    entry = making.entry(source, 0)
    vectors = (making.vector(entry, (0.5, -0.25, 1.0)), making.vector(entry, None, part=1))
    result = making.embedded(0, []).model_copy(update={"vectors": vectors})
    store.add_producer(making.MINILM)
    store.open(unit)
    store.write(unit, result)
    store.close(unit, complete=True)
    assert store.open(unit) == {0: result}
    store.commit(force=True)
    assert store.open(unit) == {0: result}
    assert store.head.tables.keys() >= {making.VECTORS}


def test_windows_that_do_not_end_on_seconds_keep_their_microseconds(making, store):
    unit = making.unit()
    ends = [0, 333_333, 1_000_001, 36_000_000_007]
    results = {
        start: making.failed(0).model_copy(update={"span": Span(start, end)})
        for start, end in itertools.pairwise(ends)
    }
    store.open(unit)
    for result in results.values():
        store.write(unit, result)
    store.close(unit, complete=True)
    store.commit(force=True)
    assert store.open(unit) == results
    assert store.is_complete(unit)


def test_library_survives_a_restart(making, catalog):
    stamp = FileStamp(1, 2**62, 3, 2**40)
    names = [
        VideoName("r", "a b/it's.mkv", "a1", "a b/it's.mkv", stamp),
        VideoName("r", "q17", "a2", "full.mp4", stamp, clip=Span(5, 10), benchmark="mmr-v", split="test"),
    ]
    with Store.connect(catalog, write=True) as store:
        store.add_root(Root("r", "folder", "videos"))
        for name in names:
            store.add_name(name)
        store.add_asset(making.asset("whole"))
        store.add_asset(making.asset("short", decoded_until_us=3))
        store.add_video_failed("dead", 7, UnreadableMediaError("no stream"))
        store.add_producer(making.MINILM)
    store = Store.connect(catalog)
    assert store.roots() == [Root("r", "folder", "videos")]
    assert store.names() == names
    assert store.known_asset_id("r", "full.mp4", stamp, Span(5, 10)) == "a2"
    assert store.known_asset_id("r", "full.mp4", stamp) is None
    assert store.known_asset_id("r", "a b/it's.mkv", FileStamp(1, 2**62, 4, 2**40)) is None
    videos = {video.asset_id: video for video in store.videos()}
    assert videos["dead"].status == "failed"
    assert (videos["dead"].asset, videos["dead"].error_class) == (None, "UnreadableMedia")
    whole, short = making.asset("whole"), making.asset("short", decoded_until_us=3)
    assert (videos[whole.asset_id].status, videos[whole.asset_id].asset) == ("ok", whole)
    assert (videos[short.asset_id].status, videos[short.asset_id].asset) == ("partial", short)
    (row,) = Reader.open(catalog).dataset("producers").to_table().to_pylist()
    assert (row["producer_id"], row["model_name"]) == (making.MINILM.producer_id, "all-MiniLM-L6-v2")


def test_a_changed_row_replaces_the_old_one_and_an_equal_one_costs_nothing(making, catalog):
    name = VideoName("r", "a", "old", "a.mp4", FileStamp(1, 2, 3, 4))
    with Store.connect(catalog, write=True) as store:
        store.add_name(name)
        store.commit(force=True)
        store.add_name(VideoName("r", "a", "new", "a.mp4", FileStamp(9, 9, 9, 9)))
        store.add_name(VideoName("other root", "a", "x", "a.mp4", FileStamp(1, 2, 3, 4)))
        store.commit(force=True)
        number = store.head.number
        store.add_name(VideoName("r", "a", "new", "a.mp4", FileStamp(9, 9, 9, 9)))
        store.commit(force=True)
        assert store.head.number == number
        assert store.known_asset_id("r", "a.mp4", FileStamp(9, 9, 9, 9)) == "new"
    rows = making.content(catalog)["names"]
    assert {(row["root_id"], row["asset_id"]) for row in rows} == {("r", "new"), ("other root", "x")}


@pytest.mark.parametrize(
    ("name", "stored"),
    [("\udcff\udcfe.mp4", r"\xff\xfe.mp4"), ("new\nline.mp4", "new\nline.mp4"), ("e\u0301", "e\u0301")],
)
def test_any_file_name_can_be_stored(catalog, name, stored):
    stamp = FileStamp(1, 2, 3, 4)
    with Store.connect(catalog, write=True) as store:
        store.add_root(Root("r", "folder", name))
        store.add_name(VideoName("r", name, "a", name, stamp))
        store.add_video_failed("a", 1, UnreadableMediaError(f"{name}: no stream"))
        assert store.known_asset_id("r", name, stamp) == "a"
    store = Store.connect(catalog)
    assert [(row.name, row.path) for row in store.names()] == [(stored, stored)]
    assert store.known_asset_id("r", name, stamp) == "a"
    assert store.roots()[0].location == stored
    assert store.videos()[0].message == f"{stored}: no stream"


def test_a_file_that_failed_once_may_be_read_later(making, catalog):
    asset = making.asset()
    with Store.connect(catalog, write=True) as store:
        store.add_video_failed(asset.asset_id, 5, UnreadableMediaError("cut"))
        store.add_asset(asset)
    assert [(row["status"], row["message"]) for row in making.content(catalog)["videos"]] == [("ok", "")]
