"""Memory for a film of ten hours, against one of ten minutes: at most 200 MB more.

Both are indexed by the command line, and the memory of all processes of the run is
read ten times a second. The recipe loads no weights: what is measured is what grows with the length.
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


def film(path: Path, minutes: int) -> None:
    """One grey picture every 10 s."""
    seconds = minutes * 60
    pictures = ["-f", "lavfi", "-i", f"color=gray:s=64x64:r=1/10:d={seconds}"]
    encode = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "ultrafast"]
    subprocess.run([*FFMPEG, *pictures, *encode, str(path)], check=True)


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


def peak_mb(path: Path, folder: Path) -> float:
    """Largest memory of all processes together while ``path`` is indexed."""
    (folder / "long.toml").write_text(RECIPE)
    command = [sys.executable, "-m", "evicat.flows.cli", "index", str(path)]
    options = ["--catalog", str(folder / path.stem), "--recipe", str(folder / "long.toml")]
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
        peaks = {}
        for label, minutes in (("short", 10), ("long", 600)):
            path = folder / f"{label}.mp4"
            film(path, minutes)
            peaks[label] = peak_mb(path, folder)
            print(f"{minutes} min: {peaks[label]:.0f} MB", flush=True)
    over = peaks["long"] - peaks["short"]
    print(f"ten hours over ten minutes: {over:+.0f} MB (bound {BOUND_MB})")
    keep("memory for ten hours / ten minutes, MB", {"over_s": over, "bound": BOUND_MB, **peaks})
    end(over <= BOUND_MB)


if __name__ == "__main__":
    main()
