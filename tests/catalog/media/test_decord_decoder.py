"""Where decord shows what PyAV shows, and which files are refused because it would not."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from evicat.catalog.media.frames import Wanted, decode_windows
from evicat.catalog.media.loaders import load_decoder
from evicat.schemas.errors import AssetError, MissingExtraError
from evicat.schemas.span import Span

STEP_US = 40_000
REASONS = {
    "twovid.mkv": "several picture streams",
    "cover_attach.mkv": "several picture streams",
    "hflip.mp4": "mirrored",
    "rot90_hflip.mp4": "mirrored",
    "hdr.mp4": "yuv420p10le.*more than 8 bits",
    "edts.mp4": "does not decode",
    "moving.gif": "decord cannot read it",
}


@pytest.fixture(scope="module", autouse=True)
def decord():
    return pytest.importorskip("decord", reason="the decoder 'decord' needs the package 'decord'")


def frames_of(path: Path, asset, decoder: str, max_width: int = 4096):
    whole = Span(0, asset.duration_us)
    wanted = Wanted(whole, tuple(range(0, whole.end_us, STEP_US)), max_width)
    ((_, frames),) = decode_windows(path, asset, [wanted], decoder=decoder)
    return frames


@pytest.mark.parametrize(
    "name",
    [
        *("vfr.mp4", "late.mp4", "hole.mkv", "full.avi", "subs.webm"),
        *("rot90.mp4", "rot180.mp4", "bt709.mp4"),
    ],
)
def test_frames_are_those_of_pyav(make, kit, name: str) -> None:
    path = make(name)
    asset = kit.facts(path)
    ours, others = (frames_of(path, asset, decoder) for decoder in ("decord", "pyav"))
    assert [frame.pts for frame in ours] == [frame.pts for frame in others]
    assert all(np.array_equal(a.image, b.image) for a, b in zip(ours, others, strict=True))


@pytest.mark.parametrize("max_width", [300, 64])
def test_scaled_pictures_differ_by_little(make, kit, max_width: int) -> None:
    path = make("smooth.mkv", "-f lavfi -i gradients=s=640x360:r=25:d=1:seed=5 -c:v libx264 -pix_fmt yuv420p")
    asset = kit.facts(path)
    pairs = zip(*(frames_of(path, asset, decoder, max_width) for decoder in ("decord", "pyav")), strict=True)
    differences = [np.abs(a.image.astype(int) - b.image) for a, b in pairs]
    assert max(difference.mean() for difference in differences) < 2
    assert max(difference.max() for difference in differences) < 12


@pytest.mark.parametrize("name", sorted(REASONS))
def test_what_decord_would_show_wrongly_is_refused(make, kit, name: str) -> None:
    path = make(name)
    with pytest.raises(AssetError, match=f"{name}: .*{REASONS[name]}.*use the decoder 'pyav'"):
        frames_of(path, kit.facts(path), "decord")


def test_frames_after_one_that_does_not_decode_are_refused(make, kit, tmp_path: Path) -> None:
    """decord would show all later frames two places too early."""
    source, path = (
        make("b.mp4", "-f lavfi -i testsrc2=s=64x64:r=25:d=4 -c:v mpeg4 -g 12 -bf 2"),
        tmp_path / "x.mkv",
    )
    with av.open(str(source)) as whole, av.open(str(path), "w") as rest:
        stream = rest.add_stream_from_template(whole.streams.video[0])
        for number, packet in enumerate(whole.demux(video=0)):
            if packet.size and number not in (40, 50):
                packet.stream = stream
                rest.mux(packet)
    asset = kit.facts(path)
    with pytest.raises(AssetError, match=r"its frame at \d\.\d+ s does not decode"):
        frames_of(path, asset, "decord")
    before = Wanted(Span(0, 1_000_000), (0, 500_000), 64)
    both = [dict(decode_windows(path, asset, [before], decoder=name))[0] for name in ("decord", "pyav")]
    assert [frame.pts for frame in both[0]] == [frame.pts for frame in both[1]]


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evicat.catalog.media.loaders.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"decord is not installed; .*evicat\[decord\]"):
        load_decoder("decord")
