"""Splits without leaks: what re-encodings and trims have in common goes into one split."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import accumulate

from evicat.catalog.reading.arguments import number
from evicat.schemas.errors import UsageError

WHOLE = "all"
"""Name of the only split where none are asked for."""
VECTORS = "vectors"
"""Name of the folder that vectors stand in, beside those of the splits."""


def check_shares(shares: Mapping[str, float]) -> None:
    """Raises:
    UsageError: no shares, a name that cannot be a folder's beside the others, a share that is not
        positive, or a sum that is not 1.
    """
    if not shares:
        raise UsageError("no splits are named; give for example train=0.8,validation=0.1,test=0.1")
    folded = [name.casefold() for name in shares]
    for name, share in shares.items():
        if not name.isidentifier() or name.casefold() == VECTORS or folded.count(name.casefold()) > 1:
            raise UsageError(
                f"a split cannot be called {name!r}: its folder needs a name of letters, digits and '_' "
                f"that is not {VECTORS!r}, and not another's in other letters"
            )
        if not number(share) > 0:
            raise UsageError(f"the share of split {name!r} must be above 0, got {share!r}")
    total = sum(shares.values())
    if abs(total - 1) > 1e-6:
        raise UsageError(f"the shares of the splits must add up to 1, got {total:g}")


def split_of(source_id: str, shares: Mapping[str, float], seed: int) -> str:
    """The split of a source, by its id and ``seed`` alone: it stays there however the library grows.

    SHA-256 of both gives a number in [0, 1), which the shares divide in the order of their names as given.
    """
    digest = hashlib.sha256(f"{seed}:{source_id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    reached = accumulate(shares.values())
    return next((name for name, end in zip(shares, reached, strict=True) if place < end), list(shares)[-1])


def parse_shares(text: str) -> dict[str, float]:
    """``train=0.8,test=0.2`` as shares.

    Raises:
        UsageError: it is none, or the shares do not fit.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, equals, share = part.strip().partition("=")
        try:
            if not equals or not name or not name.isidentifier() or name in shares:
                raise ValueError(part)
            shares[name] = float(share)
        except ValueError:
            raise UsageError(
                f"not a split: {part.strip()!r}; write train=0.8,validation=0.1,test=0.1"
            ) from None
    check_shares(shares)
    return shares
