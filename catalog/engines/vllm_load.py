"""Loads vLLM's engine and asks it: the only module that imports the package."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from evicat.catalog.weights import weights_of
from evicat.schemas.errors import (
    EngineDownError,
    EvicatError,
    RequestError,
    TooLongError,
    UsageError,
    first_line,
)
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

from .base import ChatAnswer, ChatRequest
from .supervisor import EngineLostError
from .too_long import says_too_long
from .vllm_calls import (
    answer_of,
    control_tokens,
    engine_arguments,
    messages_of,
    sampling_arguments,
    schema_of,
    unknown_arguments,
)
from .vllm_options import VllmOptions

ENVIRONMENT: Final = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # this process has threads, and a fork of one can hang
    "VLLM_NO_USAGE_STATS": "1",  # nothing is told to anybody else
    "VLLM_LOGGING_LEVEL": "WARNING",  # the progress of a run stays readable
}
"""Set before vLLM is imported, where the user has not set it."""
NO_THOUGHTS: Final = {"enable_thinking": False}
"""For chat templates that know it: an answer begins with its record. vLLM leaves it away for others."""
OTHERWISE: Final = (
    'or run the model by another engine: engine = "transformers" in this process, or engine = "openai" on a '
    "server"
)
NO_MEMORY: Final = (
    "lower max_model_len, or gpu_memory_utilization where something else is on the GPU (raise it where "
    'nothing is), under [engines."MODEL".options] of the profile; take a quantized checkpoint (name it and '
    "its quantization in the recipe); or spread the model over more GPUs (gpus)"
)
SIGNS_OF_NO_MEMORY: Final = (
    *("out of memory", "outofmemory", "free memory on device", "no available memory", "kv cache"),
    *("less than desired gpu memory", "insufficient memory"),
)


async def load(model: ModelRef, where: ModelProfile, profile: Profile, options: VllmOptions) -> LoadedVllm:
    """Load ``model`` onto the GPUs of the profile. Needs a running event loop, and holds it meanwhile.

    Raises:
        UsageError: vLLM cannot be imported, sees no GPU, or does not take the model as the recipe names it.
        EngineDownError: there is too little memory, or its process did not come up.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    _check_device()
    weights = await asyncio.to_thread(weights_of, model, profile)
    who = f"{model.name!r} from {weights.location}"
    config = _configured(
        who, model, engine_arguments(model, weights.location, where, profile.device, options)
    )
    from vllm.v1.engine.async_llm import AsyncLLM

    try:
        engine = AsyncLLM.from_vllm_config(config, enable_log_requests=False, disable_log_stats=True)
    except Exception as error:
        raise not_loaded(who, error) from error
    return LoadedVllm(engine, model.name, options)


def _check_device() -> None:
    try:
        from vllm.platforms import current_platform
    except Exception as error:
        raise UsageError(
            f"vllm is installed but cannot be imported ({first_line(error)}): it needs an environment of "
            f"its own, with the torch that it was built for; see docs/guides/in-process.md; {OTHERWISE}"
        ) from error
    if current_platform.is_unspecified():
        raise UsageError(f"vLLM sees no GPU on this machine: run it where nvidia-smi shows one, {OTHERWISE}")


def _configured(who: str, model: ModelRef, arguments: dict[str, Any]) -> Any:
    """vLLM's own configuration, which reads the checkpoint's but loads nothing.

    Raises:
        UsageError: it does not take what the recipe and the profile say.
    """
    import vllm
    from vllm.config import StructuredOutputsConfig
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = [field.name for field in fields(AsyncEngineArgs)]
    if unknown := unknown_arguments(arguments, known):
        raise UsageError(
            f"vLLM {vllm.__version__} has no engine argument {', '.join(unknown)}: mend engine_args under "
            f'[engines."{model.name}".options] of the profile, or install a release that evicat[vllm] names'
        )
    arguments["structured_outputs_config"] = StructuredOutputsConfig(**arguments["structured_outputs_config"])
    try:
        config = AsyncEngineArgs(**arguments).create_engine_config()
    except Exception as error:
        raise UsageError(
            f"vLLM {vllm.__version__} does not take {who} as the recipe and the profile name it: "
            f"{_whole(error)}"
        ) from error
    found = _quantization_of(config.model_config)
    if found and not model.quantization:
        raise UsageError(
            f"the recipe names {model.name!r} with no quantization, but these weights are quantized as "
            f'{found!r}: write quantization = "{found}" into the recipe, or give other weights'
        )
    return config


