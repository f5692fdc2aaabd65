"""Bytes that only look like media by chance are refused; odd but real files are not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evicat.catalog.media import MEDIA_SUFFIXES
from evicat.catalog.media.formats import check_format
from evicat.catalog.media.probe import probe
from evicat.schemas.errors import UnreadableMediaError


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(UnreadableMediaError) as caught:
        probe(path, asset_id="0" * 32, size_bytes=len(content))
    return str(caught.value)


def test_random_bytes_are_never_media(tmp_path: Path) -> None:
    suffixes = sorted(MEDIA_SUFFIXES)
    for seed in range(200):
        dice = random.Random(seed)
        path = tmp_path / f"random{suffixes[seed % len(suffixes)]}"
        size = int(2 ** dice.uniform(4, 18))
        assert path.name in refusal(path, dice.randbytes(size))


@pytest.mark.parametrize(
    ("seed", "suffix", "guess"), [(404, ".oga", "cdg"), (580, ".avi", "ea_cdata"), (404, "", "cdg")]
)
def test_a_chance_likeness_is_refused_and_named(tmp_path: Path, seed: int, suffix: str, guess: str) -> None:
    dice = random.Random(seed)
    size = int(2 ** dice.uniform(4, 19))
    assert f"may be '{guess}', its name says otherwise" in refusal(
        tmp_path / f"random{suffix}", dice.randbytes(size)
    )


def test_a_raw_stream_in_which_little_decodes_is_refused(tmp_path: Path) -> None:
    assert "decodes" in refusal(tmp_path / "noise.m4v", random.Random(1).randbytes(100_000))


@pytest.mark.parametrize("name", ["film.avi", "film", "film.MOV", "film.bin"])
def test_containers_are_known_by_their_content_alone(make, kit, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(make("wide.mp4").read_bytes())
    assert kit.facts(tmp_path / name).video.frame_count == 50


@pytest.mark.parametrize("name", ["song.mp3", "song.m4a", "song"])
def test_a_song_may_have_another_name(make, kit, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(make("real.mp3", "-f lavfi -i sine=d=1").read_bytes())
    assert kit.facts(tmp_path / name).container == "mp3"


@pytest.mark.parametrize("name", ["image2", "png_pipe", "hls", "concat", "sdp"])
def test_pictures_and_lists_are_no_media(name: str) -> None:
    with pytest.raises(UnreadableMediaError, match=rf"x\.mp4: not a video or sound file, but '{name}'"):
        check_format(Path("x.mp4"), name)


def test_a_name_may_vouch_for_a_format_without_signature() -> None:
    check_format(Path("disc.cdg"), "cdg")
    with pytest.raises(UnreadableMediaError, match=r"end its name with \.cdg"):
        check_format(Path("disc.mp4"), "cdg")
