"""Every sample lies where its PTS says: bursts at known instants are found at those instants."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from evicat.catalog.media.audio import read_audio, read_audio_isolated
from evicat.schemas.span import US, Span

RATE = 16_000
FRAME = 1024


def bursts(seconds: float, rate: int) -> np.ndarray:
    """Silence with 10 ms of 1 kHz from every half second on."""
    samples = np.zeros(round(seconds * rate), np.float32)
    burst = 0.8 * np.sin(2 * np.pi * 1000 * np.arange(rate // 100) / rate)
    for half in range(1, int(seconds * 2)):
        start = half * rate // 2
        samples[start : start + len(burst)] = burst[: len(samples) - start]
    return samples


def write_bursts(
    path: Path,
    stretches: Iterable[tuple[float, float]],
    *,
    codec: str = "pcm_s16le",
    rate: int = 44_100,
    layout: str = "mono",
    jitter_ms: int = 0,
    shift_s: float = 0.0,
) -> Path:
    """Sound of the given stretches of seconds; the rest of the timeline has no packets."""
    random = np.random.default_rng(1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        size = stream.codec_context.frame_size or FRAME
        kind = stream.codec_context.format.name if codec != "pcm_s16le" else "s16"
        resampler = av.AudioResampler(format=kind, layout=layout, rate=rate, frame_size=size)
        for start, end in stretches:
            whole = bursts(end, rate)[round(start * rate) :]
            for at in range(0, len(whole) - size + 1, size):
                frame = av.AudioFrame.from_ndarray(whole[None, at : at + size], format="flt", layout="mono")
                frame.sample_rate, frame.time_base = rate, Fraction(1, rate)
                for converted in resampler.resample(frame):
                    jitter = int(random.integers(-jitter_ms, jitter_ms + 1)) * rate // 1000 if at else 0
                    converted.pts = round((start + shift_s) * rate) + at + jitter
                    converted.time_base = Fraction(1, rate)
                    container.mux(stream.encode(converted))
        container.mux(stream.encode(None))
    return path


def found(samples: np.ndarray) -> list[float]:
    """Seconds at which bursts begin."""
    loud = np.flatnonzero(np.abs(samples) > 0.2)
    starts = loud[np.flatnonzero(np.diff(loud, prepend=-RATE) > RATE // 20)]
    return [int(start) / RATE for start in starts]


def whole(path: Path, asset) -> np.ndarray:
    pieces = list(read_audio(path, asset))
    at = 0
    for piece in pieces:
        assert piece.start_us * RATE == at * US
        assert piece.samples.dtype == np.float32
        at += len(piece.samples)
    assert all(10 * RATE <= len(piece.samples) <= 30 * RATE for piece in pieces[:-1])
    assert at * US <= asset.duration_us * RATE
    return np.concatenate([piece.samples for piece in pieces])


@pytest.mark.parametrize(
    ("name", "options", "tolerance"),
    [
        ("mono.mkv", {}, 0.002),
        ("same.mkv", {"rate": 16_000}, 0.002),
        ("low.mkv", {"rate": 8_000}, 0.002),
        ("stereo.flac", {"codec": "flac", "rate": 48_000, "layout": "stereo"}, 0.002),
        ("six.mkv", {"codec": "flac", "rate": 48_000, "layout": "5.1"}, 0.002),
        ("lossy.mp4", {"codec": "aac"}, 0.01),
        ("lossy.mp3", {"codec": "libmp3lame"}, 0.01),
        ("lossy.webm", {"codec": "libopus", "rate": 48_000}, 0.01),
    ],
)
def test_bursts_are_where_they_were_made(kit, tmp_path: Path, name: str, options, tolerance: float) -> None:
    path = write_bursts(tmp_path / name, [(0, 4)], **options)
    asset = kit.facts(path)
    samples = whole(path, asset)
    assert found(samples) == pytest.approx([k / 2 for k in range(1, 8)], abs=tolerance)
    assert len(samples) / RATE == pytest.approx(4, abs=0.08)


def test_gaps_are_silence_and_move_nothing(kit, tmp_path: Path) -> None:
    path = write_bursts(tmp_path / "gap.mkv", [(0, 2), (5, 8), (9.2, 10)])
    samples = whole(path, kit.facts(path))
    assert found(samples) == pytest.approx([0.5, 1, 1.5, 5, 5.5, 6, 6.5, 7, 7.5, 9.5], abs=0.002)
    assert not samples[int(2.1 * RATE) : int(4.9 * RATE)].any()
    assert len(samples) / RATE == pytest.approx(10, abs=0.03)


def test_a_gap_beside_a_picture(make, kit) -> None:
    path = make("aud_gap.mkv")
    asset = kit.facts(path)
    samples = whole(path, asset)
    assert asset.duration_us == len(samples) * US // RATE == 8 * US
    assert not samples[int(2.1 * RATE) : int(4.9 * RATE)].any()
    loud = np.abs(samples).reshape(-1, RATE // 20).max(axis=1) > 0.05
    assert [bool(each) for each in loud[[6 * 20 - 1, 6 * 20, 7 * 20 + 19]]] == [True, True, True]
    assert np.flatnonzero(loud[42:])[0] * 0.05 + 2.1 == pytest.approx(5, abs=0.05)


def test_small_jitter_changes_no_sample(kit, tmp_path: Path) -> None:
    steady = write_bursts(tmp_path / "steady.mkv", [(0, 6)])
    jittery = write_bursts(tmp_path / "jittery.mkv", [(0, 6)], jitter_ms=9)
    one, other = whole(steady, kit.facts(steady)), whole(jittery, kit.facts(jittery))
    length = min(len(one), len(other))
    assert abs(len(one) - len(other)) <= RATE // 50
    assert np.array_equal(one[:length], other[:length])


def test_overlapping_packets_are_not_doubled(kit, tmp_path: Path) -> None:
    parts = [
        write_bursts(tmp_path / f"{start}.ts", [(start, start + 3)], codec="mp2", rate=48_000)
        for start in (0, 2)
    ]
    path = tmp_path / "overlap.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    starts = found(whole(path, kit.facts(path)))
    assert starts == pytest.approx([k / 2 for k in range(1, 10)], abs=0.03)


def test_sound_that_starts_late_follows_silence(make, kit) -> None:
    path = make("aud_off.mkv")
    asset = kit.facts(path)
    samples = whole(path, asset)
    assert not samples[: int(3.99 * RATE)].any()
    assert samples[int(4.0 * RATE) : int(4.1 * RATE)].any()
    assert len(samples) / RATE == pytest.approx(7, abs=0.002)


def with_picture(kit, tmp_path: Path, ffmpeg: Path, *, picture_at: float) -> Path:
    """Bursts from 0 s on beside a picture that starts later or earlier."""
    sound = write_bursts(tmp_path / "sound.mkv", [(0, 4)])
    command = [ffmpeg, "-v", "error", "-y", "-itsoffset", str(picture_at), "-f", "lavfi"]
    command += ["-i", "testsrc2=s=64x64:r=25:d=3", "-i", sound, "-map", "0", "-map", "1", "-c:v", "libx264"]
    subprocess.run([*command, "-c:a", "copy", tmp_path / "film.mkv"], check=True)
    return tmp_path / "film.mkv"


def test_sound_before_the_picture_is_left_out(kit, tmp_path: Path, ffmpeg: Path) -> None:
    path = with_picture(kit, tmp_path, ffmpeg, picture_at=1.2)
    asset = kit.facts(path)
    assert asset.flags == ("sound_before_picture",)
    expected = [half / 2 - 1.2 for half in range(3, 8)]
    assert found(whole(path, asset)) == pytest.approx(expected, abs=0.002)


def test_a_clip_has_its_part_of_the_sound(kit, tmp_path: Path, ffmpeg: Path) -> None:
    path = with_picture(kit, tmp_path, ffmpeg, picture_at=0)
    asset = kit.facts(path, clip=Span(1_110_000, 2_900_000))
    assert asset.origin_us == 1_120_000
    samples = whole(path, asset)
    assert found(samples) == pytest.approx([0.38, 0.88, 1.38], abs=0.002)
    assert len(samples) == asset.duration_us * RATE // US


def test_a_late_clip_is_decoded_from_where_it_begins(kit, tmp_path: Path) -> None:
    path = write_bursts(tmp_path / "long.mp4", [(0, 12)], codec="aac")
    full = whole(path, kit.facts(path))[7 * RATE : 11 * RATE]
    part = whole(path, kit.facts(path, clip=Span(7 * US, 11 * US)))
    assert len(part) == 4 * RATE
    assert found(part) == pytest.approx(found(full), abs=0.001)
    assert np.linalg.norm(part - full) < 0.2 * np.linalg.norm(full)


def test_long_sound_comes_in_pieces(kit, tmp_path: Path) -> None:
    path = write_bursts(tmp_path / "long.mkv", [(0, 21), (50, 65)], rate=16_000)
    asset = kit.facts(path)
    samples = whole(path, asset)
    assert [len(piece.samples) for piece in read_audio(path, asset)][:3] == [20 * RATE] * 3
    expected = [k / 2 for k in range(1, 42)] + [k / 2 for k in range(100, 130)]
    assert found(samples) == pytest.approx(expected, abs=0.002)


def test_the_format_may_change_on_the_way(kit, tmp_path: Path, ffmpeg: Path) -> None:
    content = b""
    for rate, channels, start in ((44_100, 1, 0), (48_000, 2, 2)):
        command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", f"sine=d=2:sample_rate={rate}", "-c:a", "aac"]
        command += ["-ac", str(channels), "-output_ts_offset", str(start), "-f", "mpegts", "pipe:1"]
        content += subprocess.run(command, check=True, capture_output=True).stdout
    (tmp_path / "change.ts").write_bytes(content)
    samples = whole(tmp_path / "change.ts", kit.facts(tmp_path / "change.ts"))
    assert len(samples) / RATE == pytest.approx(4, abs=0.1)
    for second in (0.5, 1.5, 2.5, 3.5):
        part = samples[int(second * RATE) : int((second + 0.25) * RATE)]
        assert np.argmax(np.abs(np.fft.rfft(part))) * 4 == pytest.approx(440, abs=4)


def test_no_sound_gives_no_pieces(make, kit) -> None:
    assert list(read_audio(make("wide.mp4"), kit.facts(make("wide.mp4")))) == []


def test_a_worker_gives_the_same(kit, pool, tmp_path: Path) -> None:
    path = write_bursts(tmp_path / "gap.mkv", [(0, 2), (30, 33)])
    asset = kit.facts(path)
    apart = list(read_audio_isolated(pool, path, asset, timeout_s=60))
    here = list(read_audio(path, asset))
    assert [piece.start_us for piece in apart] == [piece.start_us for piece in here]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(apart, here, strict=True))
