"""``evicat report``: pages to look at what a catalog holds, for one video or for all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from evicat.catalog.query import Catalog
from evicat.schemas.errors import UsageError
from evicat.schemas.places import expanded
from evicat.viewer.page_words import size_words
from evicat.viewer.report import check_free, video_report, write_report
from evicat.viewer.report_library import library_report, page_names

_PAGES = (".html", ".htm")


def report_video(
    catalog: Catalog, video: str, output: str, *, pictures: bool, media_roots: Sequence[str]
) -> bool:
    """Write the page of one video and say where it lies; whether all of its pictures could be had."""
    path = _page(output)
    check_free(path)
    made = video_report(catalog, video, pictures=pictures, media_roots=media_roots)
    write_report(path, made.html)
    size = size_words(path.stat().st_size)
    what = f"{len(made.page.entries)} entries and {made.pictures} pictures of {made.page.video}"
    Console(emoji=False).print(
        escape(f"{what} are in {path} ({size}); open it in a browser."), soft_wrap=True
    )
    _tell(made.page.video, made.problem)
    return not made.problem


def report_library(catalog: Catalog, output: str, *, pictures: bool, media_roots: Sequence[str]) -> bool:
    """Write the page of all videos; into a folder, with a page of each video beside it."""
    if output.lower().endswith(_PAGES):
        path = _page(output)
        write_report(path, library_report(catalog))
        Console(emoji=False).print(escape(f"All videos are in {path}; open it in a browser."), soft_wrap=True)
        return True
    folder = expanded(output).absolute()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name one, or a file that ends with .html")
    names, is_whole = page_names(catalog), True
    for name in ("index.html", *names.values()):  # else all pages are made before one is in the way
        check_free(folder / name)
    for asset_id, name in names.items():
        made = video_report(
            catalog, asset_id, pictures=pictures, media_roots=media_roots, library="index.html"
        )
        write_report(folder / name, made.html)
        _tell(made.page.video, made.problem)
        is_whole = is_whole and not made.problem
    write_report(folder / "index.html", library_report(catalog, names))
    told = f"{len(names)} pages of videos are in {folder}; open {folder / 'index.html'} in a browser."
    Console(emoji=False).print(escape(told), soft_wrap=True)
    return is_whole


def _page(output: str) -> Path:
    if not output.lower().endswith(_PAGES):
        raise UsageError(f"the page must be a file that ends with .html, got {output!r}")
    return expanded(output).absolute()


def _tell(video: str, problem: str) -> None:
    if problem:
        text = f"[red]failed[/] {escape(f'{video}: {problem}; the page says so in place of pictures')}"
        Console(stderr=True, emoji=False).print(text, soft_wrap=True)
