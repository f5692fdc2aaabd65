"""Settings of the engine ``vllm``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from evicat.schemas.model import Model

SET_HERE = frozenset(
    {
        *("model", "revision", "tokenizer", "quantization", "dtype", "device_ids", "max_model_len"),
        *("gpu_memory_utilization", "tensor_parallel_size", "data_parallel_size", "max_num_seqs"),
        *("enforce_eager", "limit_mm_per_prompt", "mm_processor_cache_gb", "interleave_mm_strings"),
        *("stream_interval", "structured_outputs_config", "trust_remote_code"),
    }
)
"""Arguments of vLLM that the recipe, other fields of the profile or the engine decide."""


class VllmOptions(Model):
    """Settings of the engine ``vllm``, written under ``[engines."MODEL".options]`` of the profile.

    They say how fast, and in how much memory. What computes the numbers (``dtype``, ``structured``, much of
    ``engine_args``) may let another of two close tokens win, as another server would: keep it as it is for a
    whole catalog. How many GPUs the model is spread over is ``gpus`` of the profile, and how many requests
    are worked on at once its ``concurrency``.
    """

    max_model_len: int = Field(default=32_768, ge=1024)
    """Tokens that a prompt and its answer may have together. The GPU must have room for one such request
    beside the weights, and what a model is able to take (a quarter of a million) is more than many GPUs have.
    A recipe's `max_prompt_tokens` plus twice its `max_tokens` must fit."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of each GPU's memory that is taken at the start, for weights and for what requests have in common
    and apart. More lets more requests run at once; what is left is for Whisper and others on the same GPU."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Numbers that are computed with; ``auto``: as the checkpoint has them. ``float16`` is for GPUs that have
    no ``bfloat16``."""
    data_parallel_size: int = Field(default=1, ge=1)
    """Copies of the model, each on an equal share of `gpus`. A model that fits on one GPU is faster in
    copies; one that does not must be spread, with one copy."""
    enforce_eager: bool = False
    """No CUDA graphs: loads sooner and leaves some memory free, but answers slower. For trials, or where
    memory is short by a little."""
    structured: Literal["grammar", "none"] = "grammar"
    """How answers come to have their form: each token is kept to the JSON schema of the request; or by the
    prompt alone. Every answer is checked against the schema afterwards, whichever it is."""
    chat_template_kwargs: dict[str, Any] = Field(default={})
    """Arguments of the model's chat template. ``enable_thinking`` is false where a template knows it: a model
    that thinks first would think inside its answer."""
    restarts: int = Field(default=3, ge=0)
    """How often an engine that died, hangs or does not load is loaded again, without an answer between,
    before the run ends."""
    engine_args: dict[str, Any] = Field(default={})
    """Further arguments of vLLM's own ``AsyncEngineArgs``, such as
    ``{ mm_encoder_tp_mode = "data", kv_cache_dtype = "fp8" }``."""

    @field_validator("engine_args")
    @classmethod
    def _leaves_alone_what_is_set_here(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(SET_HERE & value.keys()):
            raise ValueError(
                f"{', '.join(taken)}: decided by the recipe, by another field of the profile or by evicat, "
                "and must not stand in engine_args"
            )
        return value
