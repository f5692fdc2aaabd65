"""Identity of a media file: its bytes, whatever its name."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from evicat.schemas.errors import OutOfReachError


def hash_file(path: Path) -> tuple[str, int]:
    """Read a file once; its ``asset_id`` (32 hexadecimal digits: 128 bits of SHA-256) and size in bytes.

    Raises:
        OutOfReachError: the path is no file, or cannot be read; names the path and the reason.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return digest.hexdigest()[:32], os.fstat(file.fileno()).st_size
    except OSError as error:
        raise OutOfReachError(f"{path}: {error.strerror}") from None
