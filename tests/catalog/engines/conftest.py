"""A server on this machine, and engines that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from evicat.catalog.engines.base import ChatRequest, Picture
from evicat.catalog.engines.served import ServedEngine
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

from .chat_server import MODEL, ChatServer


@pytest.fixture
def server() -> Iterator[ChatServer]:
    pytest.importorskip("openai", reason="the served engine needs the package 'openai'")
    with ChatServer() as made:
        yield made


@pytest.fixture
def engine_for() -> Iterator[Callable[..., ServedEngine]]:
    """Makes an engine for an endpoint; fields of the profile by name."""
    made: list[ServedEngine] = []

    def make(endpoint: str, model: ModelRef | None = None, **where: object) -> ServedEngine:
        here = ModelProfile(endpoint=endpoint, **{"patience_seconds": 5, "timeout_seconds": 20} | where)
        made.append(ServedEngine(model or ModelRef(name=MODEL), here, Profile()))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def engine(server: ChatServer, engine_for: Callable[..., ServedEngine]) -> ServedEngine:
    return engine_for(server.url)


@pytest.fixture
def jpeg() -> bytes:
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (32, 32), "teal").save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def request_of(jpeg: bytes) -> Callable[..., ChatRequest]:
    """Makes a request with one picture between two texts."""

    def make(text: str = "What is seen?", **fields: object) -> ChatRequest:
        parts = ("Frame at 0:01.0:", Picture(jpeg, 32, 32), text)
        return ChatRequest("You describe pictures.", parts, **{"max_tokens": 50} | fields)

    return make
