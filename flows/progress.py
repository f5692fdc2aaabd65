"""A live view of a run in the terminal: one bar per stage, in seconds of video, with the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bars:
    """Observer of :func:`evicat.flows.ingest.ingest` that draws bars."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def planned(self, stage: str, seconds: float) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=0)
        task = self._tasks[stage]
        total = self._progress.tasks[self._progress.task_ids.index(task)].total or 0
        self._progress.update(task, total=total + seconds)

    def advanced(self, stage: str, seconds: float) -> None:
        if stage in self._tasks:
            self._progress.advance(self._tasks[stage], seconds)

    def told(self, text: str) -> None:
        self._progress.console.print(text, markup=False)


@contextmanager
def bars(console: Console) -> Iterator[Bars]:
    """Draw bars on ``console`` for as long as the context lasts."""
    columns = (
        TextColumn("{task.description:>14}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} s of video"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=not console.is_terminal) as progress:
        yield Bars(progress)
