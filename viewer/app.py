"""The web viewer: pages over a whole catalog, its media and the frames that it cites. It writes nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from evicat.schemas.asset import Asset
from evicat.schemas.errors import (
    AssetError,
    BusyError,
    EvicatError,
    UnknownNameError,
    UnreadableMediaError,
    UsageError,
)
from evicat.schemas.recipe import Profile
from evicat.viewer.app_catalogs import Catalogs
from evicat.viewer.app_guard import Guard
from evicat.viewer.app_pages import Pages, message
from evicat.viewer.app_query import Asked
from evicat.viewer.app_search import PARAMETERS
from evicat.viewer.serve_files import Files, Found, MediaResponse
from evicat.viewer.serve_pictures import Key, Pictures

READERS = 8
"""Pages that are read from the catalog at the same time."""
SEARCHES = 4
"""Searches that run at the same time, beside those."""
LOOKERS = 4
"""Media files that are looked for, which may mean to hash them, at the same time."""
LOOK_S = 1.0
"""Seconds for which a page waits until its media file is found; afterwards the player finds out."""
NEAR_S = 30.0
"""Seconds about a time in which a frame that stands for it is looked for."""
SIZES: Final = {"small": 240, "shown": 960}
"""Width of a picture in pixels at most, by name."""
KEPT: Final = "private, max-age=3600"
STATIC_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
_ASSET_ID = re.compile(r"[0-9a-f]{32}")
_ENTRY_ID = re.compile(r"[0-9A-Za-z._-]{1,200}")
_INDEX = re.compile(r"[0-9]{1,4}")
_MS = re.compile(r"[0-9]{1,12}")
_TITLES: Final = {
    400: "This cannot be answered",
    404: "Not here",
    405: "Reading only",
    410: "The file is not what was indexed",
    414: "Too long",
    421: "Wrong address",
    500: "Something is broken",
    503: "Try again in a moment",
}


class Viewer:
    """The endpoints. What blocks runs in threads, so many for each kind: one does not stop the others."""

    def __init__(self, catalogs: Catalogs, profile: Profile) -> None:
        self._catalogs = catalogs
        self._pages = Pages(catalogs)
        self._files = Files(catalogs)
        self._pictures = Pictures(profile)
        self._readers = anyio.CapacityLimiter(READERS)
        self._searches = anyio.CapacityLimiter(SEARCHES)
        self._scorer = anyio.CapacityLimiter(1)
        self._lookers = anyio.CapacityLimiter(LOOKERS)
        self._static = {
            each.name: each.read_bytes()
            for each in files("evicat.viewer").joinpath("static").iterdir()
            if each.name.endswith(tuple(STATIC_TYPES))
        }

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Ends the worker processes with the server."""
        try:
            yield
        finally:
            self._pictures.close()

    def routes(self) -> list[Route]:
        return [
            Route("/", self.library),
            Route("/search", self.search),
            Route("/quality", self.quality),
            Route("/v/{asset_id}", self.video),
            Route("/compare/{asset_id}", self.compare),
            Route("/media/{asset_id}", self.media),
            Route("/captions/{asset_id}.vtt", self.captions),
            Route("/frame/{entry_id}/{index}.jpg", self.picture),
            Route("/shown/{asset_id}/{time_ms}.jpg", self.shown),
            Route("/static/{name}", self.static),
        ]

    async def library(self, request: Request) -> Response:
        asked = Asked(request.query_params, ("name", "sort", "page"))
        return HTMLResponse(await run_sync(self._pages.library, asked, limiter=self._readers))

    async def search(self, request: Request) -> Response:
        asked = Asked(request.query_params, PARAMETERS)
        return HTMLResponse(await run_sync(self._pages.search, asked, limiter=self._searches))

    async def quality(self, request: Request) -> Response:
        asked = Asked(request.query_params)
        return HTMLResponse(await run_sync(self._pages.quality, asked, limiter=self._scorer))

    async def compare(self, request: Request) -> Response:
        asked = Asked(request.query_params, ("a", "b", "page"))
        make = partial(self._pages.compare, asked, _asset_id(request))
        return HTMLResponse(await run_sync(make, limiter=self._readers))

    async def video(self, request: Request) -> Response:
        asked, asset_id = Asked(request.query_params, ("e", "t")), _asset_id(request)
        has_file = True
        if not self._files.is_looking_for(asset_id):
            with anyio.move_on_after(LOOK_S):
                look = partial(self._find, asked, asset_id)
                _, place = await run_sync(look, limiter=self._lookers, abandon_on_cancel=True)
                has_file = place is not None
        make = partial(self._pages.video, asked, asset_id, has_file=has_file)
        return HTMLResponse(await run_sync(make, limiter=self._readers))

    async def media(self, request: Request) -> Response:
        asked, asset_id = Asked(request.query_params), _asset_id(request)
        asset, place = await run_sync(self._find, asked, asset_id, limiter=self._lookers)
        if asset is None or place is None:
            return _page(410, await run_sync(self._why_lost, asked, asset_id, limiter=self._readers))
        return MediaResponse(place, asset)

    async def captions(self, request: Request) -> Response:
        asked, asset_id = Asked(request.query_params), _asset_id(request)
        text = await run_sync(self._pages.captions, asked, asset_id, limiter=self._readers)
        return Response(text, media_type="text/vtt")

    async def picture(self, request: Request) -> Response:
        """A frame that an entry cites, by its number there."""
        asked, width = _sized(request)
        entry_id, index = request.path_params["entry_id"], request.path_params["index"]
        if not _ENTRY_ID.fullmatch(entry_id) or not _INDEX.fullmatch(index):
            raise HTTPException(404)
        look = partial(self._cited, asked, entry_id, int(index), width)
        return await self._jpeg(asked, await run_sync(look, limiter=self._readers))

    async def shown(self, request: Request) -> Response:
        """The frame nearest to a time that an entry about then cites; no content where none does."""
        asked, width = _sized(request)
        asset_id, time_ms = _asset_id(request), request.path_params["time_ms"]
        if not _MS.fullmatch(time_ms):
            raise HTTPException(404)
        look = partial(self._nearest, asked, asset_id, int(time_ms) / 1000, width)
        key = await run_sync(look, limiter=self._readers)
        if key is None:
            return Response(status_code=204)
        return await self._jpeg(asked, key)

    async def _jpeg(self, asked: Asked, key: Key) -> Response:
        picture = self._pictures.kept(key)
        if picture is None:
            asset, place = await run_sync(self._find, asked, key.asset_id, limiter=self._lookers)
            if asset is None or place is None:
                raise UnreadableMediaError("the media file of this entry was not found")
            picture = await self._pictures.decoded(key, place.path, asset)
        return Response(picture, headers={"cache-control": KEPT}, media_type="image/jpeg")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404)
        headers = {"cache-control": "no-cache"}
        return Response(
            self._static[name], headers=headers, media_type=STATIC_TYPES["." + name.split(".")[-1]]
        )

    def _find(self, asked: Asked, asset_id: str) -> tuple[Asset | None, Found | None]:
        """An asset, and where its file lies; None where it could not be read, or is not found."""
        opened = self._catalogs.get(asked.place)
        opened.catalog.asset_ids(asset_id)
        asset = opened.catalog.asset(asset_id)
        return asset, self._files.find(opened, asset) if asset else None

    def _why_lost(self, asked: Asked, asset_id: str) -> str:
        opened = self._catalogs.get(asked.place)
        asset = opened.catalog.asset(asset_id)
        if asset is None:
            return "The file of this video could not be read when it was indexed."
        looked = opened.catalog.media_files(self._catalogs.media_roots).looked_at(asset)
        return (
            f"No file with the {asset.size_bytes} bytes that were indexed (asset {asset_id}) was found. "
            f"Looked in {', '.join(looked) or 'nowhere: this catalog knows no place of it'}. It was moved, "
            "removed, or written to since. Start the viewer with --media-root and the folder that holds it, "
            "or index the changed file."
        )

    def _cited(self, asked: Asked, entry_id: str, index: int, width: int) -> Key:
        """What names the picture of one frame of an entry."""
        entry = self._catalogs.get(asked.place).catalog.entry(entry_id)
        frames = entry["frames"]
        if index >= len(frames):
            raise UnknownNameError("frame", str(index), [str(each) for each in range(len(frames))])
        return _key(entry, frames[index], width)

    def _nearest(self, asked: Asked, asset_id: str, time_s: float, width: int) -> Key | None:
        """What names the picture nearest to a time, of all that entries about then cite."""
        about = (max(0.0, time_s - NEAR_S), time_s + NEAR_S)
        entries = self._catalogs.get(asked.place).catalog.entries(asset_id, between=about).to_dicts()
        cited = [(entry, frame) for entry in entries for frame in entry["frames"]]
        if not cited:
            return None
        entry, frame = min(cited, key=lambda each: abs(each[1]["time_s"] - time_s))
        return _key(entry, frame, width)


