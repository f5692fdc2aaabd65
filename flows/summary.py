"""What a run did, as numbers and as Markdown."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.identity import Unit

FAILURES = (Outcome.FAILED, Outcome.REFUSED)


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
    entries: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    video_seconds: float = 0.0
    wall_seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add_result(self, unit: Unit, result: WindowResult) -> None:
        with self._lock:
            self.outcomes[unit.scale, result.outcome] += 1
            self.entries[unit.scale] += len(result.entries)
            self.vectors += len(result.vectors)

    def add_failure(self, name: str, reason: str) -> None:
        with self._lock:
            self.failures[name] = reason

    def add_warning(self, name: str, doubt: str) -> None:
        with self._lock:
            self.warnings[name] = doubt

    def add_copy(self) -> None:
        with self._lock:
            self.copies += 1

    def add_unchanged(self) -> None:
        with self._lock:
            self.unchanged += 1

    def add_video(self, name: str, seconds: float) -> None:
        with self._lock:
            self.made.append(name)
            self.video_seconds += seconds

    @property
    def failed_windows(self) -> int:
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome in FAILURES)

    @property
    def all_done(self) -> bool:
        return not (self.problems or self.failures or self.failed_windows)

    def headline(self) -> str:
        """One line: how many videos, and what went wrong."""
        counts = [(len(self.made), "indexed"), (self.unchanged, "unchanged"), (self.copies, "copies")]
        failed = [
            (len(self.failures) + len(self.problems), "failed"),
            (self.failed_windows, "failed windows"),
        ]
        shown = [f"{count} {what}" for count, what in [*counts, *failed] if count]
        return ", ".join(shown) or "nothing to do"

    def markdown(self) -> str:
        """A short report for people: counts, outcomes by scale, failures by name."""
        lines = [
            f"## {'Finished' if self.all_done else 'Finished with failures'}",
            "",
            f"Videos: {self.headline()}. Catalog `{self.catalog}`, recipe `{self.recipe}`, "
            f"{self.video_seconds:.0f} s of video in {self.wall_seconds:.1f} s.",
        ]
        if self.outcomes:
            lines += ["", "| scale | outcome | windows | entries |", "|---|---|---:|---:|"]
            for (scale, outcome), count in sorted(self.outcomes.items()):
                entries = self.entries[scale] if outcome == Outcome.DONE else 0
                lines.append(f"| {scale} | {outcome} | {count} | {entries} |")
        if self.failures or self.problems:
            lines += ["", "| failed | what was wrong |", "|---|---|"]
            lines += [f"| | {_cell(problem)} |" for problem in self.problems]
            lines += [f"| `{name}` | {_cell(reason)} |" for name, reason in sorted(self.failures.items())]
        if self.warnings:
            lines += ["", "| used, but | why |", "|---|---|"]
            lines += [f"| `{name}` | {_cell(doubt)} |" for name, doubt in sorted(self.warnings.items())]
        return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
