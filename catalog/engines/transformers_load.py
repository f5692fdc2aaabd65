"""Loads a chat model of the ``transformers`` library: one that sees pictures, or one of words alone.

Whatever is wrong with the weights, the device or the memory is told before anything is asked.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evicat.catalog.devices import device_of
from evicat.catalog.weights import weights_of
from evicat.schemas.errors import EngineDownError, EvicatError, MissingExtraError, UsageError, first_line
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import Profile

from .transformers_options import TransformersOptions

NO_MEMORY: Final = (
    "take a checkpoint that is smaller or quantized (name it and its quantization in the recipe), another "
    'device in the profile, or dtype = "bfloat16" under [engines."MODEL".options]; or end what else '
    "uses the memory"
)
PLAIN_GGUF: Final = frozenset({"all_f32", "mostly_f16", "mostly_bf16"})
"""GGUF files that are not quantized."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A model that is ready to answer."""

    name: str
    model: Any
    tokenizer: Any
    processor: Any
    """What applies the chat template: the processor of a model that sees, else the tokenizer."""
    sees: bool
    ends: tuple[int, ...]
    """Tokens that end an answer."""
    pad: int
    vocabulary: int
    """How many tokens it weighs at each step."""
    may_think: bool
    """Whether its chat template can be told to have no thoughts written first."""
    most_tokens: int | None
    """Of prompt and answer together; None: it does not say."""


