"""Films and sound for the benches, made from the sample clips."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from imageio_ffmpeg import get_ffmpeg_exe

sys.path.insert(0, str(Path(__file__).parents[1] / "demo"))
from samples import write_samples as write_samples

FFMPEG = [get_ffmpeg_exe(), "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]


def real_film(path: Path, minutes: int) -> None:
    """Real footage with real speech, 640x360: the interview and the street in turns."""
    folder = path.parent / "samples"
    write_samples(folder)
    scale = "scale=640:360:force_original_aspect_ratio=decrease,pad=640:360:-1:-1,fps=25,format=yuv420p"
    encode = ["-c:v", "libx264", "-preset", "veryfast", "-c:a", "aac", "-ar", "16000", "-ac", "1"]
    parts = []
    for name, sound in (
        ("interview", []),
        ("street", ["-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono", "-shortest"]),
    ):
        parts.append(path.with_name(f"{name}.ts"))
        source = ["-i", str(folder / f"{name}.mp4"), *sound]
        subprocess.run([*FFMPEG, *source, "-vf", scale, *encode, str(parts[-1])], check=True)
    both = "|".join(map(str, parts))
    loop = path.with_name("loop.mp4")
    subprocess.run([*FFMPEG, "-i", f"concat:{both}", "-c", "copy", str(loop)], check=True)
    again = ["-stream_loop", "-1", "-i", str(loop), "-t", str(minutes * 60), "-c", "copy", str(path)]
    subprocess.run([*FFMPEG, *again], check=True)


def conversation(folder: Path, minutes: float) -> npt.NDArray[np.float32]:
    """Speech of the sample conversation, over and over: 16 kHz mono float32."""
    import wave

    write_samples(folder)
    with wave.open(str(folder / "conversation.wav")) as sound:
        raw = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
    speech = raw[round(6.5 * 16_000) :].astype(np.float32) / 32768
    count = round(minutes * 60 * 16_000)
    return np.resize(speech, count)
