"""What a server does not take of a request, found by leaving parts out: messages differ between servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .base import ChatAnswer, ChatRequest, Picture

NO_SCHEMA = (
    "does not take a JSON schema for its answers: choose a server that does, or write "
    'structured = "json_object" or "none" under [engines."MODEL".options] of the profile; then the prompt '
    "alone asks for the form, and answers are checked here"
)
NO_IMAGES = (
    "does not take the images of a window: serve a vision-language model with its image part (llama.cpp: "
    "--mmproj)"
)
TOO_MANY_IMAGES = (
    "takes an image, but not {0} in one request, as the recipe shows them of a window: let it take as many "
    "(vLLM: --limit-mm-per-prompt '{{\"image\": {0}}}'), or show fewer (frames.per_window of the recipe)"
)

PASSED_OVER = (
    "counts no tokens for an image, so it seems to pass over images without a word: serve a vision-language "
    "model with its image part; if it does see them, write counts_images = false under "
    '[engines."MODEL".options] of the profile'
)


def without_images(request: ChatRequest) -> ChatRequest:
    return replace(request, parts=tuple(each for each in request.parts if isinstance(each, str)))


def with_one_image(request: ChatRequest) -> ChatRequest:
    """The request with its first image alone."""
    images = [number for number, part in enumerate(request.parts) if isinstance(part, Picture)]
    further = set(images[1:])
    kept = tuple(part for number, part in enumerate(request.parts) if number not in further)
    return replace(request, parts=kept)


def passes_over_images(answer: ChatAnswer, without: ChatAnswer) -> bool:
    """Whether images made no difference to the length of a prompt; a server that tells no lengths may see."""
    return 0 < answer.prompt_tokens <= without.prompt_tokens


def why_refused(request: ChatRequest, takes: Callable[[ChatRequest], bool], said: str) -> str:
    """Why a server refuses ``request``, and what to do; ``takes`` sends one, ``said`` is its own message."""
    without_schema = replace(request, schema=None)
    words = without_images(request)
    if request.schema and takes(without_schema):
        return f"{NO_SCHEMA}. It said: {said}"
    if len(request.pictures) > 1 and takes(with_one_image(request)):
        return f"{TOO_MANY_IMAGES.format(len(request.pictures))}. It said: {said}"
    if request.pictures and takes(words):
        return f"{NO_IMAGES}. It said: {said}"
    if request.schema and request.pictures and takes(replace(words, schema=None)):
        return f"{NO_IMAGES}; and it {NO_SCHEMA}. It said: {said}"
    return f"refuses what the recipe asks it: {said}"
