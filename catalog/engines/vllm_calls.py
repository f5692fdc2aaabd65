"""What is asked of vLLM, and in what form: plain values, made without the package.

Every name of vLLM's that evicat uses stands here or in ``vllm_load.py``; a test compares them with the
installed release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from evicat.schemas.errors import RequestError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile

from .base import ChatAnswer, ChatRequest, FinishReason, Picture
from .guidance import guided
from .vllm_options import VllmOptions

SIGN_OF_LIFE_TOKENS: Final = 32
"""After the first token of an answer and each time after so many more the engine is heard of. Every token
would be heard by default, which costs the event loop more than the answers do."""
MOST_PICTURES: Final = 512
"""Of one prompt: as many as a recipe can show. What vLLM reserves goes by tokens, not by this."""
FINISHES: Final[dict[str | None, FinishReason]] = {"stop": "stop", "length": "length"}


def engine_arguments(
    model: ModelRef, location: str, where: ModelProfile, device: str, options: VllmOptions
) -> dict[str, Any]:
    """Arguments of ``AsyncEngineArgs``.

    - No cache of processed pictures (``mm_processor_cache_gb``): every frame is shown once, and a cache would
      hash and copy each for nothing. Prefixes are cached, as vLLM does by default: the words that all windows
      have in common come before their pictures.
    - Pictures stay where they are among the words (``interleave_mm_strings``), also with chat templates that
      know no pictures, since each stands behind its time.
    - No room is reserved for video and sound, which are never sent.
    - Answers are kept to their schema by ``guidance``, which the engine ``transformers`` has too.

    Raises:
        UsageError: the GPUs of the profile do not fit together.
    """
    return {
        "model": location,
        "quantization": model.quantization or None,
        "dtype": options.dtype,
        "max_model_len": options.max_model_len,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "max_num_seqs": where.concurrency,
        "enforce_eager": options.enforce_eager,
        "limit_mm_per_prompt": {"image": MOST_PICTURES, "video": 0, "audio": 0},
        "mm_processor_cache_gb": 0,
        "interleave_mm_strings": True,
        "stream_interval": SIGN_OF_LIFE_TOKENS,
        "structured_outputs_config": {"backend": "guidance"},
        **_gpus(f'[engines."{model.name}"] of the profile', where.gpus, device, options.data_parallel_size),
        **options.engine_args,
    }


def _gpus(section: str, gpus: int, device: str, copies: int) -> dict[str, Any]:
    """Which GPUs, and how the model lies on them."""
    gpus = max(gpus, 1)
    if gpus % copies:
        raise UsageError(f"{section}: gpus = {gpus} are not {copies} equal shares (data_parallel_size)")
    placed: dict[str, Any] = {"tensor_parallel_size": gpus // copies, "data_parallel_size": copies}
    name, _, number = device.partition(":")
    if name == "cuda" and number:
        if gpus > 1:
            raise UsageError(
                f'{section}: gpus = {gpus}, but device = "{device}" names one: write device = "cuda", and '
                "say which GPUs with CUDA_VISIBLE_DEVICES"
            )
        placed["device_ids"] = [int(number)]
    return placed


def schema_of(request: ChatRequest, options: VllmOptions) -> dict[str, Any] | None:
    """The schema that an answer is kept to, with the one form in which its JSON comes; None: none."""
    if request.schema is None or options.structured == "none":
        return None
    return guided(request.schema)


def sampling_arguments(request: ChatRequest, structured: Any) -> dict[str, Any]:
    """Arguments of ``SamplingParams``.

    Penalties that a checkpoint comes with are left out: the recipe decides.

    Args:
        structured: ``StructuredOutputsParams`` of the request's schema, or None.
    """
    return {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "structured_outputs": structured,
    }


def control_tokens(tokens: Iterable[str]) -> re.Pattern[str] | None:
    """Finds the control tokens of a tokenizer in a text; None: it has none."""
    marks = sorted({token for token in tokens if len(token) > 2}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, marks))) if marks else None


def messages_of(request: ChatRequest, control: re.Pattern[str] | None = None) -> list[dict[str, Any]]:
    """The conversation as vLLM's renderer takes it, with decoded pictures.

    ``control`` tokens in a text, as dialogue may have them, are broken up by a blank: they must not end the
    turn or stand for a picture.

    Raises:
        RequestError: a picture is broken.
    """

    def part_of(part: str | Picture) -> dict[str, Any]:
        if isinstance(part, Picture):
            return {"type": "image_pil", "image_pil": part.decoded()}
        return {"type": "text", "text": control.sub(_broken_up, part) if control else part}

    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, {"role": "user", "content": list(map(part_of, request.parts))}]


def _broken_up(found: re.Match[str]) -> str:
    return f"{found[0][:1]} {found[0][1:]}"


def answer_of(output: Any, model: str) -> ChatAnswer:
    """What a finished ``RequestOutput`` says.

    Raises:
        RequestError: the request ended by a failure inside the engine.
    """
    said = output.outputs[0]
    prompt_tokens, completion_tokens = len(output.prompt_token_ids or ()), len(said.token_ids)
    finish = FINISHES.get(said.finish_reason)
    if finish is None:
        raise RequestError(
            f"vLLM ended this request with {said.finish_reason!r} and not with an answer; its log says why",
            raw=said.text,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
    return ChatAnswer(said.text, finish, prompt_tokens, completion_tokens, model)


def unknown_arguments(arguments: Iterable[str], known: Iterable[str]) -> list[str]:
    """Of ``arguments`` those that a release does not know."""
    return sorted(set(arguments) - set(known))
