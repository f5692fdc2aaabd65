"""Detectors of the real kinds, as small as they can be, with random weights: real code runs them."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertTokenizer,
    CLIPTokenizer,
    GroundingDinoConfig,
    GroundingDinoForObjectDetection,
    GroundingDinoProcessor,
    Owlv2Config,
    Owlv2ForObjectDetection,
    Owlv2Processor,
    OwlViTConfig,
    OwlViTForObjectDetection,
    OwlViTProcessor,
)
from transformers.models.grounding_dino.image_processing_pil_grounding_dino import (
    GroundingDinoImageProcessorPil,
)
from transformers.models.owlv2.image_processing_pil_owlv2 import Owlv2ImageProcessorPil
from transformers.models.owlv2.modeling_owlv2 import Owlv2ObjectDetectionOutput
from transformers.models.owlvit.image_processing_pil_owlvit import OwlViTImageProcessorPil

SIDE = 64
LETTERS = string.ascii_lowercase + string.digits + ".,-'"


def owlv2(folder: Path, side: int = SIDE) -> Path:
    """OWLv2: pictures are padded to a square, then scaled to ``side`` x ``side``; 16 places are looked at."""
    image = Owlv2ImageProcessorPil(size={"height": side, "width": side})
    return _owl(folder, Owlv2Config, Owlv2ForObjectDetection, Owlv2Processor(image, _clip_tokenizer()))


def owlvit(folder: Path, side: int = SIDE) -> Path:
    """OWL-ViT: pictures are squeezed into ``side`` x ``side``."""
    image = OwlViTImageProcessorPil(size={"height": side, "width": side})
    return _owl(folder, OwlViTConfig, OwlViTForObjectDetection, OwlViTProcessor(image, _clip_tokenizer()))


def _owl(folder: Path, config: Any, model: Any, processor: Any) -> Path:
    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokens = {"vocab_size": len(processor.tokenizer), "max_position_embeddings": 16}
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    made = model(  # a name whose first token is number 0 is none
        config(
            text_config=small | tokens | special,
            vision_config=small | {"image_size": SIDE, "patch_size": 16},
            projection_dim=32,
        )
    )
    return _save(folder, made, processor)


def _clip_tokenizer() -> CLIPTokenizer:
    """One token for each letter, another where it ends a word."""
    words = ["!", "<|startoftext|>", "<|endoftext|>", *LETTERS, *(f"{letter}</w>" for letter in LETTERS)]
    vocab = {word: number for number, word in enumerate(words)}
    return CLIPTokenizer(vocab=vocab, merges=[], model_max_length=16)


def grounding_dino(folder: Path, side: int = SIDE) -> Path:
    """Grounding DINO: the shorter side of pictures becomes ``side`` at most; 6 boxes."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    text = {"model_type": "bert", "vocab_size": len(words), "num_hidden_layers": 1, "hidden_size": 32}
    text |= {"intermediate_size": 32, "num_attention_heads": 2, "max_position_embeddings": 512}
    swin = {"model_type": "swin", "embed_dim": 8, "depths": [1, 1, 1], "num_heads": [1, 2, 4]}
    model = GroundingDinoForObjectDetection(
        GroundingDinoConfig(
            backbone_config=swin | {"window_size": 4, "out_indices": [1, 2, 3], "image_size": SIDE},
            text_config=text,
            d_model=32,
            encoder_layers=1,
            decoder_layers=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            num_queries=6,
            num_feature_levels=3,
        )
    )
    image = GroundingDinoImageProcessorPil(size={"shortest_edge": side, "longest_edge": 2 * side})
    return _save(folder, model, GroundingDinoProcessor(image, tokenizer))


BUILD = {"owlv2": owlv2, "owlvit": owlvit, "grounding-dino": grounding_dino}
CLASSES = {
    "owlv2": Owlv2ForObjectDetection,
    "owlvit": OwlViTForObjectDetection,
    "grounding-dino": GroundingDinoForObjectDetection,
}


def finds_red(
    self: Any, pixel_values: torch.Tensor, input_ids: torch.Tensor, **_: Any
) -> Owlv2ObjectDetectionOutput:
    """In place of ``forward``: the first name is found around what is red in the picture that goes in.

    As a trained model would, it tells the box in shares of that picture, as its processor made it.
    """
    boxes, sure = [], []
    for image in pixel_values:
        redness = image[0] - image[1]
        is_red = redness >= (redness.max() + redness.min()) / 2
        rows, columns = (torch.nonzero(is_red.any(axis)).flatten() for axis in (1, 0))
        top, bottom = rows[0] / image.shape[1], (rows[-1] + 1) / image.shape[1]
        left, right = columns[0] / image.shape[2], (columns[-1] + 1) / image.shape[2]
        boxes.append([[(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]])
        sure.append(3.0 if redness.max() > 1 else -5.0)
    is_owl = "owl" in self.config.model_type
    logits = torch.full((len(sure), 1, len(input_ids) // len(sure) if is_owl else 256), -5.0)
    logits[:, 0, 0 if is_owl else 1] = torch.tensor(sure)  # token 0 of a text begins it
    return Owlv2ObjectDetectionOutput(logits=logits, pred_boxes=torch.tensor(boxes))


def _save(folder: Path, model: Any, processor: Any) -> Path:
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.1)  # the library leaves some as the memory was
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