def _quantization_of(config: Any) -> str:
    """How the checkpoint says that it is quantized; vLLM has names of its own for its ways to run that."""
    stated = getattr(config.hf_config, "quantization_config", None)
    facts = stated if isinstance(stated, dict) else {}
    return str(facts.get("quant_method") or config.quantization or "")


def not_loaded(who: str, error: BaseException) -> EngineDownError:
    """Why the engine did not come up, and what to do."""
    said = _whole(error)
    if any(sign in f"{type(error).__name__} {said}".lower() for sign in SIGNS_OF_NO_MEMORY):
        return EngineDownError(f"no memory to load {who}: {said}; {NO_MEMORY}")
    return EngineDownError(
        f"vLLM could not load {who}: {said}. Its process says why in the log above. If memory is short: "
        f"{NO_MEMORY}. Else mend what it says, {OTHERWISE}"
    )


class LoadedVllm:
    """A running ``AsyncLLM``: one process (or one for each copy), which batches whatever it is asked."""

    def __init__(self, engine: Any, model: str, options: VllmOptions) -> None:
        self._engine = engine
        self._model = model
        self._options = options
        self._numbers = itertools.count()
        tokenizer = engine.renderer.tokenizer
        self._control = control_tokens([*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()])

    async def answer(self, request: ChatRequest, heard: Callable[[], None]) -> ChatAnswer:
        self._check_takes(request)
        try:
            return await self._answer(request, heard)
        except EvicatError:
            raise
        except Exception as error:
            if self._engine.errored:
                raise EngineLostError(f"its process ended: {first_line(error)}") from error
            said = _whole(error)
            kind = TooLongError if says_too_long(said) else RequestError
            raise kind(f"vLLM refuses this request: {said}") from error

    async def _answer(self, request: ChatRequest, heard: Callable[[], None]) -> ChatAnswer:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        prompt = await self._prompt(request)
        schema = schema_of(request, self._options)
        form = StructuredOutputsParams(json=schema) if schema else None
        sampling = SamplingParams(**sampling_arguments(request, form))
        last = None
        async for output in self._engine.generate(prompt, sampling, f"evicat-{next(self._numbers)}"):
            heard()
            last = output
        if last is None:
            raise RequestError("vLLM ended this request without a word; its log says why")
        return answer_of(last, self._model)

    def _check_takes(self, request: ChatRequest) -> None:
        if request.pictures and not self._engine.model_config.is_multimodal_model:
            raise UsageError(
                f"{self._model!r} takes no pictures: name a vision-language model in the recipe, or give the "
                "weights of one"
            )

    async def _prompt(self, request: ChatRequest) -> Any:
        """The request by the model's own chat template, as vLLM's server makes it of the same messages."""
        from vllm.renderers import ChatParams

        messages = await asyncio.to_thread(messages_of, request, self._control)
        renderer = self._engine.renderer
        template = NO_THOUGHTS | self._options.chat_template_kwargs | {"add_generation_prompt": True}
        tokens = renderer.default_chat_tok_params.with_kwargs(add_special_tokens=False)
        _, (prompt,) = await renderer.render_chat_async(
            [messages], ChatParams(chat_template_kwargs=template), tokens
        )
        return prompt

    async def stop(self) -> None:
        self._engine.shutdown()


def _whole(error: BaseException) -> str:
    """What an error says, and the one that it came from."""
    cause = error.__cause__
    said = str(error).strip() or type(error).__name__
    more = f" ({type(cause).__name__}: {first_line(cause)})" if cause else ""
    return " ".join(said.split())[:800].rstrip(".") + more
