"""Copies of the same weights are one producer, wherever they lie; other weights are another."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from evicat.catalog import digests
from evicat.catalog.kit import Kit
from evicat.catalog.weights import resolve
from evicat.schemas.errors import IntegrityError
from evicat.schemas.recipe import Profile, Recipe, parse_toml

from .hub_server import cached

WHISPER, MINILM = "packaged:whisper-tiny.en", "packaged:all-MiniLM-L6-v2"
HUB_WHISPER, HUB_MINILM = "Systran/faster-whisper-tiny.en", "sentence-transformers/all-MiniLM-L6-v2"
CHAT = "lab/eye-9b"


@pytest.fixture(autouse=True)
def known_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was hashed is remembered for this test alone."""
    monkeypatch.setattr(digests, "user_cache_path", lambda name, **_: tmp_path / "cache" / name)


def packaged(name: str) -> dict[str, Path]:
    """The files that a package carries, by their names within the model."""
    folder = Path(resolve(name, profile=Profile()).location)
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the model hub with both models, one of them in other formats as well."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    others = {}
    for name in ("pytorch_model.bin", "onnx/model.onnx", "openvino/openvino_model.bin", "README.md"):
        others[name] = tmp_path / name.replace("/", "-")
        others[name].write_text(name)
    cached(tmp_path / "hub", HUB_WHISPER, packaged(WHISPER))
    cached(tmp_path / "hub", HUB_MINILM, others | packaged(MINILM))
    return tmp_path / "hub"


def copied(name: str, folder: Path) -> Path:
    """A folder of one's own with the weights, without what no loader reads."""
    for path, source in packaged(name).items():
        if not path.endswith(".md"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / path)
    return folder


def recipe(whisper: str = WHISPER, minilm: str = MINILM) -> Recipe:
    text = f"""
        name = "words"
        [speech]
        transcriber = "faster-whisper"
        model = "{whisper}"
        [embedder]
        name = "sentence-transformers"
        model = "{minilm}"
    """
    return parse_toml(Recipe, text, "the test")


def producers(of: Recipe, profile: Profile | None = None) -> list[str]:
    with Kit(of, profile or Profile()) as kit:
        return [producer.producer_id for producer in kit.producers]


def test_a_package_a_copy_of_the_hub_and_a_folder_are_one_producer(hub, tmp_path):
    whisper, minilm = copied(WHISPER, tmp_path / "whisper"), copied(MINILM, tmp_path / "minilm")
    mapped = Profile(models={HUB_WHISPER: str(whisper), HUB_MINILM: str(minilm)})
    expected = producers(recipe())
    assert len(set(expected)) == 2
    assert producers(recipe(HUB_WHISPER, HUB_MINILM)) == expected
    assert producers(recipe("tiny.en", HUB_MINILM)) == expected
    assert producers(recipe(str(whisper), str(minilm))) == expected
    assert producers(recipe(HUB_WHISPER, HUB_MINILM), mapped) == expected


@pytest.mark.parametrize("file", ["model.bin", "tokenizer.json"])
def test_one_changed_byte_is_another_producer(tmp_path, file):
    whisper = copied(WHISPER, tmp_path / "whisper")
    with (whisper / file).open("r+b") as changed:
        changed.seek(-1, 2)
        last = changed.read(1)
        changed.seek(-1, 2)
        changed.write(bytes([last[0] ^ 1]))
    before, after = producers(recipe()), producers(recipe(str(whisper)))
    assert before[0] != after[0]


# Chat models


def watching(model: str, **options: str) -> Recipe:
    given = ", ".join(f'{name} = "{value}"' for name, value in {"model": model, **options}.items())
    text = f"""
        name = "watch"
        [[scales]]
        kind = "local"
        window_seconds = 10
        describer = "vlm-local"
        frames = {{ per_window = 2 }}
        options = {{ {given} }}
    """
    return parse_toml(Recipe, text, "the test")


def run_by(engine: str = "openai", **models: str) -> Profile:
    where = {"engine": engine, "endpoint": "http://127.0.0.1:9/v1" if engine == "openai" else ""}
    return Profile.model_validate({"engines": {"*": where}, "models": models})


@pytest.fixture
def weights(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "eye-9b"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.mark.parametrize("engine", ["openai", "simulated"])
def test_a_profile_never_changes_which_chat_model_it_is(weights, engine):
    served = producers(watching(CHAT), run_by(engine))
    assert producers(watching(CHAT), run_by(engine, **{CHAT: str(weights)})) == served


@pytest.mark.parametrize("engine", ["openai", "simulated"])
def test_a_path_is_never_part_of_a_producer(weights, tmp_path, engine):
    other = shutil.copytree(weights, tmp_path / "other")
    here = producers(watching(str(weights)), run_by(engine))
    assert producers(watching(str(other)), run_by(engine)) == here
    (other / "model.safetensors").write_bytes(b"Weights")
    assert producers(watching(str(other)), run_by(engine)) != here


def test_a_stated_digest_alone_says_which_model_it_is(weights):
    digest = resolve(str(weights), profile=Profile()).ref.digest
    stated = producers(watching(CHAT, digest=digest), run_by())
    assert producers(watching("lab/renamed", revision="v2", digest=digest), run_by()) == stated
    assert producers(watching(str(weights)), run_by()) == stated
    assert producers(watching(CHAT), run_by()) != stated
    assert producers(watching(CHAT, digest=digest, quantization="fp8"), run_by()) != stated
    assert producers(watching(CHAT, digest="0" * 64), run_by()) != stated


def test_models_of_one_name_and_different_digests_have_engines_of_their_own(weights):
    one, other = watching(CHAT, digest="0" * 64), watching(CHAT, digest="1" * 64)
    scale = other.scales[0].model_copy(update={"window_seconds": 30})
    both = one.model_copy(update={"scales": (*one.scales, scale)})
    with Kit(both, run_by()) as kit:
        assert len({id(describer.served_by) for describer in kit.describers.values()}) == 2


def test_packaged_weights_cannot_be_stated_to_be_others():
    with pytest.raises(IntegrityError, match="states the digest"):
        producers(watching(WHISPER, digest="0" * 64), run_by())


def test_what_is_scripted_is_a_producer_of_its_own_and_so_are_other_rules(tmp_path):
    made = []
    for number, answer in enumerate(("yes", "no")):
        file = tmp_path / f"{number}.toml"
        file.write_text(f"[[rules]]\nanswer = '{answer}'")
        where = {"engine": "scripted", "options": {"file": str(file)}}
        with Kit(watching(CHAT), Profile.model_validate({"engines": {"*": where}})) as kit:
            assert kit.producers[0].model.name == f"scripted:{CHAT}"
            made.append(kit.producers[0].producer_id)
    assert len({*made, *producers(watching(CHAT), run_by())}) == 3
