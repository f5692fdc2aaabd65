"""What a run did, as numbers and as Markdown."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass, field

from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.errors import AssetError
from evicat.schemas.identity import Unit
from evicat.storage.tables import DERIVED

FAILURES = (Outcome.FAILED, Outcome.REFUSED)
_ANSWERS = (Outcome.DONE, Outcome.PARTIAL, *FAILURES)
_OF_FILES: list[type[AssetError]] = [AssetError, *AssetError.__subclasses__()]
_OF_THE_FILE = {kind().error_class for kind in _OF_FILES}


@dataclass
class Summary:
    """Counts of one run; filled from several threads."""

    catalog: str
    recipe: str
    made: list[str] = field(default_factory=list)
    """Videos for which something was made."""
    unchanged: int = 0
    copies: int = 0
    problems: list[str] = field(default_factory=list)
    """Requests that mean no video."""
    warnings: dict[str, str] = field(default_factory=dict)
    """Video name -> what a user should know of a file that was used all the same."""
    failures: dict[str, str] = field(default_factory=dict)
    """Video name -> why nothing, or not everything, was made of it."""
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    answers: Counter[Outcome] = field(default_factory=Counter)
    """Outcomes of windows, without vectors and broken files: what a canary is judged by."""
    entries: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    vectors: int = 0
    missing: list[str] = field(default_factory=list)
    """Video names whose file vanished, as this run found."""
    notes: list[str] = field(default_factory=list)
    """What the user should know of the run as a whole."""
    stopped: str = ""
    """Why the run ended before all was done; empty: it did not."""
    earlier_failures: int = 0
    """Windows of unchanged videos that failed in an earlier run."""
    video_seconds: float = 0.0
    wall_seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add_result(self, unit: Unit, result: WindowResult) -> None:
        with self._lock:
            self.outcomes[unit.scale, result.outcome] += 1
            self.entries[unit.scale, result.outcome] += len(result.entries)
            if unit.kind not in DERIVED and result.error_class not in _OF_THE_FILE:
                self.answers[result.outcome] += 1
            self.vectors += len(result.vectors)

    def add_failure(self, name: str, reason: str) -> None:
        with self._lock:
            self.failures.setdefault(name, reason)

    def add_warning(self, name: str, doubt: str) -> None:
        with self._lock:
            self.warnings[name] = doubt

    def add_copies(self, count: int) -> None:
        with self._lock:
            self.copies += count

    def add_unchanged(self, name: str) -> None:
        with self._lock:
            if name not in self.made:
                self.unchanged += 1

    def restart(self) -> None:
        """The same videos are gone through once more; what was made stays counted."""
        self.unchanged = self.copies = 0
        self.notes, self.stopped = [], ""

    def add_video(self, name: str, seconds: float) -> None:
        with self._lock:
            self.made.append(name)
            self.video_seconds += seconds

    @property
    def failed_windows(self) -> int:
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome in FAILURES)

    def canary(self) -> tuple[int, int]:
        """How many windows got an answer, and how many of them a failure; broken files and vectors aside."""
        failed = sum(self.answers[outcome] for outcome in FAILURES)
        return sum(self.answers[outcome] for outcome in _ANSWERS), failed

    @property
    def all_done(self) -> bool:
        failed = self.problems or self.failures or self.failed_windows or self.earlier_failures
        return not (failed or self.stopped)

    def headline(self) -> str:
        """One line: how many videos, and what went wrong."""
        counts = [
            (len(self.made), "indexed"),
            (self.unchanged, "unchanged"),
            (self.copies, "copies"),
            (len(self.missing), "missing"),
            (0 if self.made else sum(self.outcomes.values()), "windows made"),
        ]
        failed = [
            (len(self.failures) + len(self.problems), "failed"),
            (self.failed_windows, "failed windows"),
            (self.earlier_failures, "windows that failed in an earlier run"),
        ]
        shown = [f"{count} {what}" for count, what in [*counts, *failed] if count]
        return ", ".join(shown) or "nothing to do"

    def title(self) -> str:
        if self.stopped:
            return f"Stopped ({self.stopped})"
        return "Finished" if self.all_done else "Finished with failures"

    def rows(self) -> list[tuple[str, str, int, int]]:
        """``(scale, outcome, windows, entries)``."""
        return [
            (scale, outcome.value, count, self.entries[scale, outcome])
            for (scale, outcome), count in sorted(self.outcomes.items())
        ]

    def failed(self) -> list[tuple[str, str]]:
        """``(video name, reason)``; the name is empty for a request that means no video."""
        return [("", problem) for problem in self.problems] + sorted(self.failures.items())

    def markdown(self) -> str:
        """The same for the run's artifact."""
        lines = [
            f"## {self.title()}",
            "",
            f"Videos: {self.headline()}. Catalog {_cell(self.catalog)}, recipe {self.recipe}, "
            f"{self.video_seconds:.0f} s of video in {self.wall_seconds:.1f} s.",
        ]
        if self.outcomes:
            lines += ["", "| scale | outcome | windows | entries |", "|---|---|---:|---:|"]
            lines += [f"| {' | '.join(map(str, row))} |" for row in self.rows()]
        lines += [f"\n{_cell(note)}" for note in self.notes]
        for title, rows in (("failed", self.failed()), ("used, but", sorted(self.warnings.items()))):
            if rows:
                lines += ["", f"| {title} | why |", "|---|---|"]
                lines += [f"| {_cell(name)} | {_cell(reason)} |" for name, reason in rows]
        return "\n".join(lines) + "\n"


_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~])")


def _cell(text: str) -> str:
    """``text`` in a table cell, on one line, its characters not taken for markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
