"""What a server does not take of a request, found by leaving parts out: messages differ between servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .base import ChatRequest

NO_SCHEMA = (
    "does not take a JSON schema for its answers: choose a server that does, or write "
    'structured = "json_object" or "none" under [engines."MODEL".options] of the profile; then the prompt '
    "alone asks for the form, and answers are checked here"
)
NO_IMAGES = (
    "does not take the images of a window: serve a vision-language model with its image part (llama.cpp: "
    "--mmproj), and let it have as many images in a request as the recipe shows (vLLM: --limit-mm-per-prompt)"
)


def why_refused(request: ChatRequest, takes: Callable[[ChatRequest], bool], said: str) -> str:
    """Why a server refuses ``request``, and what to do; ``takes`` sends one, ``said`` is its own message."""
    without_schema = replace(request, schema=None)
    without_images = replace(request, parts=tuple(each for each in request.parts if isinstance(each, str)))
    if request.schema and takes(without_schema):
        return f"{NO_SCHEMA}. It said: {said}"
    if request.pictures and takes(without_images):
        return f"{NO_IMAGES}. It said: {said}"
    if request.schema and request.pictures and takes(replace(without_images, schema=None)):
        return f"{NO_IMAGES}; and it {NO_SCHEMA}. It said: {said}"
    return f"refuses what the recipe asks it: {said}"
