"""Facts come from what decodes, whatever the header says."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from evicat.catalog.media.frames import Wanted, decode_windows, frame_times
from evicat.catalog.media.probe import probe, probe_isolated
from evicat.schemas.asset import clip_asset_id
from evicat.schemas.errors import AssetError, UnreadableMediaError
from evicat.schemas.span import US, Span


@pytest.mark.parametrize(
    ("name", "origin_us", "frames"),
    [("late.mkv", 7_000_000, 100), ("late.mp4", 7_000_000, 100), ("plain.ts", 1_480_000, 100)],
)
def test_a_late_start_is_the_origin(make, kit, name: str, origin_us: int, frames: int) -> None:
    asset = kit.facts(make(name))
    assert asset.origin_us == asset.container_start_us == origin_us
    assert (asset.duration_us, asset.video.frame_count) == (4 * US, frames)
    assert asset.flags == ()


def test_the_end_is_where_the_last_frame_ends(make, kit) -> None:
    asset = kit.facts(make("vfr.mp4"))
    assert asset.header_duration_us == 3_100_000
    assert asset.duration_us == 4 * US
    assert asset.flags == ()


def test_edit_lists_hide_what_they_cut(make, kit) -> None:
    asset = kit.facts(make("edts.mp4"))
    assert (asset.video.frame_count, asset.video.origin_pts) == (167, 0)
    assert asset.duration_us == 6_680_000
    assert asset.flags == ()


@pytest.mark.parametrize("name", ["full.mkv", "fast.mp4", "full.avi"])
def test_a_cut_off_file_ends_where_it_decodes(cut_off, kit, name: str) -> None:
    path = cut_off(name)
    asset = kit.facts(path)
    assert asset.flags == ("partial_file",)
    assert asset.header_duration_us == 10 * US
    assert asset.decoded_until_us == asset.duration_us
    assert 5_400_000 < asset.duration_us < 5_900_000
    span = Span(0, asset.duration_us)
    last = Wanted(span, (asset.duration_us - 1,), 64)
    ((_, (frame,)),) = decode_windows(path, asset, [last])
    assert frame.time_us + 40_000 == asset.duration_us
    assert kit.facts(path) == asset


@pytest.mark.parametrize("name", ["full.mkv", "fast.mp4", "full.avi", "late.mkv", "late.mp4", "aud_long.mp4"])
def test_a_whole_file_is_not_partial(make, kit, name: str) -> None:
    asset = kit.facts(make(name))
    assert asset.flags == ()
    assert asset.decoded_until_us is None


def test_a_late_file_that_is_cut_off_is_partial(cut_off, kit) -> None:
    asset = kit.facts(cut_off("late.mkv"))
    assert asset.flags == ("partial_file",)
    assert asset.header_duration_us == 4 * US
    assert asset.duration_us < 3 * US


def test_a_file_without_durations_is_measured(ffmpeg: Path, kit, tmp_path: Path) -> None:
    command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=64x64:r=25:d=3", "-c:v", "libvpx"]
    content = subprocess.run([*command, "-f", "webm", "pipe:1"], check=True, capture_output=True).stdout
    (tmp_path / "nodur.webm").write_bytes(content)
    asset = kit.facts(tmp_path / "nodur.webm")
    assert asset.header_duration_us is None
    assert (asset.duration_us, asset.video.frame_count, asset.flags) == (3 * US, 75, ())


def test_a_missing_last_duration_is_the_median_step(kit, tmp_path: Path) -> None:
    # Matroska from times alone: blocks say no duration.
    times = [0, 100, 200, 300, 400, 1000, 1100]
    path = kit.write_counters(tmp_path / "steps.mkv", times, codec="ffv1")
    asset = kit.facts(path)
    assert asset.duration_us in (1_140_000, 1_200_000)


@pytest.mark.parametrize("name", ["cover.m4a", "audonly.mp4"])
def test_a_song_is_no_video(make, kit, name: str) -> None:
    asset = kit.facts(make(name))
    assert asset.video is None
    assert (asset.audio.start_us, asset.origin_us, asset.duration_us) == (0, 0, 3 * US)
    assert asset.flags == ()


def test_an_attached_cover_is_not_the_picture(make, kit) -> None:
    path = make("cover_attach.mkv")
    asset = kit.facts(path)
    assert (asset.video.codec, asset.video.frame_count) == ("h264", 50)
    span = Span(0, asset.duration_us)
    ((_, frames),) = decode_windows(path, asset, [Wanted(span, frame_times(span, 50), 64)])
    assert len(frames) == 50
    assert not any((frame.image[:, :, 0] > 200).all() for frame in frames)


def test_the_picture_by_flag_then_size(make, kit) -> None:
    by_size, by_flag = kit.facts(make("twovid.mkv")), kit.facts(make("twovid_default.mkv"))
    assert (by_size.video.stream_index, by_size.video.width) == (1, 128)
    assert (by_flag.video.stream_index, by_flag.video.width) == (0, 32)


def test_the_sound_by_flag_then_channels(make, kit) -> None:
    asset = kit.facts(make("twoaudio.mkv"))
    assert (asset.audio.stream_index, asset.audio.channels, asset.audio.language) == (2, 2, "eng")
    by_flag = make("twoaudio_default.mkv", "-i twoaudio.mkv -map 0 -c copy -disposition:a:0 default")
    assert kit.facts(by_flag).audio.stream_index == 1


def test_a_picture_behind_sound_and_subtitles_is_found(make, kit) -> None:
    path = make("vlast.mp4")
    asset = kit.facts(path)
    assert (asset.video.stream_index, asset.audio.stream_index) == (2, 1)
    assert [(each.stream_index, each.codec) for each in asset.subtitles] == [(0, "mov_text")]


def test_single_frames_and_gifs_are_media(make, kit) -> None:
    single, still, gif = (kit.facts(make(name)) for name in ("single.mp4", "still4s.mp4", "moving.gif"))
    assert (single.duration_us, single.video.frame_count) == (40_000, 1)
    assert (still.duration_us, still.video.frame_count) == (4 * US, 4)
    assert (gif.duration_us, gif.video.frame_count) == (US, 10)


def test_the_facts_of_the_displayed_picture(make, kit) -> None:
    video = kit.facts(make("rot90.mp4")).video
    assert (video.width, video.height, video.rotation) == (64, 128, 90)
    video = kit.facts(make("sar2.mp4")).video
    assert (video.width, video.height, video.sample_aspect_ratio) == (128, 64, "2:1")


def test_late_and_early_sound(make, kit) -> None:
    late, early = kit.facts(make("aud_off.mkv")), kit.facts(make("aud_early.mkv"))
    assert (late.audio.start_us, late.flags) == (4 * US, ())
    assert (early.audio.start_us, early.flags) == (-2 * US, ("sound_before_picture",))
    assert early.duration_us == 2 * US


def test_sound_that_is_longer_makes_the_timeline_longer(make, kit) -> None:
    assert kit.facts(make("aud_long.mp4")).duration_us == pytest.approx(6 * US, abs=30_000)


def test_no_sound_and_an_empty_sound_stream(make, kit) -> None:
    silent = kit.facts(make("wide.mp4"))
    assert (silent.audio, silent.flags) == (None, ())
    path = make(
        "empty_audio.mkv",
        "-f lavfi -i testsrc2=s=64x64:r=25:d=1 -f lavfi -i sine=d=1 -map 0 -map 1",
        "-c:v libx264 -c:a pcm_s16le -af atrim=end_sample=0",
    )
    empty = kit.facts(path)
    assert (empty.audio, empty.flags) == (None, ("empty_audio",))
    assert empty.video.frame_count == 25


def test_what_is_no_media_is_named_with_its_reason(make, kit, cut_off, tmp_path: Path) -> None:
    files = {
        "zero.mp4": (b"", "the file is empty"),
        "text.mp4": (b"not a video", "not media"),
        "notes.txt": (b"not a video\n" * 500, "not a video or sound file"),
        "rand.mp4": (random.Random(7).randbytes(4096), "not media|decodes"),
        "nomoov.mp4": (make("src.mp4").read_bytes()[:20_000], "not media"),
        "cover.jpg": (make("cover.jpg").read_bytes(), "not a video or sound file"),
        "film.srt": (b"1\n00:00:01,000 --> 00:00:02,000\nHi\n", "may be 'srt', its name says otherwise"),
        "list.m3u8": (
            b"#EXTM3U\n#EXTINF:1,\nhttp://localhost/a.ts\n#EXT-X-ENDLIST\n",
            "not a video|not media",
        ),
    }
    for name, (content, reason) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableMediaError, match=rf"{name}: .*({reason})"):
            probe(tmp_path / name, asset_id="0" * 32, size_bytes=len(content))


def test_what_is_no_file_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "folder.mp4").mkdir()
    os.mkfifo(tmp_path / "pipe.mp4")
    for name, reason in [
        ("folder.mp4", "a folder"),
        ("pipe.mp4", "no regular file"),
        ("gone.mp4", "No such file or directory"),
    ]:
        with pytest.raises(UnreadableMediaError, match=rf"{name}: {reason}"):
            probe(tmp_path / name, asset_id="0" * 32, size_bytes=0)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_forbidden_file_is_named_with_its_reason(make, tmp_path: Path) -> None:
    path = tmp_path / "secret.mp4"
    path.write_bytes(make("single.mp4").read_bytes())
    path.chmod(0)
    with pytest.raises(UnreadableMediaError, match="Permission denied"):
        probe(path, asset_id="0" * 32, size_bytes=0)


NAMES = [
    "a:b.mp4",
    "file,with|pipe.mp4",
    "a%03d.mp4",
    "-dash.mp4",
    "it's.mp4",
    'q"q.mp4',
    "new\nline.mp4",
    "[1].mp4",
]


@pytest.mark.parametrize("name", [*NAMES, "日本語é.mp4", os.fsdecode(b"\xff\xfe.mp4"), "http:x", " lead"])
def test_odd_and_relative_names_open(make, kit, tmp_path: Path, monkeypatch, name: str) -> None:
    (tmp_path / name).write_bytes(make("single.mp4").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert kit.facts(Path(name)).duration_us == 40_000


def test_the_source_is_the_file_itself_unless_named(make, kit) -> None:
    asset = kit.facts(make("single.mp4"))
    assert asset.source_id == asset.asset_id
    assert kit.facts(make("single.mp4"), source_id="parent").source_id == "parent"


def test_a_worker_finds_the_same_facts(make, kit, pool) -> None:
    path = make("rot90.mp4")
    asset = kit.facts(path)
    same = probe_isolated(pool, path, asset_id=asset.asset_id, size_bytes=asset.size_bytes, timeout_s=60)
    assert same == asset
    with pytest.raises(UnreadableMediaError, match=r"gone\.mp4: No such file"):
        probe_isolated(pool, Path("gone.mp4"), asset_id="0" * 32, size_bytes=0, timeout_s=60)


@pytest.fixture
def counted(kit, tmp_path: Path) -> Path:
    options = {"g": "25", "x264-params": "scenecut=0"}
    return kit.write_counters(tmp_path / "counted.mp4", [k * 40 for k in range(250)], options=options)


def test_a_clip_is_an_asset_with_a_timeline_of_its_own(kit, counted: Path) -> None:
    parent = kit.facts(counted)
    clip = Span(3_310_000, 5_000_000)
    asset = kit.facts(counted, clip=clip)
    assert asset.asset_id == clip_asset_id(parent.asset_id, clip)
    assert (asset.source_id, asset.clip, asset.flags) == (parent.asset_id, clip, ())
    assert (asset.origin_us, asset.duration_us) == (3_320_000, 1_680_000)
    assert asset.video.frame_count == 42
    span = Span(0, asset.duration_us)
    ((_, frames),) = decode_windows(counted, asset, [Wanted(span, frame_times(span, 200), 64)])
    assert [kit.read_counter(frame.image) for frame in frames] == list(range(83, 125))
    assert [frame.time_us for frame in frames] == [k * 40_000 for k in range(42)]


def test_a_clip_beyond_the_end_is_cut_or_refused(kit, counted: Path) -> None:
    asset = kit.facts(counted, clip=Span(9 * US, 20 * US))
    assert (asset.duration_us, asset.flags) == (US, ("clip_overruns",))
    with pytest.raises(AssetError, match=r"starts at 0:00:10\.000, but the file ends at 0:00:10\.000"):
        kit.facts(counted, clip=Span(10 * US, 20 * US))


def test_a_clip_of_sound_starts_at_its_in_point(make, kit) -> None:
    asset = kit.facts(make("audonly.mp4"), clip=Span(500_000, 2_000_000))
    assert (asset.origin_us, asset.duration_us, asset.audio.start_us) == (500_000, 1_500_000, 0)


def test_a_clip_knows_whether_it_has_sound_and_picture(make, kit) -> None:
    before = kit.facts(make("aud_off.mkv"), clip=Span(0, 3 * US))
    assert before.audio is None
    within = kit.facts(make("aud_off.mkv"), clip=Span(3 * US, 8 * US))
    assert within.audio.start_us == US
    in_hole = kit.facts(make("aud_long.mp4"), clip=Span(3 * US, 5 * US))
    assert in_hole.video is None
    assert in_hole.audio.start_us == 0


def test_a_clip_of_a_cut_off_file_is_partial_only_at_the_cut(cut_off, kit) -> None:
    path = cut_off("full.mkv")
    inside, over = (kit.facts(path, clip=Span(US, end * US)) for end in (3, 9))
    assert (inside.flags, inside.decoded_until_us) == ((), None)
    assert over.flags == ("partial_file", "clip_overruns")
    assert over.decoded_until_us == over.duration_us