def load(model: ModelRef, options: TransformersOptions, profile: Profile) -> Chat:
    """Load ``model`` onto the device of the profile.

    Raises:
        UsageError: no such device; no such weights, or broken ones; another quantization than the recipe's;
            no chat template; not a chat model.
        EngineDownError: too little memory.
        MissingExtraError: a package is missing.
    """
    device = device_of(profile)
    folder = Path(weights_of(model, profile).location)
    with _telling(model, folder, device):
        return _load(model, folder, options, device, profile.threads)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that memory is short, on a GPU or on the CPU."""
    import torch

    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


@contextmanager
def _telling(model: ModelRef, folder: Path, device: str) -> Iterator[None]:
    """Errors of the libraries as those of evicat, with the model, where it is from, and what to do."""
    from safetensors import SafetensorError

    where = f"the model {model.name!r} from {folder} on {device}"
    try:
        yield
    except EvicatError:
        raise
    except (
        *(OSError, RuntimeError, ValueError, ImportError, MemoryError),
        *(AttributeError, KeyError, TypeError, SafetensorError),
    ) as error:
        if is_out_of_memory(error):
            raise EngineDownError(f"no memory to load {where}: {first_line(error)}; {NO_MEMORY}") from None
        raise UsageError(
            f"cannot load {where}: {first_line(error)}; give the folder of a whole checkpoint, "
            f'"{model.name}" = "/FOLDER" under [models] of the profile'
        ) from error


def _load(model: ModelRef, folder: Path, options: TransformersOptions, device: str, threads: int) -> Chat:
    import torch
    from transformers import AutoConfig, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if threads:
        torch.set_num_threads(threads)
    gguf = _gguf_of(folder)
    source: dict[str, Any] = {"local_files_only": True} | ({"gguf_file": gguf.name} if gguf else {})
    config = AutoConfig.from_pretrained(folder, **source)
    _check_quantization(model, config, gguf)
    sees, auto_class = _auto_class(config, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", **source)
    processor = _processor(config, tokenizer, folder) if sees else tokenizer
    if not (getattr(processor, "chat_template", None) or tokenizer.chat_template):
        raise UsageError(
            f"{model.name!r} has no chat template, so it cannot be asked: it is a base model, or "
            f"chat_template.jinja is missing from {folder}; take the instruct model"
        )
    loaded = _weights(auto_class, folder, options, device, source)
    chat = _chat(model.name, loaded, tokenizer, processor, sees)
    if len(tokenizer) <= max(chat.ends):  # without its files transformers makes an empty one
        raise UsageError(
            f"the tokenizer in {folder} knows {len(tokenizer)} tokens, and not those that end an answer: "
            "its files are missing; give the folder of a whole checkpoint"
        )
    return chat


def _gguf_of(folder: Path) -> Path | None:
    """The GGUF file of a folder that has nothing else to load."""
    if (folder / "config.json").exists():
        return None
    files = sorted(folder.glob("*.gguf"))
    if len(files) > 1:
        raise UsageError(
            f"{folder} holds several GGUF files ({', '.join(each.name for each in files)}); "
            "give a folder with one"
        )
    for package in ("gguf", "accelerate") if files else ():
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "transformers")
    return files[0] if files else None


def _check_quantization(model: ModelRef, config: Any, gguf: Path | None) -> None:
    """What the recipe names and what the weights are has to be the same: nothing is quantized here."""
    found = _gguf_type(gguf) if gguf else _quantization_of(config)
    stated = model.quantization.lower()
    if stated == found:
        return
    if not found:
        raise UsageError(
            f"the recipe names {model.name!r} with quantization = {model.quantization!r}, but these "
            "weights are not quantized, and the engine transformers quantizes nothing itself: give weights "
            "that are, or leave quantization out of the recipe"
        )
    said = f"quantization = {model.quantization!r}" if stated else "no quantization"
    raise UsageError(
        f"the recipe names {model.name!r} with {said}, but these weights are quantized as {found!r}: "
        f'write quantization = "{found}" into the recipe, or give other weights'
    )


def _quantization_of(config: Any) -> str:
    """How a checkpoint says that it is quantized; empty: not."""
    found = getattr(config, "quantization_config", None)
    if found is None:
        return ""
    facts = found if isinstance(found, dict) else found.to_dict()
    method = facts.get("quant_method") or "unnamed"
    return str(getattr(method, "value", method)).lower()


def _gguf_type(file: Path) -> str:
    """How a GGUF file says that it is quantized, such as ``q4_k_m``; empty: not."""
    from gguf import GGUFReader, LlamaFileType

    field = GGUFReader(file).get_field("general.file_type")
    if field is None:
        return "unnamed"
    name = LlamaFileType(field.contents()).name.lower()
    return "" if name in PLAIN_GGUF else name.removeprefix("mostly_")


def _auto_class(config: Any, folder: Path) -> tuple[bool, Any]:
    """Whether the model sees pictures, and what loads it."""
    from transformers import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
    )

    if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return True, AutoModelForImageTextToText
    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return False, AutoModelForCausalLM
    raise UsageError(
        f"{folder} holds no chat model that transformers knows, but {config.model_type!r}; take a "
        "vision-language model, or a causal language model for words alone"
    )


def _processor(config: Any, tokenizer: Any, folder: Path) -> Any:
    """The model's processor without its part for videos: every frame is a picture of its own.

    That part needs torchvision. Pictures are scaled by Pillow wherever this runs, since torchvision scales
    them a little differently.
    """
    from transformers import AutoImageProcessor
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    if type(config) not in PROCESSOR_MAPPING:
        raise UsageError(
            f"transformers has no processor for {config.model_type!r}, so pictures cannot be shown"
        )
    whole: Any = PROCESSOR_MAPPING[type(config)]

    class Still(whole):  # type: ignore[misc]
        @classmethod
        def get_attributes(cls) -> list[str]:
            return [name for name in whole.get_attributes() if "video" not in name]

    auto: Any = AutoImageProcessor
    pictures = auto.from_pretrained(folder, backend="pil", local_files_only=True)
    facts, _ = Still.get_processor_dict(folder, local_files_only=True)
    return Still.from_args_and_dict([pictures, tokenizer], facts)


def _weights(
    auto_class: Any, folder: Path, options: TransformersOptions, device: str, source: dict[str, Any]
) -> Any:
    chosen = {} if options.attention == "auto" else {"attn_implementation": options.attention}
    model, told = auto_class.from_pretrained(
        folder, dtype=options.dtype, output_loading_info=True, **chosen, **source
    )
    if missing := sorted(told["missing_keys"]):
        shown = ", ".join(missing[:3])
        raise UsageError(
            f"the weights in {folder} are incomplete: {len(missing)} of the model's tensors are missing, "
            f"such as {shown}; give the folder of a whole checkpoint"
        )
    return model.to(device).eval()


def _chat(name: str, model: Any, tokenizer: Any, processor: Any, sees: bool) -> Chat:
    from transformers import GenerationConfig

    ends = _ends(model, tokenizer)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad)
    # Penalties and sampling that a checkpoint comes with are left out: the recipe decides.
    settings: Any = GenerationConfig
    model.generation_config = settings(eos_token_id=list(ends), pad_token_id=pad)
    text = model.config.get_text_config()
    return Chat(
        name=name,
        model=model,
        tokenizer=tokenizer,
        processor=processor,
        sees=sees,
        ends=ends,
        pad=pad,
        vocabulary=int(model.get_output_embeddings().weight.shape[0]),
        may_think="enable_thinking" in str(processor.chat_template or tokenizer.chat_template),
        most_tokens=getattr(text, "max_position_embeddings", None),
    )


def _ends(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Tokens that end an answer, by the checkpoint and by its tokenizer."""
    stated = [model.generation_config.eos_token_id, tokenizer.eos_token_id]
    flat = [each for found in stated for each in (found if isinstance(found, list) else [found])]
    ends = tuple(dict.fromkeys(each for each in flat if each is not None))
    if not ends:
        raise UsageError("this model names no token that ends an answer (eos_token_id)")
    return ends
