"""``evicat weights`` tells where weights lie and which they are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evicat.catalog.weights import PACKAGED
from evicat.flows import cli


@pytest.fixture
def evicat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple]:
    """Calls the command line: exit code, output, errors."""

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["evicat", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "words"
    made.mkdir()
    (made / "config.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"weights")
    (made / "README.md").write_text("not read")
    return made


def test_packaged_weights_have_the_digest_that_is_pinned(evicat):
    code, out, _ = evicat("weights", "packaged:whisper-tiny.en")
    facts = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0
    assert facts["name"] == "packaged:whisper-tiny.en"
    assert facts["digest"] == PACKAGED["whisper-tiny.en"].digest
    assert Path(facts["folder"], "model.bin").is_file()
    assert facts["size"].endswith("MB in 4 files")


def test_a_folder_a_name_that_a_profile_maps_to_it_and_its_copy_have_one_digest(evicat, folder, tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text(f'[models]\n"lab/words" = "{folder}"\n')
    named = json.loads(evicat("weights", "lab/words", "--profile", profile, "--revision", "v1", "--json")[1])
    plain = json.loads(evicat("weights", folder, "--json")[1])
    assert named == plain | {"name": "lab/words", "revision": "v1"}
    assert (plain["folder"], plain["files"], plain["bytes"]) == (str(folder), 2, 9)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("lab/words", "fetch it once with a network"),
        ("tiny.en", "model 'Systran/faster-whisper-tiny.en' is not whole in the model hub's cache"),
        ("./nowhere", "does not exist"),
        ("packaged:gpt", "known: packaged:all-MiniLM-L6-v2"),
        ("", "names no model"),
    ],
)
def test_weights_that_are_not_here_say_what_to_do(evicat, monkeypatch, tmp_path, model, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    code, _, errors = evicat("weights", model)
    assert code == 2
    assert said in " ".join(errors.split())
