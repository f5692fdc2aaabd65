"""The names that evicat uses of vLLM, looked up in the sources of the release that is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from . import vllm_names


def test_the_installed_release_has_all_of_them() -> None:
    found = importlib.util.find_spec("vllm")
    if found is None:
        pytest.skip(
            "the package vllm is not installed here (it pins another torch); "
            "vllm_names.py looks at an unpacked wheel"
        )
    (folder,) = found.submodule_search_locations
    assert vllm_names.missing(Path(folder)) == []


def test_a_release_that_renamed_something_is_told(tmp_path: Path) -> None:
    engine = tmp_path / "v1" / "engine" / "async_llm.py"
    engine.parent.mkdir(parents=True)
    engine.write_text(
        "class AsyncLLM:\n"
        "    def __init__(self): self.renderer = 1; self.model_config = 2\n"
        "    async def generate(self, prompt, sampling_params, *, id): ...\n"
        "    def shutdown(self): ...\n"
    )
    lacking = vllm_names.missing(tmp_path)
    assert "v1/engine/async_llm.py: AsyncLLM has no errored" in lacking
    assert "v1/engine/async_llm.py: AsyncLLM.generate takes no request_id" in lacking
    assert not any("has no renderer" in each or "takes no prompt" in each for each in lacking)
    assert "sampling_params.py: StructuredOutputsParams has no json" in lacking
    assert "envs.py: no VLLM_NO_USAGE_STATS" in lacking
