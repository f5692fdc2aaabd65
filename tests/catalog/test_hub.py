"""Weights from the model hub: fetched as far as they count, taken from the cache, or what is said instead."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from huggingface_hub import constants

from evicat.catalog import digests
from evicat.catalog.digests import folder_digest
from evicat.catalog.hub import snapshot
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.catalog.weights import resolve
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.recipe import Profile, SpeechOptions

from .hub_server import COMMIT, Hub, cached

FILES = {
    "README.md": b"read me",
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "onnx/model.onnx": b"the same in another format",
    "pytorch_model.bin": b"and in another",
    "vocab.txt": b"a b",
}
READ = ["config.json", "model.safetensors", "vocab.txt"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own; the hub is out of reach by choice."""
    monkeypatch.setattr(digests, "user_cache_path", lambda name, **_: tmp_path / "cache" / name)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mapping[str, bytes]], Hub]]:
    """Starts a hub that has one repository, ``lab/words``, and has the client ask it."""
    started: list[Hub] = []

    def start(files: Mapping[str, bytes] = FILES) -> Hub:
        hub = Hub({"lab/words": files})
        started.append(hub)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        return hub

    yield start
    for each in started:
        each.close()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A local folder with what is read of the repository."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in READ:
        (folder / name).write_bytes(FILES[name])
    return folder


def test_only_what_counts_is_fetched_and_it_is_the_same_as_a_local_copy(online, copy):
    hub = online()
    folder = snapshot("lab/words")
    assert sorted(hub.fetched) == READ
    assert folder_digest(folder) == folder_digest(copy)
    assert (folder / "model.safetensors").read_bytes() == b"weights"


def test_what_was_fetched_is_used_offline(online, monkeypatch):
    hub = online()
    folder = snapshot("lab/words")
    hub.fetched.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for revision in ("", "main", COMMIT):
        assert snapshot("lab/words", revision=revision) == folder
    assert hub.fetched == []


def test_what_was_fetched_is_used_where_the_hub_is_gone_and_that_is_said(online, monkeypatch, caplog):
    online()
    folder = snapshot("lab/words")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", gone)
    assert snapshot("lab/words") == folder
    assert "cannot be reached" in caplog.text
    assert "lab/words is taken from its cache" in caplog.text


def test_a_cache_that_another_program_filled_is_used(cache, copy):
    folder = cached(cache, "lab/words", {name: copy / name for name in READ})
    assert snapshot("lab/words") == folder
    assert folder_digest(folder) == folder_digest(copy)


def test_a_profile_that_maps_a_name_to_a_copy_does_not_change_the_model(cache, copy):
    cached(cache, "lab/words", {name: copy / name for name in READ}, listed=list(FILES))
    hub = resolve("lab/words", revision="main", profile=Profile())
    mapped = resolve("lab/words", revision="main", profile=Profile(models={"lab/words": str(copy)}))
    assert Path(hub.location).parts[-2:] == ("snapshots", COMMIT)
    assert mapped.location == str(copy)
    assert hub.ref == mapped.ref
    assert hub.ref.digest == folder_digest(copy)


def test_a_cache_that_lacks_a_file_that_counts_is_not_taken_for_whole(cache, copy):
    files = {name: copy / name for name in READ if name != "vocab.txt"}
    cached(cache, "lab/words", files, listed=list(FILES))
    with pytest.raises(
        UsageError, match=r"'lab/words' is not whole in the model hub's cache, and HF_HUB_OFF"
    ):
        snapshot("lab/words")


def test_a_model_that_is_not_in_the_cache_says_how_to_fetch_it():
    said = r"model 'lab/words', revision 'v2', .*HF_HUB_OFFLINE=0 evicat weights 'lab/words'; or put it into"
    with pytest.raises(UsageError, match=said):
        snapshot("lab/words", revision="v2")


def test_what_to_write_into_the_profile_has_the_name_of_the_recipe():
    speech = SpeechOptions(transcriber="faster-whisper", model="tiny.en")
    said = r'faster-whisper-tiny\.en.* write under \[models\] of the profile: "tiny\.en" = "/FOLDER"'
    with pytest.raises(UsageError, match=said):
        load_transcriber(speech, Profile())


def test_a_short_name_that_the_library_does_not_know_lists_those_that_it_does():
    with pytest.raises(UnknownNameError, match=r"unknown Whisper model 'tinny'; known: .*tiny\.en"):
        load_transcriber(SpeechOptions(transcriber="faster-whisper", model="tinny"), Profile())


def test_an_interrupted_download_is_completed(online, cache, copy):
    hub = online()
    cached(cache, "lab/words", {"config.json": copy / "config.json"})
    assert folder_digest(snapshot("lab/words")) == folder_digest(copy)
    assert "model.safetensors" in hub.fetched


@pytest.mark.parametrize("status", [429, 502])
def test_a_hub_that_is_overloaded_is_like_one_that_is_gone(online, caplog, status):
    hub = online()
    folder = snapshot("lab/words")
    hub.status = status
    assert snapshot("lab/words") == folder
    assert str(status) in caplog.text


def test_a_cache_that_cannot_be_written_is_named(online, cache):
    online()
    cache.write_text("a file where the folder should be")
    with pytest.raises(
        UsageError, match=r"cannot be had from the model hub: .*hub.*; try again later, or name"
    ):
        snapshot("lab/words")


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("lab/none", "", r"model 'lab/none' cannot be had .* write its name as on the hub \(OWNER/NAME\)"),
        ("lab/words", "v9", r"model 'lab/words', revision 'v9', cannot be had .* write another revision"),
        ("lab/words/more", "", r"model 'lab/words/more' cannot be had .* or the path of a folder"),
    ],
)
def test_what_the_hub_does_not_have_is_named(online, name, revision, said):
    online()
    with pytest.raises(UsageError, match=said):
        snapshot(name, revision=revision)


def test_a_hub_that_refuses_is_told_apart_from_one_that_is_gone(online):
    online().status = 403
    with pytest.raises(UsageError, match=r"cannot be had from the model hub: .*try again later"):
        snapshot("lab/words")


def test_a_repository_without_weights_is_named(online):
    online({"config.json": b"{}", "README.md": b"soon"})
    with pytest.raises(
        UsageError, match=r"'lab/words' on the model hub holds no weights .*\(1 other files\)"
    ):
        snapshot("lab/words")


def test_of_several_gguf_files_none_is_chosen_and_none_is_fetched(online):
    hub = online({"words.Q4_1.gguf": b"a", "words.Q8_0.gguf": b"b"})
    with pytest.raises(
        UsageError, match=r"2 models as GGUF files, such as words\.Q4_1\.gguf and words\.Q8_0"
    ):
        snapshot("lab/words")
    assert hub.fetched == []


def test_one_gguf_model_in_parts_is_one_model(online):
    files = {"mmproj-words.gguf": b"0"} | {f"words-0000{n}-of-00002.gguf": str(n).encode() for n in (1, 2)}
    hub = online(files)
    snapshot("lab/words")
    assert sorted(hub.fetched) == sorted(files)


def test_changed_weights_in_the_cache_are_another_model(cache, copy):
    folder = cached(cache, "lab/words", {name: copy / name for name in READ})
    before = folder_digest(folder)
    (copy / "model.safetensors").write_bytes(b"Weights")
    assert folder_digest(folder) != before
    assert folder_digest(shutil.copytree(folder, copy.parent / "again")) == folder_digest(folder)
