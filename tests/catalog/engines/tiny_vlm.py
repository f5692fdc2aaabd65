"""A tiny Qwen3-VL with random weights: config, tokenizer, processor and chat template, made in a second.

Random weights would talk without end. So two numbers of each token's embedding are set by hand: they make
the letters of an answer climb through the alphabet and end after its last, and keep lists empty where a
grammar leaves the choice. How the letters climb is up to the random rest, and through it to all of the
prompt.
"""

from __future__ import annotations

import json
import string
from pathlib import Path

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
TOKENS = 700
HIDDEN = 64
ALPHABET = string.ascii_lowercase + string.ascii_uppercase + string.digits
STEP = 16.0
"""Letters that an answer climbs with each token, but for what the random rest makes of it."""
LOUD, SHARP = 4.0, 4.0
"""How much louder than at random the layers speak, and how much more sharply they attend: an answer then
depends on what is shown and asked."""


def save_tiny_vlm(folder: Path, *, seed: int = 2, is_taught: bool = True) -> Path:
    """A checkpoint as the hub has them, in ``folder``; one that is not taught talks without end."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    tokenizer = tiny_tokenizer()
    _save(
        Qwen3VLForConditionalGeneration,
        Qwen3VLConfig(**_config(tokenizer)),
        tokenizer,
        folder,
        seed,
        is_taught,
    )
    pictures = {"patch_size": 16, "size": {"shortest_edge": 32 * 32, "longest_edge": 512 * 512}}
    kind = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen3VLProcessor"}
    (folder / "preprocessor_config.json").write_text(json.dumps(kind | pictures))
    return folder


def save_tiny_text_model(folder: Path, *, seed: int = 2) -> Path:
    """The same without eyes: a Qwen3 that takes words only."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = tiny_tokenizer()
    _save(Qwen3ForCausalLM, Qwen3Config(**_text_config(tokenizer)), tokenizer, folder, seed)
    return folder


def _save(model_class, config, tokenizer, folder: Path, seed: int, is_taught: bool = True) -> None:
    import torch
    from transformers import GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(seed)
    model = model_class(config).eval()
    if is_taught:
        _teach(model, tokenizer)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    model.generation_config = GenerationConfig(**ends)
    model.save_pretrained(folder)
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)


def tiny_tokenizer():
    """A byte-level tokenizer whose merges are those of the prompts of evicat."""
    from importlib.resources import files

    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    prompts = files("evicat.catalog.describers") / "prompts"
    texts = [prompts.joinpath(f"{name}.md").read_text() for name in ("local", "narrative")]
    inner.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL[1:]),
    )


def _text_config(tokenizer) -> dict:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": 32_768,
        "tie_word_embeddings": False,
        "pad_token_id": tokenizer.pad_token_id,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
    }


def _config(tokenizer) -> dict:
    text = _text_config(tokenizer)
    text["rope_parameters"] |= {"mrope_section": [12, 10, 10], "mrope_interleaved": True}
    return {
        "text_config": text,
        "vision_config": {
            "depth": 2,
            "hidden_size": HIDDEN,
            "intermediate_size": 2 * HIDDEN,
            "num_heads": 4,
            "patch_size": 16,
            "out_hidden_size": HIDDEN,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
        },
        "image_token_id": tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        "video_token_id": tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        "vision_start_token_id": tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        "vision_end_token_id": tokenizer.convert_tokens_to_ids("<|vision_end|>"),
        "tie_word_embeddings": False,
    }


def _teach(model, tokenizer) -> None:
    """Let the model prefer, after a token at place ``i``, the token whose place is ``i + STEP``.

    Letters have their places in the alphabet. What ends a string or an answer comes behind the last;
    ``]`` comes right after ``[``; all else is far away. The score of ``j`` after ``i`` gets
    ``-(j - i - STEP)^2``, less what is the same for all ``j``: a product of two numbers of each embedding.
    """
    import torch

    last = len(ALPHABET)
    letters = {letter: place for place, letter in enumerate(ALPHABET, 1)}
    ends = {"<|im_end|>": last + 16, '"': last + 26, "}": last + 60, "]": STEP - 30}
    now, then = torch.zeros(TOKENS), torch.full((TOKENS,), -4.0 * last)
    for token, place in letters.items():
        now[tokenizer.convert_tokens_to_ids(token)] = place
    for token, place in (letters | ends).items():
        then[tokenizer.convert_tokens_to_ids(token)] = place
    for token, number in tokenizer.get_vocab().items():
        now[number] = -30 if token.endswith("[") else now[number]
    ahead = (then - STEP) / last
    into, out = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("q_norm.weight", "k_norm.weight")):
                weight.mul_(SHARP)
            if name.endswith(("o_proj.weight", "down_proj.weight", "linear_fc2.weight")):
                weight.mul_(LOUD)
                weight[:2] = 0.0
        into[:, 2:] *= LOUD
        into[:, 0], into[:, 1] = 1.0, now / last
        out[:, 0], out[:, 1] = -(ahead**2), 2 * ahead
