"""Text models behind a server that speaks OpenAI's protocol (``POST /v1/embeddings``)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evicat.catalog.embedders.base import Embedder, Vectors
from evicat.catalog.embedders.parts import split_text
from evicat.catalog.embedders.vectors import check_query, query_vector, unit_rows
from evicat.catalog.served import Endpoint
from evicat.schemas.errors import IntegrityError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import EmbedderOptions, Profile

_BATCH = 64
"""Texts of a request."""


class ServedOptions(Model):
    """How texts are cut for a model whose tokenizer is not at hand, and what is put before them."""

    max_tokens: int = Field(default=8000, ge=16)
    """Tokens that the model reads. A text counts as one token per byte of UTF-8, which is never too few for
    the tokenizers of text models; OpenAI's embedding models read 8,192."""
    document_prompt: str = ""
    """Put before each part of an entry."""
    query_prompt: str = ""
    """Put before a query."""


class ServedEmbedder(Embedder[ServedOptions]):
    """Takes ``model`` and ``revision`` of ``[embedder]``. Long queries are the mean of their parts.

    Raises:
        IntegrityError: the server's vectors change their length from one call to another.
    """

    component = "openai"
    version = 1
    options_class: ClassVar[type[Model]] = ServedOptions

    def __init__(self, embedder: EmbedderOptions, options: ServedOptions, profile: Profile) -> None:
        super().__init__(embedder, options, profile)
        for name in ("document_prompt", "query_prompt"):
            if len(getattr(options, name).encode()) > options.max_tokens // 2:
                raise UsageError(f"{name} takes more than half of max_tokens = {options.max_tokens}")
        self._endpoint = Endpoint(embedder.model, profile)
        self._dimension: int | None = None

    @property
    def model(self) -> ModelRef:
        return ModelRef(name=self.embedder.model, revision=self.embedder.revision)

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._ask(["a"])
        assert self._dimension is not None
        return self._dimension

    def parts(self, text: str) -> list[str]:
        return self._parts(text, self.options.document_prompt)

    def embed(self, parts: list[str]) -> Vectors:
        return self._embed(parts, self.options.document_prompt)

    def embed_query(self, query: str) -> npt.NDArray[np.float32]:
        check_query(query)
        parts = self._parts(query, self.options.query_prompt)
        rows = self._embed(parts, self.options.query_prompt) if parts else np.empty((0, 0), np.float32)
        return query_vector(rows, query, self.embedder.model)

    def _parts(self, text: str, prompt: str) -> list[str]:
        return split_text(text, _byte_starts, self.options.max_tokens - len(prompt.encode()))

    def _embed(self, texts: list[str], prompt: str) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        batches = (texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH))
        return np.concatenate([self._ask([prompt + text for text in batch]) for batch in batches])

    def _ask(self, texts: list[str]) -> Vectors:
        """One request: ``(len(texts), dimension)``."""
        with self._endpoint.answering() as client:
            answer = client.embeddings.create(model=self.embedder.model, input=texts, encoding_format="float")
        self._endpoint.check_model(answer.model)
        rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        if len(rows) != len(texts):
            raise UsageError(
                f"the server at {self._endpoint.url} gave {len(rows)} vectors for {len(texts)} texts"
            )
        self._check_dimension(rows)
        return unit_rows(rows)

    def _check_dimension(self, rows: list[Any]) -> None:
        for row in rows:
            if self._dimension is None:
                self._dimension = len(row)
            if len(row) != self._dimension:
                raise IntegrityError(
                    f"the server at {self._endpoint.url} gave a vector of {len(row)} numbers for "
                    f"{self.embedder.model!r}, after vectors of {self._dimension}: another model answers "
                    "under the same name; nothing more is written"
                )


def _byte_starts(text: str) -> list[int]:
    return [place for place, letter in enumerate(text) for _ in letter.encode(errors="replace")]
