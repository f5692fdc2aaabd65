"""The report page of a whole library: what is made of every video, and what failed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evicat.catalog.query import Catalog
from evicat.schemas.entry import Outcome

from .library_page import CELLS, library_page
from .page_tracks import MEANINGS
from .page_words import clock
from .report import render

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def page_names(catalog: Catalog) -> dict[str, str]:
    """By asset id, the name of the file that its page is to have: readable, safe and no other's."""
    names = catalog.videos(missing=True).unique("asset_id", keep="first", maintain_order=True)
    return {
        asset_id: f"{_UNSAFE.sub('-', video).strip('.-')[:60] or 'video'}-{asset_id[:12]}.html"
        for asset_id, video in names.select("asset_id", "video").iter_rows()
    }


def library_report(catalog: Catalog, pages: Mapping[str, str] | None = None) -> str:
    """The page of all videos, as HTML. ``pages``: by asset id, the address of its page."""
    page = library_page(catalog)
    once = {row.asset_id: row for row in page.rows}.values()
    seen = {each.outcome for row in page.rows for lane in row.lanes for each in lane.stretches}
    return render(
        "report_library.html",
        "page_table.js",
        catalog=catalog,
        name=catalog.uri.rstrip("/").rpartition("/")[2],
        page=page,
        pages=pages or {},
        length=_length(page.hours * 3600),
        unusable=sum(row.status == "failed" for row in once),
        legend={name: MEANINGS[name] for name in (Outcome.DONE.value, *MEANINGS) if name in seen},
        columns=CELLS,
    )


def _length(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{clock(seconds)} in all"
