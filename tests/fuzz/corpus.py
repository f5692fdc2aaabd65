"""Small valid files of many containers, and files that were damaged at random but always alike."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

from imageio_ffmpeg import get_ffmpeg_exe

FILMS = Path(__file__).parents[1] / "catalog" / "media" / "films.py"
SUFFIXES = ("mp4", "mov", "mkv", "webm", "ts", "mpg", "avi", "flv", "nut")
SRT = "1\n00:00:00,200 --> 00:00:01,000\nHello\n\n2\n00:00:01,100 --> 00:00:01,500\nthere\n"
_MOST_BYTES = 300_000


def write_seeds(folder: Path) -> list[Path]:
    """Valid files: pictures and sound in every container, with text, sound alone, side-car subtitles."""
    spec = importlib.util.spec_from_file_location("evicat_test_films", FILMS)
    films = sys.modules["evicat_test_films"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(films)
    seeds = [films.write_film(folder / f"film.{suffix}", seconds=1.6) for suffix in SUFFIXES]
    (folder / "text.srt").write_text(SRT)
    extra = {
        "text.mkv": "-i film.mkv -i text.srt -map 0 -map 1 -c copy",
        "text.mp4": "-i film.mp4 -i text.srt -map 0 -map 1 -c copy -c:s mov_text",
        "pieces.mp4": "-i film.mp4 -c copy -movflags frag_keyframe+empty_moov",
        "fast.mp4": "-i film.mp4 -c copy -movflags +faststart",
        "sound.mp3": "-i film.mkv -vn",
        "sound.flac": "-i film.mkv -vn",
        "sound.ogg": "-i film.mkv -vn -c:a libopus",
        "sound.wav": "-i film.mkv -vn",
        "sound.aac": "-i film.mp4 -vn -c copy",
        "moving.gif": "-i film.mkv -an",
    }
    for name, words in extra.items():
        command = [get_ffmpeg_exe(), "-v", "error", "-y", *words.split(), name]
        subprocess.run(command, check=True, cwd=folder)
        seeds.append(folder / name)
    return [*seeds, folder / "text.srt"]


def damaged(seeds: list[Path], case: int, folder: Path) -> Path:
    """The ``case``-th damaged file, written to ``folder``."""
    dice = random.Random(case)
    seed = seeds[case % len(seeds)]
    content = bytearray(seed.read_bytes())
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        content = dice.choice(_DAMAGES)(content, dice, seeds)
    path = folder / f"case{case}{seed.suffix}"
    path.write_bytes(content[:_MOST_BYTES])
    return path


def _at(content: bytearray, dice: random.Random) -> int:
    """A position; every other one near the beginning, where the headers are."""
    end = max(1, len(content) if dice.random() < 0.5 else min(len(content), 2000))
    return dice.randrange(end)


def _flip(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    for _ in range(dice.choice((1, 2, 5, 20, 100))):
        if content:
            content[_at(content, dice)] = dice.choice((0, 0xFF, 0x7F, dice.randrange(256)))
    return content


def _cut(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    return content[: _at(content, dice)]


def _behead(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    return content[_at(content, dice) :]


def _drop(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    start = _at(content, dice)
    return content[:start] + content[start + dice.choice((1, 188, 1000, 5000)) :]


def _zero(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    start = _at(content, dice)
    length = min(dice.choice((4, 64, 2000)), len(content) - start)
    content[start : start + length] = bytes(max(0, length))
    return content


def _repeat(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    start = _at(content, dice)
    return content[:start] + content[: dice.randrange(len(content) + 1)] + content[start:]


def _splice(content: bytearray, dice: random.Random, seeds: list[Path]) -> bytearray:
    other = dice.choice(seeds).read_bytes()
    return content[: _at(content, dice)] + other[dice.randrange(len(other)) :]


def _noise(content: bytearray, dice: random.Random, _: list[Path]) -> bytearray:
    start = _at(content, dice)
    return content[:start] + dice.randbytes(dice.choice((1, 8, 500))) + content[start:]


_DAMAGES = (_flip, _flip, _flip, _cut, _behead, _drop, _zero, _repeat, _splice, _noise)
