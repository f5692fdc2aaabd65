"""The identity of a file is its bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from evicat.catalog.media.identity import hash_file
from evicat.schemas.errors import UnreadableMediaError


def test_identity_is_the_first_half_of_sha256(tmp_path: Path) -> None:
    content = os.urandom(3_000_001)
    (tmp_path / "a.mp4").write_bytes(content)
    assert hash_file(tmp_path / "a.mp4") == (hashlib.sha256(content).hexdigest()[:32], 3_000_001)


def test_the_name_does_not_matter(tmp_path: Path) -> None:
    for name in ("a.mp4", "b:c.mp4"):
        (tmp_path / name).write_bytes(b"same")
    assert hash_file(tmp_path / "a.mp4") == hash_file(tmp_path / "b:c.mp4")


@pytest.mark.parametrize(("name", "reason"), [("gone.mp4", "No such file"), ("folder.mp4", "Is a directory")])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(UnreadableMediaError, match=rf"{name}: {reason}"):
        hash_file(tmp_path / name)
