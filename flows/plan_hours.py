"""How long planned work takes: engines by the rates in the profile, all else as the catalog measured it."""

from __future__ import annotations

from typing import Any

from evicat.catalog.engines.base import Engine
from evicat.catalog.kit import Kit
from evicat.flows.measured import Measured
from evicat.schemas.identity import Producer
from evicat.schemas.recipe import ModelProfile

Tokens = tuple[float, float]
"""Of prompts and of answers."""


def engine_seconds(where: ModelProfile, tokens: Tokens) -> float | None:
    """Seconds that an engine with all its slots full takes; None: the profile has no rates."""
    prompt, output = where.prompt_tokens_per_second, where.output_tokens_per_second
    if prompt is None or output is None:
        return None
    return tokens[0] / prompt + tokens[1] / output


class Hours:
    """Adds up the seconds of each producer, and what of them runs side by side.

    Engines work beside each other and beside this machine, whose own parts take turns. An engine cannot be
    faster than its longest chain: windows of a narrative that wait for each other, each of which takes as
    long as a request does while all slots are full.
    """

    def __init__(self, kit: Kit, measured: Measured | None) -> None:
        self._kit, self._measured = kit, measured
        self._engines: dict[str, float] = {}
        self._chains: list[float] = []
        self._here = 0.0
        self._unknown: dict[str, None] = {}
        self._without_rate: dict[str, None] = {}

    def add(
        self, producer: Producer, windows: int, video_seconds: float, tokens: Tokens, longest: Tokens
    ) -> dict[str, Any]:
        """Seconds of a producer's work, as fields of ``PlannedWork``; ``longest``: tokens of one video."""
        describer = self._kit.describers.get(producer.scale)
        engine = describer.served_by if describer else None
        if describer and isinstance(engine, Engine):
            seconds = engine_seconds(engine.where, tokens)
            if seconds is None:
                self._without_rate[engine.model.name] = None
                return {}
            name = engine.model.name
            self._engines[name] = self._engines.get(name, 0.0) + seconds
            if "past" in describer.reads:
                self._chains.append(engine.slots * (engine_seconds(engine.where, longest) or 0.0))
            gpu_hours = seconds / 3600 * engine.where.gpus
            return {"seconds": seconds, "seconds_basis": "rate", "gpu_hours": gpu_hours}
        taken = self._measured.of(producer) if self._measured else None
        rate = None
        if taken:
            rate = taken.seconds_per_window if describer else taken.seconds_per_video_second
        if rate is None:
            self._unknown[f"{producer.scale} by {producer.component}"] = None
            return {}
        seconds = rate * (windows if describer else video_seconds)
        self._here += seconds
        return {"seconds": seconds, "seconds_basis": "measured"}

    @property
    def wall_seconds(self) -> float | None:
        """Of the whole run; None where something is not known."""
        if self._unknown or self._without_rate:
            return None
        return max([self._here, *self._engines.values(), *self._chains])

    @property
    def notes(self) -> list[str]:
        """What keeps hours from being known, and what to do."""
        notes = [
            f"no hours for {model!r}: write prompt_tokens_per_second and output_tokens_per_second under "
            f'[engines."{model}"] of the profile, as evicat cost prints them after a trial'
            for model in self._without_rate
        ]
        if self._unknown:
            notes.append(f"no hours for {', '.join(self._unknown)}: a run in this catalog measures them")
        return notes
