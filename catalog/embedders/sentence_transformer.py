"""Text models of the sentence-transformers library."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from evicat.catalog.devices import device_of
from evicat.catalog.embedders.base import Embedder, Vectors
from evicat.catalog.embedders.parts import split_text
from evicat.catalog.embedders.vectors import check_query, query_vector, unit_rows
from evicat.catalog.weights import Weights, resolve
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import EmbedderOptions, Profile

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_BATCH = 32
"""Texts at once; the library sorts them by length first. More is not faster on a CPU."""
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Names under which models keep their prompts, as the library looks for them."""


class SentenceTransformerOptions(Model):
    """Prompts put before texts."""

    document_prompt: str | None = None
    """Put before each part of an entry; left out: the model's own, where it has one."""
    query_prompt: str | None = None
    """Put before a query; left out: the model's own, where it has one."""


class SentenceTransformerEmbedder(Embedder[SentenceTransformerOptions]):
    """Takes ``model`` and ``revision`` of ``[embedder]``. Long queries are the mean of their parts."""

    component = "sentence-transformers"
    version = 1
    options_class: ClassVar[type[Model]] = SentenceTransformerOptions

    def __init__(
        self, embedder: EmbedderOptions, options: SentenceTransformerOptions, profile: Profile
    ) -> None:
        super().__init__(embedder, options, profile)
        self._weights = resolve(embedder.model, revision=embedder.revision, profile=profile)

    @property
    def model(self) -> ModelRef:
        return self._weights.ref

    @property
    def dimension(self) -> int:
        found = self._engine.get_embedding_dimension()
        if found is None:
            raise UsageError(f"the model {self.embedder.model!r} does not say how long its vectors are")
        return int(found)

    @cached_property
    def _engine(self) -> SentenceTransformer:
        return _load(self._weights, self.profile)

    def parts(self, text: str) -> list[str]:
        return split_text(text, self._token_starts, self._limit(self._prompt("document")))

    def embed(self, parts: list[str]) -> Vectors:
        return self._embed(self._engine.encode_document, parts, self._prompt("document"))

    def embed_query(self, query: str) -> npt.NDArray[np.float32]:
        prompt = self._prompt("query")
        check_query(query)
        parts = split_text(query, self._token_starts, self._limit(prompt))
        rows = (
            self._embed(self._engine.encode_query, parts, prompt) if parts else np.empty((0, 0), np.float32)
        )
        return query_vector(rows, query, self.embedder.model)

    def _embed(self, encode: Callable[..., Any], texts: list[str], prompt: str) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        rows = encode(
            texts,
            prompt=prompt,
            batch_size=_BATCH,
            normalize_embeddings=False,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return unit_rows(rows)

    def _prompt(self, kind: str) -> str:
        chosen = self.options.query_prompt if kind == "query" else self.options.document_prompt
        if chosen is not None:
            return chosen
        return next((found for name in _PROMPT_NAMES[kind] if (found := self._engine.prompts.get(name))), "")

    def _limit(self, prompt: str) -> int:
        """Tokens of text that the model reads beside ``prompt`` and its special tokens."""
        tokenizer: Any = self._engine.tokenizer
        most = self._engine.max_seq_length or tokenizer.model_max_length
        special: int = tokenizer.num_special_tokens_to_add()
        return int(most) - special - len(self._token_starts(prompt))

    def _token_starts(self, text: str) -> list[int]:
        tokenizer: Any = self._engine.tokenizer
        found = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        return [start for start, _ in found["offset_mapping"]]


def _load(weights: Weights, profile: Profile) -> SentenceTransformer:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging as transformers_logging

    device = device_of(profile)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if profile.threads:
        torch.set_num_threads(profile.threads)
    try:
        return SentenceTransformer(
            weights.location,
            device=device,
            local_files_only=True,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"cannot load the text model {weights.ref.name!r} from {weights.location} on {device}: {error}"
        ) from error
