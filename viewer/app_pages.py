"""The pages of the viewer: each is read from the catalog and written as HTML, in a thread of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import polars as pl

from evicat.catalog.exports.captions import cues
from evicat.catalog.quality import MEASURES, quality
from evicat.catalog.reading.views import WITH_NARRATIVE, WITHOUT_NARRATIVE
from evicat.catalog.strips import MARKS
from evicat.schemas.asset import Asset
from evicat.schemas.entry import KINDS
from evicat.schemas.errors import UsageError
from evicat.schemas.span import US
from evicat.storage.rows import DEFAULT_VIEW
from evicat.storage.snapshots import Snapshot
from evicat.viewer import app_compare, app_search
from evicat.viewer.app_catalogs import Catalogs, Opened, Place
from evicat.viewer.app_query import Asked
from evicat.viewer.library_page import CELLS, SORTS, library_page
from evicat.viewer.page_data import video_page
from evicat.viewer.page_html import environment
from evicat.viewer.page_tracks import MEANINGS
from evicat.viewer.serve_files import media_type

VIDEOS_A_PAGE = 50
ROWS_A_PAGE = 200
"""Of a comparison."""
MODE_WORDS: Final = {"hybrid": "words and meaning", "text": "words", "vector": "meaning"}
Context = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """What stands about every page: which state of which catalog it shows, and links that keep it."""

    page: str
    catalogs: Catalogs
    opened: Opened
    place: Place

    @property
    def name(self) -> str:
        """The catalog, without the folders that it lies in."""
        return self.catalogs.layout.root.name

    @property
    def views(self) -> list[str]:
        """Names of the views that can be chosen."""
        stored = self.opened.keep("views", lambda: set(self.opened.catalog.views()["view"].to_list()))
        return [DEFAULT_VIEW, *sorted(stored - {DEFAULT_VIEW}), WITHOUT_NARRATIVE, WITH_NARRATIVE]

    @property
    def snapshots(self) -> list[Snapshot]:
        return self.catalogs.snapshots()

    @property
    def at(self) -> str:
        return self.place.at or self.catalogs.default.at or ""

    @property
    def view(self) -> str:
        return self.opened.catalog.view_name

    def link(self, path: str, **params: Any) -> str:
        """An address in this viewer, with the chosen state of the catalog; what is empty is left out."""
        chosen = {"at": self.place.at, "view": self.place.view} | params
        query = urlencode({name: value for name, value in chosen.items() if value not in (None, "")})
        return f"{quote(path)}?{query}" if query else quote(path)


class Pages:
    """Writes pages; each method reads its parameters, asks the catalog, and gives back HTML.

    They raise ``UsageError`` where a parameter does not fit, and what reading the catalog raises.
    """

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def library(self, asked: Asked) -> str:
        opened = self._catalogs.get(asked.place)
        name, sort = asked.text("name"), asked.one_of("sort", SORTS, "name")
        number = asked.whole("page", 1, 1, 100_000)
        page = library_page(
            opened.catalog,
            name=name,
            sort=next(each for each in SORTS if each == sort),
            offset=(number - 1) * VIDEOS_A_PAGE,
            limit=VIDEOS_A_PAGE,
            library=opened.library,
        )
        pages = max(1, -(-page.matching // VIDEOS_A_PAGE))
        asked.whole("page", 1, 1, pages)
        told = {"page": page, "name_filter": name, "sort": sort, "sorts": SORTS, "number": number}
        seen = {each.outcome for row in page.rows for lane in row.lanes for each in lane.stretches}
        legend = {outcome: MEANINGS[outcome] for outcome in MARKS if outcome in seen}
        told |= {"pages": pages, "legend": legend, "columns": CELLS}
        return self._html("library", asked, opened, told)

    def search(self, asked: Asked) -> str:
        opened = self._catalogs.get(asked.place)
        question = app_search.Question.read(asked)
        problem, hits = "", []
        try:
            hits = app_search.found(self._catalogs, opened, question)
        except UsageError as error:
            problem = str(error)
        choices = {"modes": MODE_WORDS, "kinds": KINDS, "limits": app_search.LIMITS}
        return self._html(
            "search", asked, opened, {"question": question, "hits": hits, "problem": problem} | choices
        )

    def video(self, asked: Asked, asset_id: str, *, has_file: bool) -> str:
        """``has_file``: False where it is known that the media file is not there."""
        opened = self._catalogs.get(asked.place)
        entry = asked.text("e")
        asked.time("t")
        if entry and not entry.startswith(asset_id[:12]):
            raise UsageError(f"entry {entry!r} is none of this video")
        page = video_page(opened.catalog, asset_id)
        asset = opened.catalog.asset(asset_id)
        site = Site("video", self._catalogs, opened, asked.place)
        pictures = {"base": "/frame/", "query": site.link("")}
        data = page.as_json() | {"pictures": pictures}
        told: Context = {"page": page, "data": data, "has_file": has_file}
        if asset is not None:
            told |= {"player": "player.html", "media_type": media_type(asset), "offset_s": _offset_s(asset)}
        return self._html("video", asked, opened, told)

    def captions(self, asked: Asked, asset_id: str) -> str:
        """What is said in a video, as WebVTT on the clock of a player."""
        catalog = self._catalogs.get(asked.place).catalog
        asset = catalog.asset(asset_id)
        shift_s = _offset_s(asset) if asset else 0.0
        shifted = (pl.col("start_s", "end_s") + shift_s).clip(0.0)
        return cues(catalog.speech(asset_id).with_columns(shifted).to_dicts(), "vtt")

    def compare(self, asked: Asked, asset_id: str) -> str:
        opened = self._catalogs.get(asked.place)
        catalog = opened.catalog
        makers = app_compare.makers_to_compare(catalog, asset_id)
        told: Context = {"asset_id": asset_id, "makers": makers, "video": self._video_name(opened, asset_id)}
        if len(makers) < 2:
            return self._html("compare", asked, opened, told | {"rows": (), "a": None, "b": None})
        a, b = app_compare.chosen(makers, asked.text("a"), asked.text("b"))
        rows = app_compare.compared(catalog, asset_id, a, b)
        pages = max(1, -(-len(rows) // ROWS_A_PAGE))
        number = asked.whole("page", 1, 1, pages)
        shown = rows[(number - 1) * ROWS_A_PAGE : number * ROWS_A_PAGE]
        return self._html(
            "compare",
            asked,
            opened,
            told | {"a": a, "b": b, "rows": shown, "number": number, "pages": pages, "count": len(rows)},
        )

    def quality(self, asked: Asked) -> str:
        opened = self._catalogs.get(asked.place)
        card = opened.keep("quality", lambda: quality(opened.catalog))
        groups = card.partition_by("producer_id", maintain_order=True)
        told = {"groups": [group.to_dicts() for group in groups], "measures": MEASURES, "count": len(card)}
        told["doubtful"] = int(card["doubtful"].sum())
        return self._html("quality", asked, opened, told)

    def _video_name(self, opened: Opened, asset_id: str) -> str:
        opened.catalog.asset_ids(asset_id)  # raises where there is none
        names = opened.library.videos.filter(asset_id=asset_id)["video"].sort().to_list()
        return names[0] if names else asset_id

    def _html(self, template: str, asked: Asked, opened: Opened, told: Context) -> str:
        site = Site(template, self._catalogs, opened, asked.place)
        return environment().get_template(f"{template}.html").render(site=site, **told)


def _offset_s(asset: Asset) -> float:
    """Where second 0 of an asset's timeline lies on the clock of a player."""
    return (asset.origin_us - asset.container_start_us) / US


def message(status: int, title: str, text: str) -> str:
    """A page that says why there is no other."""
    return environment().get_template("message.html").render(status=status, title=title, text=text)
