"""Keeps answers to their JSON schema while they are written: after each token, which ones may come next.

``llguidance`` reads the schema and the tokenizer. Its mask has one bit for each token of each row. JSON comes
in one form (``guidance.py``), with fields in the order of the schema.
"""

from __future__ import annotations

import os
from typing import Any, Final

from evicat.schemas.errors import UsageError
from evicat.schemas.model import canonical_json

from .guidance import guided

WITHOUT_GRAMMAR: Final = (
    'write structured = "none" under [engines."MODEL".options] of the profile; then the prompt alone asks '
    "for the form, and answers are checked all the same"
)


class Grammars:
    """Grammars of one tokenizer, each read once.

    Args:
        tokenizer: Of the model; a fast one, for slow ones do not tell their tokens' bytes.
        vocabulary: How many tokens the model weighs; often more than the tokenizer knows.
        ends: Tokens that end an answer.

    Raises:
        UsageError: the tokenizer is of a kind that llguidance cannot read.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, ends: list[int]) -> None:
        import llguidance
        from llguidance.hf import from_tokenizer

        try:
            self._tokens = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=ends)
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"llguidance cannot read this tokenizer ({error}), so answers cannot be kept to their "
                f"schema; {WITHOUT_GRAMMAR}"
            ) from None
        self._executor = llguidance.LLExecutor(num_threads=min(4, os.cpu_count() or 1))
        self._read: dict[str, Any] = {}

    def matcher(self, schema: dict[str, Any]) -> Any:
        """A ``LLMatcher`` at the start of an answer.

        Raises:
            UsageError: the schema asks for what llguidance cannot keep to.
        """
        from llguidance import LLMatcher

        key = canonical_json(schema)
        if key not in self._read:
            grammar = LLMatcher.grammar_from_json_schema(guided(schema))
            made = LLMatcher(self._tokens, grammar, log_level=0)
            if made.is_error():
                raise UsageError(
                    "llguidance cannot keep answers to the schema that the recipe asks for: "
                    f"{made.get_error()}; {WITHOUT_GRAMMAR}"
                )
            self._read[key] = made
        return self._read[key].deep_copy()

    def masks(self, matchers: list[tuple[Any, int]], rows: int, vocabulary: int) -> Any:
        """Bits of the tokens that may come next, ``int32[rows, vocabulary / 32]``.

        ``matchers`` come with their rows; a row without one may have any token. One that fails is
        in its error state afterwards.
        """
        from llguidance import numpy as bits

        mask = bits.allocate_token_bitmask(rows, vocabulary)
        if matchers:
            bits.fill_next_token_bitmask_par(self._executor, matchers, mask)
        return mask
