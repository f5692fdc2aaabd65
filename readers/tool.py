"""All tools by the name that a model calls them. A new one gets one line here."""

from __future__ import annotations

from typing import Any

from evicat.readers.base import Arguments, CallError, Returned, Tool
from evicat.readers.browse import GlobalBrowse
from evicat.readers.clip_search import ClipSearch
from evicat.readers.crop_video import CropVideo
from evicat.readers.frame_inspect import FrameInspect
from evicat.readers.visual import VisualInspect, VisualRetrieve

__all__ = ["TOOLS", "Arguments", "CallError", "Returned", "Tool"]

TOOLS: dict[str, Tool[Any]] = {
    tool.name: tool
    for tool in (GlobalBrowse(), ClipSearch(), FrameInspect(), VisualRetrieve(), VisualInspect(), CropVideo())
}
