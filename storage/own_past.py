"""What becomes outdated where a narrative changes that later windows of its own unit were told of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import pyarrow.compute as pc

from .rows import Row, producer_from_row
from .transact import Tables


def read_their_past(tables: Tables, producers: Collection[str]) -> set[str]:
    """Those of the producers whose windows read the narrative before them."""
    if not producers:
        return set()
    wanted = pc.field("producer_id").isin(sorted(producers))
    rows = tables.dataset("producers").to_table(columns=["producer_id", "facts"], filter=wanted).to_pylist()
    return {row["producer_id"] for row in rows if producer_from_row(row).options.get("reads_past")}


def told_of(
    changed_starts_s: Iterable[float], windows: Iterable[Row], made: set[tuple[str, float]]
) -> list[Row]:
    """Stored windows that were told of a narrative that came, went or changed at one of these times.

    A window is told of the last narrative before it: so the next window is outdated, and those after it up
    to the next one that has a narrative. Later ones become outdated when that narrative changes.

    Args:
        changed_starts_s: Starts of windows whose narrative changed.
        windows: Coverage rows of the unit's windows, as they are after the batch.
        made: Unit and start of the windows that the batch wrote: they read what was there then.
    """
    units: dict[str, list[Row]] = defaultdict(list)
    for row in windows:
        units[row["unit_id"]].append(row)
    found: dict[tuple[str, float], Row] = {}
    for rows in units.values():
        rows.sort(key=lambda row: float(row["start_s"]))
        for start_s in changed_starts_s:
            for row in rows:
                key = row["unit_id"], row["start_s"]
                if row["start_s"] <= start_s:
                    continue
                if key not in made:
                    found[key] = row
                if row["entries"]:
                    break
    return list(found.values())
