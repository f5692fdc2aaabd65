"""Memory for a film of ten hours, against one of ten minutes: at most 200 MB more.

Both are indexed by the command line, and the memory of all processes of the run is read ten times a second.
The first recipe loads no weights; the second listens: tones and silence go through the detector of voices, in
which Whisper finds nothing to do. What is measured is what grows with the length.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from media import FFMPEG
from sides import end, keep

BOUND_MB = 200
RECIPE = """
name = "long"
[[scales]]
kind = "local"
window_seconds = 10
describer = "sight"
frames = { per_window = 4, max_width = 64 }
options = { ocr_frames = 0 }
"""
LISTENING = f"""{RECIPE}
[speech]
subtitles = "never"
transcriber = "faster-whisper"
model = "packaged:whisper-tiny.en"
"""


def film(path: Path, minutes: int) -> None:
    """One grey picture every 10 s, and a tone that comes and goes."""
    seconds = minutes * 60
    pictures = ["-f", "lavfi", "-i", f"color=gray:s=64x64:r=1/10:d={seconds}"]
    tone = f"aevalsrc=0.2*sin(440*2*PI*t)*lt(mod(t\\,20)\\,10):s=16000:d={seconds}"
    encode = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "ultrafast", "-c:a", "aac", "-b:a", "24k"]
    subprocess.run([*FFMPEG, *pictures, "-f", "lavfi", "-i", tone, *encode, str(path)], check=True)


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue  # it has ended
    return found


def _resident_mb(pid: int) -> float:
    pages = 0
    for each in _family(pid):
        try:
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb(path: Path, folder: Path, name: str, recipe: str) -> float:
    """Largest memory of all processes together while ``path`` is indexed."""
    (folder / "long.toml").write_text(recipe)
    command = [sys.executable, "-m", "evicat.flows.cli", "index", str(path)]
    options = ["--catalog", str(folder / f"{path.stem}-{name}"), "--recipe", str(folder / "long.toml")]
    run = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
    peak = 0.0
    while run.poll() is None:
        peak = max(peak, _resident_mb(run.pid))
        time.sleep(0.1)
    if run.returncode:
        sys.exit(f"indexing {path.name} ended with exit code {run.returncode}")
    return peak


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        within = []
        for label, minutes in (("short", 10), ("long", 600)):
            film(folder / f"{label}.mp4", minutes)
        for what, recipe in (("pictures", RECIPE), ("pictures and sound", LISTENING)):
            peaks = {
                label: peak_mb(folder / f"{label}.mp4", folder, what, recipe) for label in ("short", "long")
            }
            over = peaks["long"] - peaks["short"]
            both = f"{peaks['long']:.0f} MB - {peaks['short']:.0f} MB"
            print(
                f"{what}, ten hours over ten minutes: {both} = {over:+.0f} MB (bound {BOUND_MB})", flush=True
            )
            keep(
                f"memory for ten hours / ten minutes, MB: {what}",
                {"over_mb": over, "bound": BOUND_MB, **peaks},
            )
            within.append(over <= BOUND_MB)
    end(*within)


if __name__ == "__main__":
    main()
