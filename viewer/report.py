"""Report pages: one HTML file that shows what a catalog holds of a video, without network access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UsageError
from evicat.storage.create import check_not_within
from evicat.storage.files import write_durably

from .page_data import VideoPage, video_page
from .page_html import content_policy, environment, static_script, static_text
from .report_pictures import PAGE_BYTES, Pictures, take_pictures

MARK: Final = b'<meta name="generator" content="evicat report">'
"""Stands near the beginning of every report, and tells it from other files."""
_BEGINNING: Final = 4096


@dataclass(frozen=True, slots=True)
class Report:
    """A page as it was made. ``problem``: why pictures are missing; empty where none is."""

    page: VideoPage
    html: str
    pictures: int
    problem: str


def video_report(
    catalog: Catalog,
    video: str,
    *,
    pictures: bool = True,
    media_roots: Sequence[str | Path] = (),
    library: str = "",
) -> Report:
    """The report page of a video.

    Args:
        pictures: Whether cited frames are decoded and shown.
        media_roots: Folders to look for the file in, where it is not where it was.
        library: Address of the page of all videos, which this one links to; empty: none.

    Raises:
        UsageError: no video has this name, or it is the end of several.
    """
    page = video_page(catalog, video)
    bare = _rendered(page, library, Pictures())
    taken = Pictures(note="This page was made without pictures.")
    if pictures:
        taken = take_pictures(catalog, page, PAGE_BYTES - len(bare.encode()), media_roots)
    return Report(page, _rendered(page, library, taken), len(taken.by_pts), taken.problem)


def _rendered(page: VideoPage, library: str, pictures: Pictures) -> str:
    values = {"page": page, "data": page.as_json(), "pictures": pictures.as_json(), "library": library}
    return render("report_video.html", "page.js", **values)


def render(template: str, script: str, **values: Any) -> str:
    """A page with its style and script in it, and a policy that allows nothing else."""
    style, code = static_text("page.css"), static_script(script)
    policy = content_policy(style, code)
    return environment().get_template(template).render(policy=policy, style=style, script=code, **values)


def check_free(path: Path) -> None:
    """Look whether a page can take the place of what is at ``path``.

    Raises:
        UsageError: that is something else than a report, or lies inside a catalog.
    """
    check_not_within(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file that is to be written, such as page.html")
    if path.exists() and not (path.is_file() and is_report(path)):
        raise UsageError(f"{path} exists and is not a report page; choose another name, or remove it")


def write_report(path: Path, html: str) -> None:
    """Write a page whole or not at all.

    Raises:
        UsageError: ``path`` is not free for a report, or it or its folder cannot be written.
    """
    check_free(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{path.parent} is not a folder, so no page can be written there") from None
    try:
        write_durably(path, html.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; name another place") from None


def is_report(path: Path) -> bool:
    """Whether a file was written by :func:`write_report`."""
    with path.open("rb") as stream:
        return MARK in stream.read(_BEGINNING)
