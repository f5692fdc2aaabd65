"""The digest that names weights: which files count, and that each is hashed once."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from evicat.catalog import digests
from evicat.catalog.digests import CTRANSLATE2_FORMATS, counted, folder_digest, holds_weights
from evicat.schemas.errors import UsageError


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


def test_of_a_repository_with_every_format_only_what_torch_reads_counts():
    read = [
        "1_Pooling/config.json",
        "chat_template.jinja",
        "config.json",
        "model.safetensors",
        "modules.json",
    ]
    others = [
        *(
            "README.md",
            ".gitattributes",
            "LICENSE",
            "train_script.py",
            "data_config.json",
            "training_args.bin",
        ),
        *("pytorch_model.bin", "rust_model.ot", "tf_model.h5", "model.gguf", "flax_model.msgpack"),
        *(
            "onnx/model.onnx",
            "onnx/config.json",
            "openvino/openvino_model.bin",
            "original/consolidated.00.pth",
        ),
        *(".cache/config.json", "tf_model.h5.index.json", "pytorch_model.bin.index.json"),
    ]
    assert counted([*others, *read]) == read


@pytest.mark.parametrize(
    "weights",
    [
        [
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
        ],
        ["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"],
        ["model.Q4_1.gguf"],
        ["onnx/config.json", "onnx/model.onnx", "onnx/model.onnx_data"],
    ],
)
def test_weights_in_each_format_count_where_no_better_one_is_there(weights):
    assert counted([*weights, "config.json"]) == sorted([*weights, "config.json"])
    assert holds_weights(weights)


def test_each_folder_has_its_own_format():
    # As older models of sentence-transformers: the layers on top have pickled weights only.
    names = ["2_Dense/pytorch_model.bin", "model.safetensors", "pytorch_model.bin"]
    assert counted(names) == ["2_Dense/pytorch_model.bin", "model.safetensors"]


def test_ctranslate2_reads_its_own_file_whatever_lies_beside_it():
    names = ["config.json", "model.bin", "model.safetensors", "vocabulary.txt"]
    assert counted(names, CTRANSLATE2_FORMATS) == ["config.json", "model.bin", "vocabulary.txt"]
    assert counted(names) == ["config.json", "model.safetensors", "vocabulary.txt"]


def test_settings_alone_are_no_weights():
    assert not holds_weights(["config.json", "vocab.txt"])


def test_a_copy_in_the_cache_of_the_model_hub_has_the_same_digest(model, tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0123"
    blobs.mkdir()
    for number, path in enumerate(sorted(path for path in model.rglob("*") if path.is_file())):
        link = snapshot / path.relative_to(model)
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, blobs / str(number))
        link.symlink_to(blobs / str(number))
    assert folder_digest(snapshot) == folder_digest(model)


def test_files_that_revisions_share_are_hashed_once(model, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    for path in model.iterdir():
        if path.is_file():
            (other / path.name).symlink_to(path)
    folder_digest(model)
    hashed = count_hashes(monkeypatch)
    assert folder_digest(other) != folder_digest(model)
    assert hashed == []


def test_a_folder_without_model_files_is_named(tmp_path):
    with pytest.raises(UsageError, match="holds no model files"):
        folder_digest(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocab.txt", "1_Pooling/config.json"])
def test_every_file_that_is_read_counts(model, name):
    before = folder_digest(model)
    (model / name).write_bytes((model / name).read_bytes() + b" ")
    changed = folder_digest(model)
    (model / name).rename(model / "other.json")
    assert len({before, changed, folder_digest(model)}) == 3


def count_hashes(monkeypatch) -> list:
    hashed = []
    real = digests.hashlib.file_digest
    monkeypatch.setattr(
        digests.hashlib, "file_digest", lambda file, how: hashed.append(file.name) or real(file, how)
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
