"""Stratified sampling: of each factor so many entries, so that rare ones are not drowned by common ones."""

from __future__ import annotations

import hashlib
from collections import Counter

import polars as pl

UNTAGGED = ""
"""The stratum of entries that carry no factor."""


def sample(rows: pl.DataFrame, per_factor: int, seed: int) -> pl.DataFrame:
    """At least ``per_factor`` entries of each factor and split, or all that there are; in their order.

    Factors are served from the rarest on; an entry that carries several counts for each of them, so that a
    common one may get more. Which entries are taken follows from their ids and ``seed`` alone.

    Args:
        rows: ``entry_id, factors, split``.
    """
    kept: set[str] = set()
    for _, part in rows.group_by("split", maintain_order=True):
        kept |= _chosen(part.select("entry_id", "factors").rows(), per_factor, seed)
    return rows.filter(pl.col("entry_id").is_in(kept))


def _chosen(rows: list[tuple[str, list[str]]], per_factor: int, seed: int) -> set[str]:
    strata: dict[str, list[str]] = {}
    factors_of = {entry_id: factors or [UNTAGGED] for entry_id, factors in rows}
    for entry_id in sorted(factors_of, key=lambda each: hashlib.sha256(f"{seed}:{each}".encode()).digest()):
        for factor in factors_of[entry_id]:
            strata.setdefault(factor, []).append(entry_id)
    taken: set[str] = set()
    have: Counter[str] = Counter()
    for factor in sorted(strata, key=lambda each: (len(strata[each]), each)):
        for entry_id in strata[factor]:
            if have[factor] >= per_factor:
                break
            if entry_id not in taken:
                taken.add(entry_id)
                have.update(factors_of[entry_id])
    return taken
