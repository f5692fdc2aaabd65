"""Files that are there whole or not at all, also after a crash."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make new, renamed and removed names of ``folder`` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, content: bytes) -> None:
    """Replace ``path``; readers see the old or the new file, never a mixture."""
    unnamed = path.with_name(f".{path.name}.tmp")
    try:
        with unnamed.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        unnamed.replace(path)
    except OSError:  # half of it would only fill a full disk further
        unnamed.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
