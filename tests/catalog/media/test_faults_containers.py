"""Faults of containers and timelines that people met, each with its right behaviour (B01 to B23)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog.media.audio import read_audio, read_audio_isolated
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import Wanted, frame_times, read_windows
from evicat.catalog.media.probe import probe, probe_isolated
from evicat.catalog.transcribers.blocks import cut_blocks
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError
from evicat.schemas.grid import windows
from evicat.schemas.span import US, Span, format_time

TIMEOUT_S = 60.0
RATE = 16_000


@pytest.fixture
def look(pool, kit):
    """``look(path, 4)``: the asset, and its frames by windows of 4 s, read in a worker."""

    def run(path: Path, seconds: float, count: int = 8) -> tuple[Asset, list[tuple[Span, tuple[Frame, ...]]]]:
        asset = kit.facts(path)
        spans = windows(asset.duration_us, round(seconds * US))
        wanted = [Wanted(span, frame_times(span, count), 64) for span in spans]
        found = dict(read_windows(pool, path, asset, wanted, timeout_s=TIMEOUT_S))
        assert sorted(found) == list(range(len(spans)))
        return asset, [(span, found[index]) for index, span in enumerate(spans)]

    return run


def test_b01_a_varying_rate_is_followed_to_the_end(look, make) -> None:
    asset, shown = look(make("vfr.mp4"), 1, count=200)
    times = [frame.time_us for _, frames in shown for frame in frames]
    assert len(times) == asset.video.frame_count == 66
    assert times[:60] == pytest.approx([k * US / 30 for k in range(60)], abs=100)
    assert times[60:] == pytest.approx([2 * US + k * US / 3 for k in range(6)], abs=100)
    assert shown[-1][0].end_us >= 3_667_000 > asset.header_duration_us


@pytest.mark.slow
def test_b01_after_an_hour_a_sample_is_still_the_frame_of_its_time(kit, look, tmp_path: Path) -> None:
    # 30000/1001 pictures a second, of which each thirtieth is there: index / fps would be 3.6 s off.
    times_ms = [1001 * k for k in range(3600)]
    path = kit.write_counters(tmp_path / "hour.mkv", times_ms, options={"preset": "ultrafast", "g": "60"})
    asset, shown = look(path, 60, count=30)
    assert asset.duration_us >= 3_602_599_000
    for span, frames in shown:
        assert frames
        for frame in frames:
            assert frame.time_us == 1_001_000 * kit.read_counter(frame.image)
            assert frame.time_us in span


def test_b02_a_late_start_gives_the_same_windows(look, make) -> None:
    looks = [look(make(name), 1, count=100) for name in ("late.mkv", "late.mp4", "plain.ts")]
    first = looks[0][1]
    assert [len(frames) for _, frames in first] == [25, 25, 25, 25]
    for asset, shown in looks:
        assert asset.duration_us == 4 * US
        assert asset.origin_us > US
        assert [span for span, _ in shown] == [span for span, _ in first]
        for (_, frames), (_, others) in zip(shown, first, strict=True):
            assert [f.time_us for f in frames] == [f.time_us for f in others]
            assert all(np.array_equal(f.image, g.image) for f, g in zip(frames, others, strict=True))


def test_b04_only_what_an_edit_list_presents_is_shown(look, make) -> None:
    asset, shown = look(make("edts.mp4"), 10, count=512)
    ((span, frames),) = shown
    assert len(frames) == asset.video.frame_count == 167
    assert 6_680_000 <= span.end_us <= 6_700_000
    _, whole = look(make("src.mp4"), 10, count=512)
    source = next(frame for frame in whole[0][1] if frame.time_us == 3_320_000)
    assert np.array_equal(frames[0].image, source.image)


@pytest.mark.parametrize("name", ["fast.mp4", "full.avi", "full.mkv"])
def test_b05_a_file_that_was_cut_off_ends_with_its_last_frame(look, cut_off, name: str) -> None:
    path = cut_off(name)
    asset, shown = look(path, 1)
    assert asset.flags == ("partial_file",)
    assert 5_500_000 <= asset.decoded_until_us == asset.duration_us <= 5_800_000
    assert asset.header_duration_us == 10 * US
    assert all(frames for _, frames in shown)
    assert shown[-1][0].end_us == asset.duration_us
    again, _ = look(path, 1)
    assert again == asset


def test_b06_a_file_without_duration_gives_the_same_windows(look, make, ffmpeg: Path, tmp_path: Path) -> None:
    command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=64x64:r=25:d=3"]
    piped = [*command, "-c:v", "libvpx", "-f", "webm", "pipe:1"]
    path = tmp_path / "nodur.webm"
    path.write_bytes(subprocess.run(piped, check=True, capture_output=True).stdout)
    asset, shown = look(path, 1, count=100)
    same, other = look(make("three.mp4", "-f lavfi -i testsrc2=s=64x64:r=25:d=3 -c:v libx264"), 1, count=100)
    assert asset.header_duration_us is None
    assert asset.duration_us == same.duration_us == 3 * US
    assert [span for span, _ in shown] == [span for span, _ in other]
    assert [[f.time_us for f in fs] for _, fs in shown] == [[f.time_us for f in fs] for _, fs in other]


@pytest.mark.parametrize("name", ["cover.m4a", "audonly.mp4"])
def test_b08_a_song_with_artwork_has_no_pictures(look, make, name: str) -> None:
    asset, shown = look(make(name), 1)
    assert (asset.video, asset.audio is None, asset.flags) == (None, False, ())
    assert not any(frames for _, frames in shown)


def test_b08_the_picture_is_chosen_by_rule_and_stored(look, make) -> None:
    asset, shown = look(make("cover_attach.mkv"), 2, count=100)
    assert (asset.video.codec, len(shown[0][1])) == ("h264", 50)
    assert not any((frame.image[:, :, 0] > 200).all() for frame in shown[0][1])
    asset, shown = look(make("vlast.mp4"), 2)
    assert (asset.video.stream_index, asset.duration_us, len(shown[0][1])) == (2, 2 * US, 8)
    asset, _ = look(make("twovid.mkv"), 2)
    assert (asset.video.stream_index, asset.video.width) == (1, 128)


def test_b11_a_hole_is_windows_without_frames(look, make) -> None:
    asset, shown = look(make("hole.mkv"), 10)
    assert asset.duration_us == 64 * US
    assert [len(frames) for _, frames in shown[1:6]] == [0] * 5
    assert all(frame.time_us < 2 * US for frame in shown[0][1])
    assert shown[6][1][0].time_us == 62 * US


def test_b12_short_clips_are_one_window_and_lengths_add_up(look, make) -> None:
    cases = {
        "single.mp4": (None, 1, 40_000, 1),
        "still4s.mp4": (None, 4, 4 * US, 4),
        "moving.gif": (None, 10, US, 10),
        "short.mp4": ("-f lavfi -i testsrc2=s=64x64:r=10:d=0.9 -c:v libx264", 9, 900_000, 9),
        "over.mp4": ("-f lavfi -i testsrc2=s=64x64:r=5:d=30.4 -c:v libx264", 152, 30_400_000, 150),
    }
    for name, (words, count, duration_us, at_least) in cases.items():
        asset, shown = look(make(name, *([words] if words else [])), 30, count=400)
        assert asset.duration_us == duration_us
        assert [span.end_us for span, _ in shown][-1] == duration_us
        assert sum(span.duration_us for span, _ in shown) == duration_us
        assert all(span.duration_us > 0 for span, _ in shown)
        assert (len(shown), asset.video.frame_count) == (1, count)
        assert len(shown[0][1]) >= at_least


@pytest.fixture(scope="module")
def ten_hours(make) -> Path:
    return make(
        "long10h.mp4",
        "-f lavfi -i color=gray:s=64x64:r=1/10:d=36000 -c:v libx264 -pix_fmt yuv420p -preset ultrafast",
    )


@pytest.mark.slow
def test_b13_ten_hours_end_as_they_begin(look, ten_hours: Path) -> None:
    asset, shown = look(ten_hours, 60, count=6)
    assert (asset.duration_us, asset.video.frame_count) == (36_000 * US, 3600)
    assert [len(frames) for _, frames in shown] == [6] * 600
    last = shown[-1][1][-1]
    assert format_time(last.time_us) == "9:59:50.000"
    keys = [f"{span.start_us:014d}" for span, _ in shown]
    assert keys == sorted(keys)


@pytest.mark.slow
def test_b13_an_hour_of_sound_comes_in_pieces(make, kit, pool) -> None:
    path = make("long.flac", "-f lavfi -i anullsrc=r=8000:cl=mono:d=3600 -c:a flac")
    asset = kit.facts(path)
    assert asset.duration_us == 3600 * US
    at = 0
    for piece in read_audio_isolated(pool, path, asset, timeout_s=TIMEOUT_S):
        assert piece.start_us * RATE == at * US
        at += len(piece.samples)
    assert at == 3600 * RATE


def test_b21_no_sound_an_empty_stream_and_silence_are_told_apart(make, kit) -> None:
    none = kit.facts(make("wide.mp4"))
    empty = kit.facts(
        make(
            "empty_audio.mkv",
            "-f lavfi -i testsrc2=s=64x64:r=25:d=1 -f lavfi -i sine=d=1 -map 0 -map 1",
            "-c:v libx264 -c:a pcm_s16le -af atrim=end_sample=0",
        )
    )
    path = make(
        "silence.mkv",
        "-f lavfi -i testsrc2=s=64x64:r=25:d=1 -f lavfi -i anullsrc=r=16000:d=1 -c:v libx264 -c:a pcm_s16le",
    )
    silent = kit.facts(path)
    assert [asset.audio is None for asset in (none, empty, silent)] == [True, True, False]
    assert [asset.flags for asset in (none, empty, silent)] == [(), ("empty_audio",), ()]
    assert not any(piece.samples.any() for piece in read_audio(path, silent))
    assert [asset.video.frame_count for asset in (none, empty, silent)] == [50, 25, 25]


def test_b23_what_follows_a_gap_of_the_sound_stays_where_it_is(make, kit) -> None:
    path = make("aud_gap.mkv")
    asset = kit.facts(path)
    pieces = [(piece.start_us, piece.samples) for piece in read_audio(path, asset)]
    samples = np.concatenate([samples for _, samples in pieces])
    assert len(samples) / RATE == 8.0
    assert np.abs(samples[6 * RATE : 6 * RATE + 800]).max() > 0.05
    assert not samples[round(2.1 * RATE) : round(4.9 * RATE)].any()
    blocks = list(cut_blocks(pieces))
    assert blocks[-1].end_us == 8 * US
    assert len(blocks[-1].samples) * US // RATE == blocks[-1].end_us - blocks[-1].start_us


def test_a_file_that_grows_meanwhile_is_not_taken_for_what_was_hashed(make, pool, tmp_path) -> None:
    content = make("plain.ts").read_bytes()
    path = tmp_path / "recording.ts"
    path.write_bytes(content)
    for run in (probe, lambda *a, **k: probe_isolated(pool, *a, **k, timeout_s=TIMEOUT_S)):
        with pytest.raises(AssetError, match=r"recording\.ts: it changed from 5000 to \d+ bytes") as caught:
            run(path, asset_id="0" * 32, size_bytes=5000)
        assert caught.value.error_class == "Asset"  # not remembered as no media: the next run tries again
