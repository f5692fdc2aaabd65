"""A damaged file gives the same frames on every machine, however many threads its decoder takes there."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from evicat.catalog.media import pyav_decoder, streams
from evicat.catalog.media.frames import Selection, Wanted, frame_times
from evicat.catalog.media.losses import Losses
from evicat.schemas.asset import Asset
from evicat.schemas.grid import windows
from evicat.schemas.span import US

Frames = dict[int, list[tuple[int, str]]]

CLIPS = {
    "h264.mkv": "-c:v libx264 -g 25 -bf 2",
    "h264.ts": "-c:v libx264 -g 25 -bf 2",
    "hevc.mkv": "-c:v libx265 -x265-params log-level=none:keyint=25",
    "mpeg4.mkv": "-c:v mpeg4 -g 25",
    "vp8.webm": "-c:v libvpx -g 25 -deadline realtime -cpu-used 8",
    "vp9.webm": "-c:v libvpx-vp9 -g 25 -deadline realtime -cpu-used 8",
}
NOISE = "-f lavfi -i testsrc2=s=64x64:r=25:d=5,noise=alls=40:allf=t -pix_fmt yuv420p -b:v 400k {}"


def hurt(whole: Path, path: Path, seed: int) -> Path:
    """A copy in which some stretches of bytes are others."""
    chance = random.Random(seed)
    content = bytearray(whole.read_bytes())
    for _ in range(chance.choice([1, 4, 12])):
        length = chance.choice([1, 3, 20, 200, 900])
        at = chance.randrange(3000, len(content) - 1000)
        content[at : at + length] = chance.randbytes(length)
    path.write_bytes(content)
    return path


def look(path: Path, asset: Asset, seconds: float) -> Frames:
    """PTS and picture of two frames of every window."""
    spans = windows(asset.duration_us, round(seconds * US))
    selection = Selection([Wanted(span, frame_times(span, 2), 64) for span in spans])
    found: Frames = {}
    for step in pyav_decoder.decode(path, asset, selection):
        if step is not None:
            index, frames = step
            found[index] = [(f.pts, hashlib.sha256(f.image.tobytes()).hexdigest()) for f in frames]
    return found


@pytest.fixture
def with_threads(monkeypatch) -> Callable[[int], None]:
    """``with_threads(4)``: decoders are as on a machine of 4 cores."""

    def run(count: int) -> None:
        def only(container, index: int):
            stream = streams.only(container, index)
            stream.codec_context.thread_count = count
            return stream

        monkeypatch.setattr(pyav_decoder, "only", only)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIPS)
def test_the_number_of_threads_changes_no_frame(make, kit, tmp_path, with_threads, name: str) -> None:
    whole = make(f"noise_{name}", NOISE.format(CLIPS[name]))
    for seed in range(3):
        path = hurt(whole, tmp_path / name, seed)
        asset = kit.facts(path)
        for seconds in (0.5, 4):
            found: list[Frames] = []
            for count in (1, 2, 4, 8):
                with_threads(count)
                found.append(look(path, asset, seconds))
            assert all(each == found[0] for each in found), (seed, seconds)


@pytest.mark.parametrize("name", ["h264.mkv", "vp9.webm"])
def test_a_whole_file_is_decoded_once(make, kit, monkeypatch, name: str) -> None:
    path = make(f"noise_{name}", NOISE.format(CLIPS[name]))
    asset = kit.facts(path)
    opened: list[Path] = []
    monkeypatch.setattr(
        pyav_decoder, "open_media", lambda path: opened.append(path) or streams.open_media(path)
    )
    for seconds in (0.5, 4):
        look(path, asset, seconds)
    assert len(opened) == 2


def test_damage_near_the_end_costs_only_the_end(make, kit, tmp_path, monkeypatch) -> None:
    whole = make("noise_h264.mp4", NOISE.format(CLIPS["h264.mkv"]))
    content = bytearray(whole.read_bytes())
    with av.open(str(whole)) as container:
        broken = [packet for packet in container.demux(video=0) if packet.size][110]
    content[broken.pos + 20 : broken.pos + broken.size] = bytes(broken.size - 20)
    path = tmp_path / "late_damage.mp4"
    path.write_bytes(content)
    asset = kit.facts(path)
    careful: list[int] = []
    real = streams.decode_packet

    def counted(codec, packet, damage):
        if codec.thread_count == 1:
            careful.append(1)
        return real(codec, packet, damage)

    monkeypatch.setattr(pyav_decoder, "decode_packet", counted)
    look(path, asset, 0.5)
    assert 0 < len(careful) < 100  # of 125 packets


def test_a_packet_that_is_overtaken_or_left_over_is_lost() -> None:
    losses = Losses()
    for pts in (0, 120, 40, 80):
        losses.fed(pts)
    for pts in (0, 40):
        losses.came(pts, is_field=False)
    assert not losses.seen
    losses.came(120, is_field=False)
    assert losses.seen
    left = Losses()
    left.fed(0)
    left.fed(40)
    left.came(0, is_field=False)
    left.drained()
    assert left.seen


def test_fields_and_what_is_shown_before_the_first_frame_are_not_missed() -> None:
    leading = Losses()
    for pts in (100, 60, 80, 140):
        leading.fed(pts)
    for pts in (100, 140):
        leading.came(pts, is_field=False)
    leading.drained()
    assert not leading.seen
    fields = Losses()
    for pts in (0, 20, 40, 60):
        fields.fed(pts)
    for pts in (0, 40):
        fields.came(pts, is_field=True)
    fields.drained()
    assert not fields.seen
