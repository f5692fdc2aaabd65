"""What is asked of vLLM; the package is not needed for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from evicat.catalog.engines.base import ChatRequest, Picture
from evicat.catalog.engines.vllm_calls import (
    answer_of,
    control_tokens,
    engine_arguments,
    messages_of,
    sampling_arguments,
    unknown_arguments,
)
from evicat.catalog.engines.vllm_options import VllmOptions
from evicat.schemas.errors import RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile

MODEL = ModelRef(name="lab/eye-9b", quantization="awq")


def arguments(device: str = "cuda", options: dict[str, Any] | None = None, **where: Any) -> dict[str, Any]:
    return engine_arguments(MODEL, "/weights", ModelProfile(**where), device, VllmOptions(**(options or {})))


def finished(**said: Any) -> SimpleNamespace:
    whole = {"text": "{}", "token_ids": [1, 2, 3], "finish_reason": "stop"} | said
    return SimpleNamespace(prompt_token_ids=[1] * 7, outputs=[SimpleNamespace(**whole)])


def test_the_recipe_decides_the_model_and_the_profile_how_much_of_the_gpu_it_gets() -> None:
    found = arguments(concurrency=64, options={"max_model_len": 16_384, "gpu_memory_utilization": 0.8})
    assert (found["model"], found["quantization"], found["dtype"]) == ("/weights", "awq", "auto")
    assert (found["max_model_len"], found["gpu_memory_utilization"], found["max_num_seqs"]) == (
        16_384,
        0.8,
        64,
    )


def test_a_recipe_without_quantization_leaves_it_to_the_checkpoint() -> None:
    plain = engine_arguments(ModelRef(name="eye"), "/weights", ModelProfile(), "cuda", VllmOptions())
    assert plain["quantization"] is None


def test_frames_are_not_cached_and_nothing_is_reserved_for_video_and_sound() -> None:
    found = arguments()
    assert found["mm_processor_cache_gb"] == 0
    assert found["limit_mm_per_prompt"] == {"image": 512, "video": 0, "audio": 0}


@pytest.mark.parametrize(
    ("gpus", "copies", "device", "placed"),
    [
        (1, 1, "cpu", {"tensor_parallel_size": 1, "data_parallel_size": 1}),
        (0, 1, "cuda", {"tensor_parallel_size": 1, "data_parallel_size": 1}),
        (1, 1, "cuda:1", {"tensor_parallel_size": 1, "data_parallel_size": 1, "device_ids": [1]}),
        (8, 1, "cuda", {"tensor_parallel_size": 8, "data_parallel_size": 1}),
        (8, 4, "cuda", {"tensor_parallel_size": 2, "data_parallel_size": 4}),
    ],
)
def test_a_model_lies_on_the_gpus_of_the_profile(
    gpus: int, copies: int, device: str, placed: dict[str, Any]
) -> None:
    found = arguments(device, {"data_parallel_size": copies}, gpus=gpus)
    assert {name: found[name] for name in placed} == placed
    assert ("device_ids" in found) == ("device_ids" in placed)


def test_gpus_that_do_not_fit_together_are_told() -> None:
    with pytest.raises(UsageError, match="gpus = 3 are not 2 equal shares"):
        arguments(options={"data_parallel_size": 2}, gpus=3)
    with pytest.raises(UsageError, match=r'gpus = 2, but device = "cuda:1" names one.*CUDA_VISIBLE_DEVICES'):
        arguments("cuda:1", gpus=2)


def test_further_arguments_reach_vllm_but_none_that_are_decided_elsewhere() -> None:
    assert arguments(options={"engine_args": {"kv_cache_dtype": "fp8"}})["kv_cache_dtype"] == "fp8"
    with pytest.raises(ValidationError, match="max_model_len, model: decided by the recipe"):
        VllmOptions(engine_args={"model": "other", "max_model_len": 1})


def test_arguments_that_a_release_does_not_know_are_found() -> None:
    assert unknown_arguments(["model", "colour", "age"], ["model", "dtype"]) == ["age", "colour"]


def test_sampling_is_that_of_the_request() -> None:
    request = ChatRequest("", ("a",), max_tokens=50, temperature=0.3, seed=7)
    form = object()
    assert sampling_arguments(request, form) == {
        "temperature": 0.3,
        "max_tokens": 50,
        "seed": 7,
        "structured_outputs": form,
    }


def test_words_that_all_windows_share_come_first_and_pictures_stay_in_their_places(jpeg: bytes) -> None:
    picture = Picture(jpeg, 32, 32)
    parts = ("Dialogue: none.", "Frame at 0:01.0:", picture, "Frame at 0:02.0:", picture)
    system, user = messages_of(ChatRequest("You watch.", parts, max_tokens=10))
    assert system == {"role": "system", "content": "You watch."}
    assert [part.get("text") for part in user["content"]] == [*parts[:2], None, parts[3], None]
    shown = user["content"][2]["image_pil"]
    assert (shown.size, shown.mode) == ((32, 32), "RGB")


def test_a_tokenizer_without_control_tokens_changes_no_text() -> None:
    assert control_tokens([]) is None
    (message,) = messages_of(ChatRequest("", ("<s>",), max_tokens=10), control_tokens([]))
    assert message["content"] == [{"type": "text", "text": "<s>"}]


def test_without_a_system_prompt_there_is_no_such_message() -> None:
    assert [each["role"] for each in messages_of(ChatRequest("", ("a",), max_tokens=10))] == ["user"]


def test_a_broken_picture_is_the_fault_of_its_request() -> None:
    with pytest.raises(RequestError, match="a picture of 7 bytes cannot be read"):
        messages_of(ChatRequest("", (Picture(b"no JPEG", 1, 1),), max_tokens=10))


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_answer_has_its_text_its_end_and_its_tokens(finish: str) -> None:
    answer = answer_of(finished(finish_reason=finish), "eye")
    assert (answer.text, answer.finish_reason, answer.model) == ("{}", finish, "eye")
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 3)


@pytest.mark.parametrize("finish", ["error", "abort", None])
def test_what_ended_by_a_failure_is_no_answer(finish: str | None) -> None:
    with pytest.raises(RequestError, match="vLLM ended this request with") as caught:
        answer_of(finished(finish_reason=finish, text="half"), "eye")
    assert (caught.value.raw, caught.value.prompt_tokens, caught.value.completion_tokens) == ("half", 7, 3)
