"""What a run of a tagger did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from evicat.storage.factors import YES

Tell = Callable[[int], None]
"""Is told how many entries were looked at since it was told last, counted once for each factor."""


@dataclass
class Done:
    """What a run of a tagger made."""

    units: set[str] = field(default_factory=set)
    tags: int = 0
    abstained: int = 0
    failed: int = 0
    """Windows without an answer."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    entries_changed: int = 0
    """Entries whose factors are others now."""
    stopped: str = ""
    """Why the run ended before its work did; empty: it did not."""
    seconds: float = 0.0

    def count(self, tags: pa.Table) -> None:
        """Add what was committed, schema ``TAGS``."""
        accepted = tags.filter(pc.equal(tags["verdict"], pa.scalar(YES))).num_rows
        self.tags += accepted
        self.abstained += tags.num_rows - accepted
