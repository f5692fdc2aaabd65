"""A catalog of two real films of 8 s, and sessions over it."""

import json
from pathlib import Path

import pytest

from evicat.catalog.llm import TextModel
from evicat.catalog.query import Catalog
from evicat.readers.session import Session
from evicat.schemas.recipe import ModelProfile, Profile, TextModelOptions

from ..viewer.gallery import OTHER, VIDEO, Gallery, make_gallery


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory, ffmpeg: Path) -> Gallery:
    return make_gallery(tmp_path_factory.mktemp("readers"), ffmpeg)


@pytest.fixture(scope="session")
def opened(shown: Gallery) -> Catalog:
    return Catalog.open(shown.uri)


@pytest.fixture
def session(opened: Catalog) -> Session:
    return Session(opened, VIDEO, "What is shown?")


@pytest.fixture
def plain(opened: Catalog) -> Session:
    return Session(opened, OTHER)


@pytest.fixture
def scripted(tmp_path: Path):
    def make(*rules: dict) -> TextModel:
        file = tmp_path / "rules.jsonl"
        file.write_text("\n".join(map(json.dumps, rules)))
        where = ModelProfile(engine="scripted", options={"file": str(file)})
        return TextModel.of(TextModelOptions(model="some-model"), Profile(engines={"*": where}))

    return make