def _key(entry: dict[str, Any], frame: dict[str, Any], width: int) -> Key:
    return Key(entry["asset_id"], frame["pts"], min(width, entry["shown_width"] or width))


def _sized(request: Request) -> tuple[Asked, int]:
    """The parameters of a picture, and its width."""
    asked = Asked(request.query_params, ("size",))
    return asked, SIZES[asked.one_of("size", list(SIZES), "shown")]


def _asset_id(request: Request) -> str:
    asset_id: str = request.path_params["asset_id"]
    if not _ASSET_ID.fullmatch(asset_id):
        raise HTTPException(404)
    return asset_id


def _page(status: int, text: str) -> Response:
    title = _TITLES.get(status, "This cannot be answered")
    headers = {"cache-control": "no-store"} | ({"allow": "GET, HEAD"} if status == 405 else {})
    return HTMLResponse(message(status, title, text), status, headers)


def _status(error: Exception) -> int:
    match error:
        case UnknownNameError():
            return 404
        case UsageError():
            return 400
        case AssetError():
            return 410
        case BusyError():
            return 503
        case _:
            return 500


async def _on_error(_: Request, error: Exception) -> Response:
    return _page(_status(error), str(error))


async def _on_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "There is no such page." if error.status_code == 404 else error.detail
    return _page(error.status_code, text)


async def _on_fault(_: Request, __: Exception) -> Response:
    return _page(500, "Something went wrong here. The window in which the viewer was started says more.")


def make_app(catalogs: Catalogs, profile: Profile, hosts: Collection[str] | None) -> ASGIApp:
    """The whole viewer. ``hosts``: names under which it may be asked; None: any."""
    viewer = Viewer(catalogs, profile)
    app = Starlette(
        routes=viewer.routes(),
        lifespan=viewer.lifespan,
        exception_handlers={EvicatError: _on_error, HTTPException: _on_refusal, Exception: _on_fault},
    )
    return Guard(app, hosts, lambda refusal: _page(refusal.status, refusal.why))
