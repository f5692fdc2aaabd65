"""Paths as users write them, and texts that name none of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .errors import UsageError

_FOLDERS = re.compile(r"(?<![\w./:])(?!(?<=<)/\w+>)(?:/[^\s/:'\"<>|]+)*/(?=[^\s/:'\"<>|])")
"""The folders of an absolute path in a text. (What follows the host of a URL is no such path, nor is the end
of a tag.)"""


def expanded(path: str | Path) -> Path:
    """``path`` with the home folder that its ``~`` or ``~name`` stands for.

    Raises:
        UsageError: nobody here has that home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        start = Path(path).parts[0]
        raise UsageError(
            f"{str(path)!r} begins with {start}, and there is no such home folder; write ./{start} for a "
            "folder of this name"
        ) from None


def without_folders(text: str, locations: Iterable[str] = ()) -> str:
    """``text`` whose absolute paths are cut to the names of their files.

    Args:
        locations: Folders, or files in them, that may stand in it; a name with spaces is known only so.
    """
    folders = {place for each in locations if each for place in (each, str(Path(each).parent))}
    for folder in sorted(folders - {"/", "."}, key=lambda folder: (-len(folder), folder)):
        text = text.replace(f"{folder.rstrip('/')}/", "")
    return _FOLDERS.sub("", text)
