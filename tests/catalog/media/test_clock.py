"""One clock: through every container and every fault, a picture is at most a frame off, sound 0.1 s."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from evicat.catalog.media.clock import to_us
from evicat.catalog.media.resets import ClockTrack, align
from evicat.catalog.sound import listened_to
from evicat.schemas.asset import Asset
from evicat.schemas.recipe import SpeechOptions
from evicat.schemas.span import US

from . import films

FRAME_US = films.FRAME_US
SOUND_US = 100_000
CONTAINERS = ["mp4", "mov", "3gp", "mkv", "webm", "ts", "m2ts", "mpg", "avi", "flv", "nut"]

Film = Callable[..., Path]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Film:
    """``film("a.ts", first=100)``: 4 s of numbered pictures and clicks, made once."""
    folder = tmp_path_factory.mktemp("films")

    def run(name: str, **options: object) -> Path:
        path = folder / name
        return path if path.exists() else films.write_film(path, **options)

    return run


@pytest.fixture
def remux(ffmpeg: Path, tmp_path: Path) -> Callable[..., Path]:
    """``remux("late.mkv", "-i {} -output_ts_offset 7", source)`` copies packets by ffmpeg."""

    def run(name: str, arguments: str, *sources: Path) -> Path:
        words = arguments.format(*sources).split()
        command = [ffmpeg, "-v", "error", "-y", *words, "-c", "copy", tmp_path / name]
        subprocess.run(command, check=True)
        return tmp_path / name

    return run


def hold(kit, path: Path, *, pictures: int = 100, clicks: int = 7, shift_us: int = 0) -> Asset:
    """All pictures and clicks are there, and where they belong."""
    asset = kit.facts(path)
    found = films.find(path, asset)
    assert len(found.pictures) == pictures
    assert len(found.clicks_us) == clicks
    assert found.picture_error_us(shift_us) <= FRAME_US
    assert found.click_error_us(shift_us) <= SOUND_US
    return asset


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_keeps_the_clock(kit, film: Film, container: str) -> None:
    asset = hold(kit, film(f"film.{container}"))
    assert asset.flags == ()
    assert asset.duration_us == pytest.approx(4 * US, abs=SOUND_US)


@pytest.mark.parametrize("container", ["mp4", "mkv", "ts", "flv", "webm"])
@pytest.mark.parametrize("offset", [7, 4000])
def test_a_late_start_moves_nothing(kit, film: Film, remux, container: str, offset: int) -> None:
    path = remux(f"late.{container}", f"-i {{}} -output_ts_offset {offset}", film(f"film.{container}"))
    asset = hold(kit, path)
    assert asset.origin_us // US == offset + (container == "ts")
    assert asset.flags == ()


def test_a_start_before_zero_moves_nothing(kit, film: Film, remux) -> None:
    early = "-output_ts_offset -3 -avoid_negative_ts disabled -muxdelay 0 -muxpreload 0"
    hold(kit, remux("early.ts", f"-copyts -i {{}} {early}", film("film.ts")))
    for container in ("mp4", "mov"):
        negative = "-i {} -movflags negative_cts_offsets"
        assert hold(kit, remux(f"negative.{container}", negative, film("film.mp4"))).duration_us == 4 * US


def test_packets_without_pts_are_placed_by_their_order(kit, film: Film, remux) -> None:
    path = remux("order.avi", "-i {} -i {} -map 0:v -map 1:a", film("film.mp4"), film("film.mkv"))
    assert hold(kit, path).flags == ()


def test_an_uneven_rate_keeps_the_clock(kit, film: Film) -> None:
    times = [*range(0, 2 * US, FRAME_US), *range(2 * US, 4 * US, 250_000)]
    for container in ("mp4", "mkv", "ts", "flv", "mov"):
        path = film(f"uneven.{container}", times_us=times)
        asset = kit.facts(path)
        found = films.find(path, asset)
        assert [number for number, _ in found.pictures] == list(range(len(times)))
        assert max(abs(times[number] - time) for number, time in found.pictures) <= 1000
        assert found.click_error_us() <= SOUND_US
        assert asset.duration_us >= times[-1] + FRAME_US


def test_edit_lists_that_delay_a_stream_are_kept(kit, film: Film, remux) -> None:
    source = film("film.mp4")
    late_sound = remux("late_sound.mp4", "-i {0} -itsoffset 1.2 -i {0} -map 0:v -map 1:a", source)
    asset = kit.facts(late_sound)
    found = films.find(late_sound, asset)
    assert (found.picture_error_us(), len(found.pictures)) == (0, 100)
    assert found.clicks_us[0] == pytest.approx(1_700_000, abs=SOUND_US)
    late_picture = remux("late_picture.mp4", "-itsoffset 1.2 -i {0} -i {0} -map 0:v -map 1:a", source)
    asset = kit.facts(late_picture)
    found = films.find(late_picture, asset)
    assert asset.flags == ("sound_before_picture",)
    assert (found.picture_error_us(), len(found.pictures)) == (0, 100)
    assert found.clicks_us[0] == pytest.approx(300_000, abs=SOUND_US)


@pytest.mark.parametrize("container", ["mp4", "mov", "mkv"])
def test_a_copied_cut_shows_what_it_says(kit, film: Film, remux, container: str) -> None:
    path = remux(f"cut.{container}", "-ss 1.3 -i {}", film(f"film.{container}"))
    asset = kit.facts(path)
    found = films.find(path, asset)
    first_us = found.pictures[0][0] * FRAME_US
    # The edit list of MP4 hides what lies before the cut; Matroska shows it from the keyframe on.
    assert first_us == pytest.approx(1_300_000 if container != "mkv" else US, abs=FRAME_US)
    assert found.picture_error_us(-first_us) <= FRAME_US
    assert found.click_error_us(-first_us) <= SOUND_US


@pytest.mark.parametrize(("container", "muxer"), [("webm", "webm"), ("mkv", "matroska"), ("ts", "mpegts")])
def test_no_duration_in_the_header_is_no_matter(
    kit, film: Film, ffmpeg: Path, tmp_path: Path, container: str, muxer: str
) -> None:
    command = [ffmpeg, "-v", "error", "-i", film(f"film.{container}"), "-c", "copy", "-f", muxer, "pipe:1"]
    path = tmp_path / f"piped.{container}"
    path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    asset = hold(kit, path)
    assert asset.duration_us == pytest.approx(4 * US, abs=SOUND_US)


def test_fragments_are_one_film(kit, film: Film, remux) -> None:
    flags = "-i {} -movflags frag_keyframe+empty_moov+default_base_moof -frag_duration 500000"
    asset = hold(kit, remux("pieces.mp4", flags, film("film.mp4")))
    assert (asset.duration_us, asset.flags) == (4 * US, ())


def test_a_stream_that_ends_early_moves_nothing(kit, film: Film) -> None:
    for container in ("mp4", "mkv", "ts", "flv", "webm"):
        short_sound = film(f"short_sound.{container}", sound_seconds=2.0)
        asset = hold(kit, short_sound, clicks=3)
        assert asset.duration_us == pytest.approx(4 * US, abs=SOUND_US)
        short_picture = film(f"short_picture.{container}", seconds=2.0, sound_seconds=4.0)
        asset = hold(kit, short_picture, pictures=50)
        assert asset.duration_us == pytest.approx(4 * US, abs=SOUND_US)


@pytest.mark.parametrize("before_wrap_s", [0.5, 1, 2, 3.9])
def test_a_counter_that_wraps_moves_nothing(kit, film: Film, remux, before_wrap_s: float) -> None:
    offset = 2**33 / 90_000 - before_wrap_s - 1.4
    path = remux("wrap.ts", f"-i {{}} -output_ts_offset {offset:.3f}", film("film.ts"))
    asset = hold(kit, path)
    assert asset.duration_us == pytest.approx(4 * US, abs=SOUND_US)
    assert asset.flags == ()


def joined(path: Path, *parts: Path) -> Path:
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


@pytest.mark.parametrize("container", ["ts", "m2ts", "mpg", "mkv", "webm"])
def test_joined_files_follow_each_other(kit, film: Film, tmp_path: Path, container: str) -> None:
    count = 2 if container in ("mkv", "webm") else 3  # of Matroska FFmpeg reads no third
    parts = [film(f"part{k}.{container}", first=100 * k) for k in range(count)]
    path = joined(tmp_path / f"joined.{container}", *parts)
    asset = kit.facts(path)
    found = films.find(path, asset)
    # At a seam of MPEG-TS, FFmpeg calls the packet before it damaged.
    assert len(found.pictures) > 100 * count - count
    assert found.picture_error_us() <= FRAME_US
    assert len(found.clicks_us) >= 7 * count - 1
    assert found.click_error_us() <= SOUND_US
    assert asset.flags == ("clock_reset",)
    assert asset.duration_us == pytest.approx(4 * US * count, abs=SOUND_US)


@pytest.mark.parametrize(("first_at", "second_at"), [(0, 20_000), (100, 0), (80_000, 3), (30_000, 50_000)])
def test_a_clock_that_is_set_anew_goes_on(
    kit, film: Film, remux, tmp_path: Path, first_at: int, second_at: int
) -> None:
    parts = [
        remux(f"at{offset}.ts", f"-i {{}} -output_ts_offset {offset}", film(f"part{k}.ts", first=100 * k))
        for k, offset in enumerate((first_at, second_at))
    ]
    path = joined(tmp_path / "reset.ts", *parts)
    asset = kit.facts(path)
    found = films.find(path, asset)
    assert (len(found.pictures) >= 199, asset.flags) == (True, ("clock_reset",))
    assert found.picture_error_us() <= FRAME_US
    assert found.click_error_us() <= SOUND_US
    assert asset.duration_us == pytest.approx(8 * US, abs=SOUND_US)


def test_a_further_sound_track_goes_with_the_picture_too(
    kit, film: Film, remux, pool, tmp_path: Path
) -> None:
    """It outlasts the picture of the first part, which the picture of the second part does not wait for."""
    parts = []
    for k in range(2):
        longer = film(f"longer{k}.ts", first=100 * k, sound_seconds=5.35)
        both = "-i {} -i {} -map 0:v -map 0:a -map 1:a"
        parts.append(remux(f"both{k}.ts", both, film(f"part{k}.ts", first=100 * k), longer))
    path = joined(tmp_path / "tracks.ts", *parts)
    asset = kit.facts(path)
    assert asset.flags == ("clock_reset",)
    for number in range(2):
        speech = SpeechOptions(transcriber="faster-whisper", model="any", audio_index=number)
        found = films.find(path, listened_to(pool, path, asset, speech, timeout_s=60))
        assert found.picture_error_us() <= FRAME_US
        assert len(found.clicks_us) >= 13
        assert found.click_error_us() <= SOUND_US


def test_a_short_recording_twice_follows_itself(kit, film: Film, tmp_path: Path) -> None:
    parts = [film(f"short{k}.ts", first=20 * k, seconds=0.8) for k in range(2)]
    path = joined(tmp_path / "short.ts", *parts)
    found = films.find(path, kit.facts(path))
    assert len(found.pictures) >= 39
    assert found.picture_error_us() <= FRAME_US


def test_a_hole_stays_a_hole(kit, film: Film, remux, tmp_path: Path) -> None:
    later = remux("later.ts", "-i {} -output_ts_offset 60", film("part1.ts", first=100))
    path = joined(tmp_path / "hole.ts", film("part0.ts"), later)
    asset = kit.facts(path)
    found = films.find(path, asset)
    second = [(number, time) for number, time in found.pictures if number >= 100]
    assert asset.flags == ()
    assert max(abs((number - 100) * FRAME_US + 60 * US - time) for number, time in second) <= 2 * US
    assert asset.duration_us == pytest.approx(64 * US, abs=2 * US)


@pytest.mark.parametrize("container", ["ts", "mkv", "webm", "flv"])
def test_a_recording_in_progress_only_grows(kit, film: Film, tmp_path: Path, container: str) -> None:
    content = film(f"film.{container}").read_bytes()
    before: list[tuple[int, int]] = []
    path = tmp_path / f"growing.{container}"
    for share in (0.4, 0.7, 1.0):
        path.write_bytes(content[: int(len(content) * share)])
        asset = kit.facts(path)
        found = films.find(path, asset)
        # The last pictures of a recording may still lack those that lie between them.
        assert set(before) <= set(found.pictures)
        assert found.picture_error_us() == 0
        assert found.pictures[-1][1] < asset.duration_us
        assert len(found.pictures) > len(before)
        before = found.pictures
    assert len(before) >= 99


def track(times_s: list[float], container: str = "matroska,webm") -> ClockTrack:
    clock = ClockTrack(Fraction(1, 1000), container)
    for number, time in enumerate(times_s):
        clock.add(number, round(time * 1000), round(time * 1000), 100)
    align(clock, None)
    return clock


def on_timeline(clock: ClockTrack, times_s: list[float]) -> list[float]:
    shifts = clock.clock_shifts
    ticks = [max((s for s in shifts if s.packet <= n), key=lambda s: s.packet) for n in range(len(times_s))]
    return [round(time + shift.ticks / 1000, 3) for time, shift in zip(times_s, ticks, strict=True)]


def test_a_wild_time_moves_nothing_after_it() -> None:
    times = [0.0, 0.1, 0.2, 999_999.0, 0.4, 0.5, 0.6]
    clock = track(times)
    assert on_timeline(clock, times) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_a_healthy_clock_is_never_touched() -> None:
    assert track([0.0, 0.1, 0.2, 3.0, 3.1, 5000.0]).clock_shifts == ()
    assert track([1.0, 1.1, 1.05, 1.15]).clock_shifts == ()
    assert track([0.0, 1.0, 2.0, 1.5, 2.5, 3.5]).clock_shifts == ()


def test_sound_goes_with_the_picture_and_waits_for_no_tail() -> None:
    picture, sound = (ClockTrack(Fraction(1, 1000), "mpegts") for _ in range(2))
    for number in range(80):
        time = 50 * (number % 40)
        picture.add(number, time, time, 50)
    for number in range(60):
        time = 20 + 100 * (number % 30)
        sound.add(number, time, time, 100)
    assert align(picture, sound)
    # The sound of the first part ends 1.02 s after its picture: all but 0.1 s of it stays.
    shifts = {name: clock.clock_shifts[-1].ticks for name, clock in (("p", picture), ("s", sound))}
    assert shifts == {"p": 2920, "s": 2920}


@pytest.mark.parametrize("ticks", [0, 1, -1, 3, 90_000, -90_001, 2**33])
def test_microseconds_are_the_nearest(ticks: int) -> None:
    assert abs(to_us(ticks, Fraction(1, 90_000)) - Fraction(ticks * US, 90_000)) <= Fraction(1, 2)
