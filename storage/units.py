"""A unit that this process holds: its claim, its journal, and what is not staged yet."""

from __future__ import annotations

import math
import threading
from itertools import groupby

from evicat.schemas.entry import WindowResult
from evicat.schemas.errors import IntegrityError
from evicat.schemas.identity import Unit

from .journal import Journal, JournalLine
from .locks import ProcessLock
from .results import Results
from .staging import ChunkFacts, StagingArea


class OpenUnit:
    """Takes the results of one unit. Not thread-safe by itself: hold ``lock`` around every call."""

    def __init__(
        self, unit: Unit, claim: ProcessLock, journal: Journal, staging: StagingArea, run_id: str
    ) -> None:
        self.unit = unit
        self.lock = threading.RLock()
        self.pending: Results = {}
        self._claim = claim
        self._journal = journal
        self._staging = staging
        self._run_id = run_id
        self._embedder_id = ""
        self._ends: dict[int, int] = {}
        self._entry_ids: dict[int, list[str]] = {}
        self._entry_windows: dict[str, int] = {}

    def start(self, results: Results) -> None:
        """Continue behind ``results``."""
        for result in results.values():
            self._note(result)

    def write(self, result: WindowResult, embedder_id: str) -> None:
        """Journal one result; ``embedder_id`` is empty where it has no vectors.

        Raises:
            IntegrityError: an entry of another unit, or an id that stands twice.
        """
        self._check(result)
        line = JournalLine(unit=self.unit, run_id=self._run_id, embedder_id=embedder_id, result=result)
        self._journal.append(line)
        self._embedder_id = embedder_id or self._embedder_id
        self.pending[result.span.start_us] = result
        self._note(result)

    def stage_whole(self, result: WindowResult, embedder_id: str) -> int:
        """Stage the unit's only result, without a journal; how many rows that makes. Errors as of `write`."""
        self._check(result)
        rows = self._stage([result], embedder_id, result.span.end_us)
        self._note(result)
        return rows

    def is_only(self, result: WindowResult) -> bool:
        """Whether the unit has nothing beside what ``result`` replaces."""
        return not self.pending and set(self._ends) <= {result.span.start_us}

    def seal(self, complete_until_us: int | None = None) -> int:
        """Stage what is pending, and how many rows that makes; without any, only completion is staged."""
        if not self.pending and complete_until_us is None:
            return 0
        rows = self._stage(list(self.pending.values()), self._embedder_id, complete_until_us)
        self._journal.remove()
        self.pending = {}
        return rows

    def _stage(self, results: list[WindowResult], embedder_id: str, complete_until_us: int | None) -> int:
        facts = ChunkFacts(
            unit=self.unit,
            run_id=self._run_id,
            embedder_id=embedder_id if any(result.vectors for result in results) else "",
            complete_until_us=complete_until_us,
        )
        self._staging.stage_chunk(facts, results)
        return sum(1 + len(result.entries) + len(result.vectors) for result in results)

    def tiles_until_us(self) -> int:
        """Where the results end.

        Raises:
            IntegrityError: they leave a gap or overlap.
        """
        end_us = 0
        for start_us, next_end_us in sorted(self._ends.items()):
            if start_us != end_us:
                raise IntegrityError(
                    f"unit {self.unit.unit_id} ({self.unit.scale} of asset {self.unit.asset_id}) was called "
                    f"complete, but its results go on at {start_us} us where {end_us} us was expected"
                )
            end_us = next_end_us
        return end_us

    def release(self) -> None:
        self._claim.release(remove=True)

    def _note(self, result: WindowResult) -> None:
        start_us = result.span.start_us
        self._ends[start_us] = result.span.end_us
        for replaced in self._entry_ids.pop(start_us, []):
            del self._entry_windows[replaced]
        self._entry_ids[start_us] = [entry.entry_id for entry in result.entries]
        self._entry_windows |= dict.fromkeys(self._entry_ids[start_us], start_us)

    def _check(self, result: WindowResult) -> None:
        unit, start_us = self.unit, result.span.start_us
        mine = (unit.unit_id, unit.asset_id, unit.producer_id)
        for entry in result.entries:
            if (entry.unit_id, entry.asset_id, entry.producer_id) != mine:
                raise IntegrityError(f"entry {entry.entry_id} names unit {entry.unit_id}, not {unit.unit_id}")
            if self._entry_windows.get(entry.entry_id, start_us) != start_us:
                raise IntegrityError(f"entry {entry.entry_id} stands in another window of its unit already")
        _check_ids([entry.entry_id for entry in result.entries], result)
        _check_ids([f"{vector.entry_id} part {vector.part}" for vector in result.vectors], result)
        for vector in result.vectors:
            if vector.vector and not all(map(math.isfinite, vector.vector)):
                raise IntegrityError(
                    f"vector of {vector.entry_id} holds a number that is not finite; store None"
                )


def _check_ids(ids: list[str], result: WindowResult) -> None:
    twice = sorted({name for name in ids if ids.count(name) > 1}) if len(set(ids)) < len(ids) else []
    if twice:
        raise IntegrityError(f"{twice[0]} stands twice in the result of {result.span}")


def stage_journal(journal: Journal, staging: StagingArea) -> list[Unit]:
    """Stage what a run that ended early left in a journal; needs the claim of its unit.

    Returns the unit, once per ``inputs_hash`` under which it was staged, in order.
    """
    lines = journal.read()
    staged = []
    for (unit, run_id), group in groupby(lines, lambda line: (line.unit, line.run_id)):
        together = list(group)
        results = {line.result.span.start_us: line.result for line in together}
        embedder_id = max(line.embedder_id for line in together)
        facts = ChunkFacts(unit=unit, run_id=run_id, embedder_id=embedder_id)
        staging.stage_chunk(facts, list(results.values()))
        staged.append(unit)
    journal.remove()
    return staged
