"""Pictures, crops, cuts and shards of what a catalog cites, from the source media."""

import tarfile

import av
import cv2
import numpy as np
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import AssetError, UsageError

COLOURS = {"red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
BROWN = (165, 42, 42)
BOX = (8 / 64 * 1000, 8 / 48 * 1000, 38 / 64 * 1000, 32 / 48 * 1000)


@pytest.fixture(scope="module")
def library(new_rerun, tmp_path_factory):
    library = new_rerun(tmp_path_factory.mktemp("pictures"))
    library.put("clip.mp4")
    assert library.index().all_done
    return library


@pytest.fixture
def catalog(library):
    return Catalog.open(str(library.catalog))


def looks(image, colour):
    """Whether a corner of a picture has this colour."""
    return np.abs(image[-6:, -6:].reshape(-1, 3).mean(axis=0) - COLOURS.get(colour, colour)).max() < 12


def test_frames_of_an_entry_are_those_that_it_cites(catalog):
    for entry, colour in zip(catalog.entries(kind="local").to_dicts(), COLOURS, strict=True):
        shown = catalog.frames(entry["entry_id"])
        assert [frame.pts for frame in shown] == [frame["pts"] for frame in entry["frames"]]
        assert all(looks(frame.image, colour) for frame in shown)
        assert (shown.video, shown.span.start_s) == ("clip.mp4", entry["start_s"])


def test_frames_of_a_span_are_as_many_as_are_asked(catalog):
    assert catalog.frames("clip.mp4", (2, 4), n=2).times_s == [2.4, 3.4]
    assert len(catalog.frames("clip.mp4", (0, 8), fps=1)) == 8
    assert len(catalog.frames("clip.mp4", (0, 8), fps=100, max_frames=5)) == 5
    assert len(catalog.frames("clip.mp4", "0:00-0:99".replace("99", "59"))) == 8, "the span is cut at the end"
    small = catalog.frames("clip.mp4", (0, 1), n=1, width=32)[0]
    assert (small.width, small.height) == (32, 24)


def test_a_notebook_shows_pictures_with_their_times(catalog):
    shown = catalog.frames("clip.mp4", (2, 4), n=2)._repr_html_()
    assert shown.count("data:image/jpeg;base64,") == 2
    assert "0:00:02.400" in shown


def test_a_crop_is_what_lies_in_the_box(catalog):
    crop = catalog.crop("clip.mp4", 5.0, BOX)
    assert crop.shape == (24, 30, 3)
    assert np.abs(crop[3:-3, 3:-3].reshape(-1, 3).mean(axis=0) - BROWN).max() < 12
    assert looks(catalog.crop("clip.mp4", 7.99, (900, 900, 1000, 1000)), "white")


@pytest.mark.parametrize("box", [(0, 0, 0, 10), (10, 0, 5, 10), (0, 0, 1001, 10), (-1, 0, 5, 5), (1, 2, 3)])
def test_a_box_that_is_none_is_refused(catalog, box):
    with pytest.raises(UsageError, match="box"):
        catalog.crop("clip.mp4", 5.0, box)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"n": 2, "fps": 1}, "give one of them"),
        ({"n": 0}, "from 1 to max_frames"),
        ({"fps": 0}, "above 0"),
        ({"max_frames": 0}, "at least 1"),
        ({"width": 0}, "width must be"),
        ({"between": (9, 10)}, "ends at 8 s"),
    ],
)
def test_numbers_that_do_not_fit_are_told(catalog, more, said):
    with pytest.raises(UsageError, match=said):
        catalog.frames("clip.mp4", **more)


def test_a_time_outside_and_an_unknown_video_are_told(catalog):
    with pytest.raises(UsageError, match="from 0 to 8 s, got 8"):
        catalog.crop("clip.mp4", 8, BOX)
    with pytest.raises(UsageError, match=r"unknown video 'clap\.mp4'"):
        catalog.frames("clap.mp4")


def test_a_cut_holds_the_span_and_nothing_else(catalog, tmp_path):
    file = catalog.clip("clip.mp4", tmp_path / "cut.mp4", (1, 5))
    with av.open(str(file)) as container:
        pictures = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
    assert [round(time, 3) for time, _ in pictures] == [round(number / 5, 3) for number in range(20)]
    assert [looks(image, "red") for _, image in pictures] == [True] * 5 + [False] * 15
    assert looks(pictures[10][1], "lime")
    assert looks(pictures[19][1], "blue")
    entry = catalog.entries(kind="local").row(1, named=True)
    with av.open(str(catalog.clip(entry["entry_id"], tmp_path / "entry.mp4"))) as container:
        assert len(list(container.decode(video=0))) == 10


def test_a_cut_begins_with_what_is_on_display_and_lasts_as_long_as_the_span(catalog, tmp_path):
    file = catalog.clip("clip.mp4", tmp_path / "cut.mp4", (1.9, 2.3))  # a frame each 0.2 s: red until 2
    with av.open(str(file)) as container:
        pictures = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
        assert abs(container.duration / 1e6 - 0.4) <= 0.2
    assert [(round(time, 3), looks(image, "red")) for time, image in pictures][:2] == [
        (0, True),
        (0.1, False),
    ]
    within = catalog.clip("clip.mp4", tmp_path / "within.mp4", (7.85, 7.95))  # no frame begins in it
    with av.open(str(within)) as container:
        assert looks(next(container.decode(video=0)).to_ndarray(format="rgb24"), "white")


def test_a_cut_never_overwrites(catalog, tmp_path):
    (tmp_path / "mine.mp4").write_bytes(b"x")
    with pytest.raises(UsageError, match="exists already"):
        catalog.clip("clip.mp4", tmp_path / "mine.mp4")
    with pytest.raises(UsageError, match="is an MP4 file"):
        catalog.clip("clip.mp4", tmp_path / "mine.avi")
    with pytest.raises(UsageError, match="no folder"):
        catalog.clip("clip.mp4", tmp_path / "none" / "x.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.mp4"]


def test_shards_hold_the_pictures_that_entries_cite(library, evicat, tmp_path):
    run = evicat("export", "webdataset", tmp_path / "out", "--kind", "local", "--catalog", library.catalog)
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("4 entries (4 all) in 1 file in ")
    with tarfile.open(tmp_path / "out" / "all" / "all-000000.tar") as shard:
        pictures = [name for name in shard.getnames() if name.endswith(".jpg")]
        image = cv2.imdecode(np.frombuffer(shard.extractfile(pictures[0]).read(), np.uint8), 1)
    assert len(pictures) == 8
    assert looks(image[:, :, ::-1], "red")


def test_media_that_is_gone_is_told_and_entries_are_exported_all_the_same(library, evicat, tmp_path):
    hidden = library.media.rename(tmp_path / "elsewhere")
    try:
        catalog = Catalog.open(str(library.catalog))
        with pytest.raises(AssetError, match=r"the media of clip.mp4 was not found .*media_roots"):
            catalog.frames("clip.mp4")
        assert len(catalog.frames("clip.mp4", n=1, media_roots=[hidden])) == 1
        run = evicat(
            "export", "webdataset", tmp_path / "out", "--kind", "local", "--catalog", library.catalog
        )
        assert run.code == 3
        assert "the media of clip.mp4 was not found" in run.out
        assert run.out.startswith("4 entries")
    finally:
        hidden.rename(library.media)
