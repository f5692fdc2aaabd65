"""The engine `transformers` over a bare loop of `generate`: same tiny model, frames and batches. Bound: 1.15.

Once without a grammar, once with each answer kept to a JSON schema; then the bare loop calls llguidance
itself. The model is as small as can be, so that what is measured is what the engine adds.
"""

from __future__ import annotations

import importlib.util
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sides import compare, end

from evicat.catalog.engines.base import ChatRequest, Engine, Picture
from evicat.catalog.engines.loaders import open_engine
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

REQUESTS, BATCH, FRAMES, TOKENS = 32, 8, 4, 64
MODEL = "lab/tiny-vl"
SCHEMA = {
    "type": "object",
    "properties": {"scene": {"type": "string", "minLength": 600}},
    "required": ["scene"],
    "additionalProperties": False,
}
BOUND = 1.15


def tiny_model(folder: Path) -> Path:
    """The tiny model of the tests, which talks until it is cut."""
    file = Path(__file__).parents[1] / "tests" / "catalog" / "engines" / "tiny_vlm.py"
    spec = importlib.util.spec_from_file_location("evicat_tiny_vlm", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Path(module.save_tiny_vlm(folder, is_taught=False))


def frames() -> list[list[bytes]]:
    """JPEG files of 256 x 144 pixels, no two alike, some for each request."""
    from PIL import Image

    def jpeg(number: int) -> bytes:
        noise = np.random.default_rng(number).integers(0, 256, (9, 16, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(noise).resize((256, 144)).save(file, "JPEG")
        return file.getvalue()

    return [[jpeg(FRAMES * request + frame) for frame in range(FRAMES)] for request in range(REQUESTS)]


def question(shown: list[bytes], schema: dict[str, Any] | None) -> ChatRequest:
    parts = [part for jpeg in shown for part in ("Frame:", Picture(jpeg, 256, 144))]
    return ChatRequest("You watch.", (*parts, "What happens?"), max_tokens=TOKENS, schema=schema)


class Bare:
    """What one writes by hand: prompts, `generate`, texts, batch by batch."""

    def __init__(self, folder: Path) -> None:
        from llguidance.hf import from_tokenizer
        from transformers import (
            AutoImageProcessor,
            AutoTokenizer,
            Qwen3VLForConditionalGeneration,
            Qwen3VLProcessor,
        )

        class Still(Qwen3VLProcessor):
            @classmethod
            def get_attributes(cls) -> list[str]:
                return ["image_processor", "tokenizer"]

        auto: Any = AutoImageProcessor
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left")
        pictures = auto.from_pretrained(folder, backend="pil")
        still: Any = Still
        self.processor = still(pictures, tokenizer, chat_template=tokenizer.chat_template)
        vlm: Any = Qwen3VLForConditionalGeneration
        self.model = vlm.from_pretrained(folder).eval()
        self.tokens = from_tokenizer(tokenizer, eos_token=tokenizer.eos_token_id)

    def answer(self, shown: list[list[bytes]], schema: dict[str, Any] | None) -> list[str]:
        import torch

        texts = []
        with torch.inference_mode():
            for start in range(0, len(shown), BATCH):
                texts += self._batch(shown[start : start + BATCH], schema)
        return texts

    def _batch(self, shown: list[list[bytes]], schema: dict[str, Any] | None) -> list[str]:
        inputs = self.processor.apply_chat_template(
            [self._chat(jpegs) for jpegs in shown],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            processor_kwargs={"padding": True, "return_tensors": "pt"},
        )
        prompt = inputs["input_ids"].shape[1]
        keep = [self._keeper(schema, len(shown), prompt)] if schema else []
        written = self.model.generate(**inputs, do_sample=False, max_new_tokens=TOKENS, logits_processor=keep)
        texts: list[str] = self.processor.tokenizer.batch_decode(
            written[:, prompt:], skip_special_tokens=True
        )
        return texts

    def _chat(self, jpegs: list[bytes]) -> list[dict[str, Any]]:
        from PIL import Image

        parts: list[dict[str, Any]] = []
        for jpeg in jpegs:
            image = Image.open(io.BytesIO(jpeg)).convert("RGB")
            parts += [{"type": "text", "text": "Frame:"}, {"type": "image", "image": image}]
        parts.append({"type": "text", "text": "What happens?"})
        return [
            {"role": "system", "content": [{"type": "text", "text": "You watch."}]},
            {"role": "user", "content": parts},
        ]

    def _keeper(self, schema: dict[str, Any], rows: int, prompt: int) -> Any:
        import torch
        from llguidance import LLExecutor, LLMatcher
        from llguidance import numpy as bits

        from evicat.catalog.engines.guidance import guided

        grammar = LLMatcher.grammar_from_json_schema(guided(schema))
        matchers = [LLMatcher(self.tokens, grammar) for _ in range(rows)]
        executor, places = LLExecutor(), torch.arange(32, dtype=torch.int32)

        def keep(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            if input_ids.shape[1] > prompt:
                for matcher, token in zip(matchers, input_ids[:, -1].tolist(), strict=True):
                    matcher.consume_token(token)
            mask = bits.allocate_token_bitmask(rows, scores.shape[1])
            bits.fill_next_token_bitmask_par(executor, list(zip(matchers, range(rows), strict=True)), mask)
            may = (torch.from_numpy(mask).unsqueeze(-1) >> places & 1).flatten(1)[:, : scores.shape[1]]
            return scores.masked_fill(may == 0, -torch.inf)

        return keep


def engine_answers(engine: Engine, shown: list[list[bytes]], schema: dict[str, Any] | None) -> list[str]:
    futures = [engine.submit(question(jpegs, schema)) for jpegs in shown]
    return [future.result().text for future in futures]


def main() -> None:
    shown = frames()
    with tempfile.TemporaryDirectory() as name:
        folder = tiny_model(Path(name))
        where = ModelProfile(engine="transformers", concurrency=2 * BATCH, options={"batch_size": BATCH})
        profile = Profile(engines={MODEL: where}, models={MODEL: str(folder)})
        engine, bare = open_engine(ModelRef(name=MODEL), profile), Bare(folder)
        within = []
        for what, schema in (("no grammar", None), ("a JSON schema", SCHEMA)):
            if engine_answers(engine, shown, schema) != bare.answer(shown, schema):
                raise SystemExit(f"the two sides answer differently with {what}: there is nothing to compare")
            within.append(
                compare(
                    f"engine transformers / bare generate, {what}",
                    ours=lambda schema=schema: engine_answers(engine, shown, schema),  # type: ignore[misc]
                    other=lambda schema=schema: bare.answer(shown, schema),  # type: ignore[misc]
                    bound=BOUND,
                    runs=3,
                )
            )
        engine.close()
    end(*within)


if __name__ == "__main__":
    main()
