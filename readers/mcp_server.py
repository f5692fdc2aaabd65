"""The tools over a catalog as a server of the Model Context Protocol, for agents of any make.

What goes wrong with a call comes back as a tool error with its message, and the server goes on.
"""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evicat.catalog.media.jpeg import jpeg
from evicat.catalog.query import Catalog
from evicat.readers.session import Session
from evicat.readers.tool import TOOLS
from evicat.readers.trace import TraceStep
from evicat.readers.trace_store import Recorder
from evicat.schemas.errors import EvicatError, UsageError

JPEG_QUALITY = 85
LIST_VIDEOS = "list_videos"
VIDEO = {"type": "string", "description": f"Which video: a name that {LIST_VIDEOS} gives."}
_READ_ONLY = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class ListVideos(BaseModel):
    """Arguments of ``list_videos``."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    contains: str = Field("", max_length=200, description="Only names that hold this, in any case.")
    limit: int = Field(100, ge=1, le=1000, description="At most so many.")


@dataclass
class Desk:
    """Takes calls one at a time; one session per video for as long as the server runs."""

    catalog: Catalog
    video: str | None = None
    """The only video that is asked; None: every call names one."""
    recorder: Recorder | None = None
    _sessions: dict[str, Session] = field(default_factory=dict)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.video is not None:
            self._session(self.video)  # an unknown one is told before anybody connects

    def tools(self) -> list[types.Tool]:
        """Every tool with the JSON schema of its arguments."""
        listed = [
            _tool(tool.name, tool.description, self._schema(tool.Arguments.model_json_schema()))
            for tool in TOOLS.values()
        ]
        if self.video is None:
            what = "Names and durations of the catalog's videos."
            listed.insert(0, _tool(LIST_VIDEOS, what, ListVideos.model_json_schema()))
        return listed

    def call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Answer one call; a mistake of the caller is an answer too."""
        with self._one_at_a_time:
            try:
                if name == LIST_VIDEOS and self.video is None:
                    return self._list(ListVideos.model_validate(arguments))
                session, own = self._directed(arguments)
                step = session.call(name, own)
                if self.recorder:
                    self.recorder.keep(session.trace)
                return _answer(step, session)
            except ValidationError as error:
                return _error("; ".join(f"{_place(each)}: {each['msg']}" for each in error.errors()))
            except EvicatError as error:
                return _error(str(error))

    def close(self) -> None:
        """Store what is not stored yet."""
        with self._one_at_a_time:
            for session in self._sessions.values():
                if self.recorder:
                    self.recorder.keep(session.trace, ended=True)

    def _schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self.video is not None:
            return schema
        own, required = schema.get("properties", {}), schema.get("required", [])
        return schema | {"properties": {"video": VIDEO} | own, "required": ["video", *required]}

    def _directed(self, arguments: dict[str, Any]) -> tuple[Session, dict[str, Any]]:
        """The session that a call goes to, and what of its arguments is the tool's own."""
        if self.video is not None:
            return self._session(self.video), arguments
        own = dict(arguments)
        video = own.pop("video", None)
        if not isinstance(video, str) or not video:
            raise UsageError(f"every call names a video, got video={video!r}; {LIST_VIDEOS} lists them")
        return self._session(video), own

    def _session(self, video: str) -> Session:
        if video not in self._sessions:
            self._sessions[video] = Session(self.catalog, video)
        return self._sessions[video]

    def _list(self, asked: ListVideos) -> types.CallToolResult:
        rows = self.catalog.videos().select("video", "duration_s").rows()
        found = [(name, length) for name, length in rows if asked.contains.casefold() in name.casefold()]
        shown = found[: asked.limit]
        lines = [
            f"{name} ({'unknown length' if length is None else f'{length:.1f} s'})" for name, length in shown
        ]
        lines.append(f"{len(shown)} of {len(found)} videos.")
        listed = [{"video": name, "duration_s": length} for name, length in shown]
        return types.CallToolResult(
            content=[types.TextContent(text="\n".join(lines))],
            structured_content={"videos": listed, "found": len(found)},
        )


def make_server(desk: Desk) -> Server[Any]:
    """A server that lists and calls the tools of ``desk``, over whichever transport runs it."""

    async def list_tools(context: Any, asked: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=desk.tools())

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(desk.call, asked.name, asked.arguments or {})

    return Server(
        "evicat",
        version=version("evicat"),
        instructions="Evidence from long videos. Answers cite entries, seconds and frames.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _tool(name: str, description: str, schema: dict[str, Any]) -> types.Tool:
    return types.Tool(name=name, description=description, input_schema=schema, annotations=_READ_ONLY)


def _answer(step: TraceStep, session: Session) -> types.CallToolResult:
    if step.error:
        return _error(step.error)
    content: list[types.ContentBlock] = [types.TextContent(text=step.text)]
    pictures = session.returned.pictures if session.returned else ()
    content += [_image(jpeg(frame.image, JPEG_QUALITY)) for frame in pictures]
    cited = {
        "entry_ids": list(step.entry_ids),
        "spans": [{"start_s": start, "end_s": end} for start, end in step.spans],
        "frames": [{"pts": pts, "time_s": time_s} for pts, time_s in step.frames],
        "boundary": step.boundary,
    }
    return types.CallToolResult(content=content, structured_content=cited)


def _image(picture: bytes) -> types.ImageContent:
    return types.ImageContent(data=base64.b64encode(picture).decode(), mime_type="image/jpeg")


def _error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _place(error: Any) -> str:
    return ".".join(str(part) for part in error["loc"]) or "arguments"
