"""The picture that is shown is the frame whose time is stored, whatever the file does to its clock."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from evicat.catalog.media import pyav_decoder, streams
from evicat.catalog.media.frames import (
    Selection,
    Wanted,
    decode_windows,
    frame_times,
    read_windows,
)
from evicat.schemas.grid import windows
from evicat.schemas.span import US, Span

STEADY = [k * 40 for k in range(250)]
UNEVEN = [k * 33 for k in range(60)] + [2000 + k * 333 for k in range(24)]
LATE = [7000 + k * 40 for k in range(100)]
HOLE = [k * 40 for k in range(50)] + [62_000 + k * 40 for k in range(50)]

CLOSED = {"g": "25", "x264-params": "scenecut=0"}
OPEN = {"g": "12", "bf": "3", "x264-params": "open-gop=1:scenecut=0:b-adapt=0"}
INTRA = {"g": "1"}

FILES = {
    "steady.mp4": (STEADY, "libx264", {}),
    "closed.mp4": (STEADY, "libx264", CLOSED),
    "open.mkv": (STEADY, "libx264", OPEN),
    "open.ts": (STEADY, "libx264", OPEN),
    "intra.mp4": (STEADY, "libx264", INTRA),
    "uneven.mp4": (UNEVEN, "libx264", CLOSED),
    "uneven.mkv": (UNEVEN, "libx264", OPEN),
    "late.mkv": (LATE, "libx264", CLOSED),
    "late.mp4": (LATE, "libx264", CLOSED),
    "late.ts": (LATE, "libx264", CLOSED),
    "hole.mkv": (HOLE, "libx264", CLOSED),
    "lossless.mkv": (UNEVEN, "ffv1", {}),
    "plain.avi": (STEADY[:100], "mpeg4", {}),
    "vp9.webm": (STEADY[:100], "libvpx-vp9", {"g": "20", "deadline": "realtime", "cpu-used": "8"}),
    "single.mp4": ([0], "libx264", {}),
}


@pytest.fixture(scope="module")
def counters(kit, tmp_path_factory: pytest.TempPathFactory):
    """``counters("open.mkv")``: the file and its asset, made once."""
    folder = tmp_path_factory.mktemp("counters")
    made = {}

    def run(name: str):
        if name not in made:
            times_ms, codec, options = FILES[name]
            path = kit.write_counters(folder / name, times_ms, codec=codec, options=options)
            made[name] = path, kit.facts(path)
        return made[name]

    return run


def both_scales(duration_us: int, width: int = 448) -> list[Wanted]:
    """4 s x 8 and 30 s x 16 frames."""
    return [
        Wanted(span, frame_times(span, count), width)
        for seconds, count in ((4, 8), (30, 16))
        for span in windows(duration_us, seconds * US)
    ]


def as_numbers(result, read_counter) -> dict[int, list[tuple[int, int, int]]]:
    return {
        index: [(frame.pts, frame.time_us, read_counter(frame.image)) for frame in frames]
        for index, frames in result
    }


def decode_all(path: Path, asset, wanted: list[Wanted], *, skipping: bool) -> dict:
    selection = Selection(wanted)
    steps = pyav_decoder.decode(path, asset, selection, skipping=skipping)
    return dict(step for step in steps if step is not None)


def same_frames(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(
        [f.pts for f in one[i]] == [f.pts for f in other[i]]
        and all(np.array_equal(f.image, g.image) for f, g in zip(one[i], other[i], strict=True))
        for i in one
    )


@pytest.mark.parametrize("name", FILES)
def test_every_picture_is_the_frame_of_its_time(counters, kit, name: str) -> None:
    path, asset = counters(name)
    times_ms = FILES[name][0]
    times_us = [(time - times_ms[0]) * 1000 for time in times_ms]
    wanted = both_scales(asset.duration_us)
    result = as_numbers(decode_windows(path, asset, wanted), kit.read_counter)
    assert sorted(result) == list(range(len(wanted)))
    for index, shown in result.items():
        assert [time for _, time, _ in shown] == kit.on_display(times_us, wanted[index])
        for pts, time, number in shown:
            assert times_us[number] == time
            assert time in wanted[index].span
            assert (pts - asset.video.origin_pts) * eval_base(asset) == pytest.approx(time / US, abs=1e-6)


def eval_base(asset) -> float:
    numerator, denominator = map(int, asset.video.time_base.split("/"))
    return numerator / denominator


@pytest.mark.parametrize("name", ["late.mkv", "late.mp4", "late.ts"])
def test_a_late_start_leaves_no_empty_window(counters, name: str) -> None:
    path, asset = counters(name)
    assert asset.duration_us == 4 * US
    assert asset.origin_us // US >= 7
    spans = windows(asset.duration_us, US)
    result = dict(decode_windows(path, asset, [Wanted(s, frame_times(s, 100), 64) for s in spans]))
    assert [len(result[index]) for index in range(4)] == [25, 25, 25, 25]


def test_windows_in_a_hole_have_no_frames(counters) -> None:
    path, asset = counters("hole.mkv")
    assert asset.duration_us == 64 * US
    spans = windows(asset.duration_us, 10 * US)
    result = dict(decode_windows(path, asset, [Wanted(s, frame_times(s, 8), 64) for s in spans]))
    assert [bool(result[index]) for index in range(7)] == [True, False, False, False, False, False, True]
    assert result[6][0].time_us == 62 * US


def test_a_window_with_one_frame_shows_it_once(counters) -> None:
    path, asset = counters("single.mp4")
    (span,) = windows(asset.duration_us, 10 * US)
    ((_, frames),) = decode_windows(path, asset, [Wanted(span, frame_times(span, 8), 64)])
    assert len(frames) == 1


def test_a_frame_on_a_boundary_belongs_to_the_later_window(counters) -> None:
    path, asset = counters("steady.mp4")
    early, late = Span(0, 4 * US), Span(4 * US, 8 * US)
    result = dict(
        decode_windows(path, asset, [Wanted(early, (4 * US - 1,), 64), Wanted(late, (4 * US,), 64)])
    )
    assert [result[0][0].time_us, result[1][0].time_us] == [3_960_000, 4 * US]


@pytest.mark.parametrize("name", FILES)
def test_skipping_changes_no_frame(counters, name: str) -> None:
    path, asset = counters(name)
    sparse = [
        Wanted(span, (span.start_us + offset * 1000,), 64)
        for offset in (1, 777, 1531)
        for span in windows(asset.duration_us, 2 * US)[::3]
        if span.start_us + offset * 1000 in span
    ]
    for wanted in (sparse, sparse[:1], sparse[-1:], both_scales(asset.duration_us)):
        whole = decode_all(path, asset, wanted, skipping=False)
        assert same_frames(decode_all(path, asset, wanted, skipping=True), whole)


@pytest.mark.parametrize("name", ["closed.mp4", "open.mkv", "intra.mp4", "vp9.webm"])
def test_what_nobody_wants_is_not_decoded(counters, monkeypatch, name: str) -> None:
    path, asset = counters(name)
    fed = []
    real = streams.decode_packet
    monkeypatch.setattr(
        pyav_decoder,
        "decode_packet",
        lambda c, packet, d: fed.append(packet is not None) or real(c, packet, d),
    )
    late = Span(asset.duration_us - US // 2, asset.duration_us)
    ((_, frames),) = decode_windows(path, asset, [Wanted(late, (late.start_us + 1000,), 64)])
    assert frames[0].time_us >= late.start_us
    assert 0 < sum(fed) <= 40


def test_decoding_stops_when_all_is_settled(counters, monkeypatch) -> None:
    path, asset = counters("closed.mp4")
    fed = []
    real = streams.decode_packet
    monkeypatch.setattr(
        pyav_decoder, "decode_packet", lambda c, packet, d: fed.append(packet) or real(c, packet, d)
    )
    list(decode_windows(path, asset, [Wanted(Span(0, US), (500_000,), 64)]))
    assert len(fed) < 60


def test_a_window_comes_before_later_ones_are_decoded(counters, monkeypatch) -> None:
    path, asset = counters("closed.mp4")
    fed = []
    real = streams.decode_packet
    monkeypatch.setattr(
        pyav_decoder, "decode_packet", lambda c, packet, d: fed.append(packet) or real(c, packet, d)
    )
    spans = windows(asset.duration_us, US)
    result = decode_windows(path, asset, [Wanted(s, frame_times(s, 2), 64) for s in spans])
    assert next(result)[0] == 0
    assert len(fed) < 70


def test_a_keyframe_that_does_not_decode_changes_no_other_frame(counters, kit, tmp_path: Path) -> None:
    path, _ = counters("closed.mp4")
    damaged = tmp_path / "damaged.mp4"
    content = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        keys = [p for p in container.demux(video=0) if p.size and p.is_keyframe]
        content[keys[4].pos : keys[4].pos + keys[4].size] = bytes(keys[4].size)
    damaged.write_bytes(content)
    asset = kit.facts(damaged)
    wanted = [Wanted(Span(k * US // 2, (k + 4) * US // 2), (k * US // 2 + 20_000,), 64) for k in range(16)]
    for some in (wanted, wanted[7:8], wanted[8:9], wanted[9:]):
        whole = decode_all(damaged, asset, some, skipping=False)
        assert same_frames(decode_all(damaged, asset, some, skipping=True), whole)
    numbers = as_numbers(decode_windows(damaged, asset, wanted), kit.read_counter)
    assert [numbers[k][0][2] for k in range(8)] == [-(-25 * k // 2) for k in range(8)]


@pytest.mark.parametrize(
    ("span", "instants", "shown"),
    [
        # The frame at 4.00 s is broken: the one before it stays on display,
        (Span(3_900_000, 4_100_000), (4_000_000,), [3_960_000]),
        # and what was settled before is not settled again.
        (Span(2_000_000, 4_100_000), (2_500_000, 4_000_000), [2_480_000, 3_960_000]),
        # Where the one before lies before the window, the next one inside it is shown,
        (Span(3_980_000, 4_100_000), (4_010_000,), [4_040_000]),
        # also for an instant before the broken frame;
        (Span(3_980_000, 4_100_000), (3_990_000,), [4_040_000]),
        # and where the window ends before that one, there is none.
        (Span(3_980_000, 4_030_000), (3_990_000,), []),
    ],
)
def test_beside_a_broken_frame_skipping_changes_nothing(
    kit, tmp_path: Path, span: Span, instants: tuple[int, ...], shown: list[int]
) -> None:
    path = kit.write_counters(tmp_path / "hurt.mov", STEADY[:120], codec="png", pix_fmt="rgb24")
    asset = kit.facts(path)
    content = path.read_bytes()
    with av.open(str(path)) as container:
        broken = bytes([p for p in container.demux(video=0) if p.size][100])
    assert content.count(broken) == 1
    path.write_bytes(content.replace(broken, bytes(len(broken))))
    for skipping in (True, False):
        ((_, frames),) = decode_all(path, asset, [Wanted(span, instants, 64)], skipping=skipping).items()
        assert [frame.time_us for frame in frames] == shown


def test_a_second_take_in_the_same_file_follows_the_first(counters, kit, tmp_path: Path) -> None:
    path, _ = counters("open.ts")
    (tmp_path / "twice.ts").write_bytes(path.read_bytes() * 2)
    asset = kit.facts(tmp_path / "twice.ts")
    assert asset.flags == ("clock_reset",)
    wanted = both_scales(asset.duration_us)
    result = as_numbers(decode_windows(tmp_path / "twice.ts", asset, wanted), kit.read_counter)
    assert asset.duration_us == 20 * US
    assert all(number * 40_000 == time % (10 * US) for shown in result.values() for _, time, number in shown)
    assert all(result.values())


def test_a_damaged_packet_is_left_out_and_counted(counters, kit, tmp_path: Path, caplog) -> None:
    path, asset = counters("intra.mp4")
    content = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        broken = [p for p in container.demux(video=0) if p.size][100]
        content[broken.pos : broken.pos + broken.size] = bytes(broken.size)
    (tmp_path / "hurt.mp4").write_bytes(content)
    span = Span(0, asset.duration_us)
    wanted = [Wanted(span, tuple(k * 40_000 for k in range(95, 105)), 64)]
    with caplog.at_level("WARNING"):
        numbers = as_numbers(decode_windows(tmp_path / "hurt.mp4", asset, wanted), kit.read_counter)
    assert [number for _, _, number in numbers[0]] == [95, 96, 97, 98, 99, 101, 102, 103, 104]
    assert "left out 1 packets" in caplog.text


def test_scales_that_show_a_frame_share_its_picture(counters) -> None:
    path, asset = counters("steady.mp4")
    same = [Wanted(Span(0, 4 * US), (US,), 32), Wanted(Span(0, 8 * US), (US,), 32)]
    other = Wanted(Span(0, 8 * US), (US,), 16)
    result = dict(decode_windows(path, asset, [*same, other]))
    assert result[0][0] is result[1][0]
    assert result[2][0].image.shape == (16, 16, 3)


def test_a_window_that_asks_for_nothing_is_complete(counters) -> None:
    path, asset = counters("steady.mp4")
    assert dict(decode_windows(path, asset, [Wanted(Span(0, US), (), 32)])) == {0: ()}


def test_hidden_pre_roll_is_never_shown(make, kit) -> None:
    path = make("edts.mp4")
    asset = kit.facts(path)
    span = Span(0, asset.duration_us)
    ((_, frames),) = decode_windows(path, asset, [Wanted(span, frame_times(span, 512), 64)])
    assert len(frames) == 167
    source = kit.facts(make("src.mp4"))
    ((_, (first,)),) = decode_windows(
        make("src.mp4"), source, [Wanted(Span(3_320_000, 3_360_000), (3_320_000,), 64)]
    )
    assert np.array_equal(frames[0].image, first.image)


@pytest.mark.parametrize("name", ["full.mkv", "fast.mp4", "full.avi"])
def test_a_cut_off_file_shows_only_frames_of_the_whole_one(cut_off, make, kit, name: str) -> None:
    path = cut_off(name)
    asset = kit.facts(path)
    wanted = [Wanted(s, frame_times(s, 40), 64) for s in windows(asset.duration_us, 2 * US)]
    partial = dict(decode_windows(path, asset, wanted))
    whole = dict(decode_windows(make(name), kit.facts(make(name)), wanted))
    assert all(partial.values())
    assert same_frames(partial, whole)


def test_after_the_picture_ends_its_last_frame_is_not_shown_for_ever(make, kit) -> None:
    path = make("aud_long.mp4")
    asset = kit.facts(path)
    wanted = [Wanted(s, frame_times(s, 4), 64) for s in windows(asset.duration_us, 2 * US)]
    assert [len(frames) for _, frames in sorted(decode_windows(path, asset, wanted))] == [4, 0, 0]


def test_sound_alone_has_no_frames(make, kit) -> None:
    path = make("audonly.mp4")
    asset = kit.facts(path)
    assert dict(decode_windows(path, asset, both_scales(asset.duration_us))) == {0: (), 1: ()}


@pytest.mark.parametrize("name", ["open.mkv", "hole.mkv"])
def test_a_worker_gives_the_same(counters, pool, name: str) -> None:
    path, asset = counters(name)
    wanted = both_scales(asset.duration_us)
    apart = dict(read_windows(pool, path, asset, wanted, timeout_s=60))
    assert same_frames(apart, dict(decode_windows(path, asset, wanted)))
