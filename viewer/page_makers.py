"""Who made what a page shows: producers in words."""

from __future__ import annotations

import json
from dataclasses import dataclass

import polars as pl

from evicat.catalog.query import Catalog
from evicat.schemas.entry import KINDS, Outcome
from evicat.schemas.identity import Producer
from evicat.schemas.places import without_folders
from evicat.storage.roster import own_id
from evicat.storage.rows import producer_from_row
from evicat.storage.tables import EMBEDDING, SUPPORT

from .page_words import scale_label

_SHOWN = (*KINDS, SUPPORT, EMBEDDING)
"""Kinds of producers that a page tells of; those of tags are one for each factor."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A producer that made something of a video, or of which the view shows nothing there yet."""

    producer_id: str
    kind: str
    scale: str
    label: str
    """What it makes: ``Local 10 s``."""
    component: str
    model: str
    model_facts: str
    """Revision, quantization and digest of the model, as far as they are known."""
    options: str
    """As JSON, for people; empty where there are none."""
    reads: tuple[str, ...]
    """What it reads, in words."""
    outcomes: str
    """``11 done, 2 failed``; empty where nothing was made."""
    entries: int
    is_shown: bool
    """Whether the view shows it."""
    sees: bool
    """Whether it looks at frames, and so makes nothing of sound alone."""


def makers_of(catalog: Catalog, asset_id: str) -> tuple[Maker, ...]:
    """Producers that the view shows or that made something of an asset; those that are shown come first."""
    rows = catalog.producers().to_dicts()
    producers = {row["producer_id"]: producer_from_row(row) for row in rows}
    shown = set(catalog.active()["producer_id"].to_list())
    units = catalog.units().filter(pl.col("asset_id") == asset_id)
    made = {row["producer_id"]: row for row in units.to_dicts()}
    groups: dict[str, list[Producer]] = {}
    for key, producer in producers.items():
        if producer.kind not in _SHOWN:
            continue
        if key in made or (own_id(producer) in shown and producer.kind != EMBEDDING):
            groups.setdefault(own_id(producer), []).append(producer)
    makers = [
        _maker(own, group, producers, [made[p.producer_id] for p in group if p.producer_id in made], shown)
        for own, group in groups.items()
    ]
    return tuple(sorted(makers, key=lambda each: (not each.is_shown, place(each.kind, each.scale))))


def place(kind: str, scale: str) -> tuple[int, float, str]:
    """Where a kind and scale stand on a page: narratives first, long windows before short ones."""
    kinds = ("narrative", "local", "objects", "speech", "sound", SUPPORT, EMBEDDING)
    digits = scale.removeprefix(f"{kind}-").removesuffix("s")
    seconds = float(digits) if digits.replace(".", "", 1).isdigit() else 0.0
    return kinds.index(kind) if kind in kinds else len(kinds), -seconds, scale


def _maker(
    own: str,
    group: list[Producer],
    known: dict[str, Producer],
    units: list[dict[str, object]],
    shown: set[str],
) -> Maker:
    """``group``: one producer, or all that embed into one table."""
    first = group[0]
    reads = [known[key] for each in group for key in each.reads if key in known]
    options = json.dumps(first.options, indent=1, ensure_ascii=False) if first.options else ""
    return Maker(
        producer_id=own,
        kind=first.kind,
        scale=first.scale,
        label=_label(first),
        component=f"{first.component} v{first.version}",
        model=without_folders(first.model.name) if first.model else "",
        model_facts=_model_facts(first),
        options=options,
        reads=tuple(dict.fromkeys(f"{_label(each)} by {each.component}" for each in reads)),
        outcomes=_outcomes(units),
        entries=_sum(units, "entries"),
        is_shown=own in shown,
        sees="frames" in first.options,
    )


def _label(producer: Producer) -> str:
    names = {EMBEDDING: "Vectors", SUPPORT: "Supports"}
    return names.get(producer.kind) or scale_label(producer.kind, producer.scale)


def _model_facts(producer: Producer) -> str:
    model = producer.model
    if model is None:
        return ""
    facts = {
        "revision": model.revision,
        "quantization": model.quantization,
        "digest": model.digest[:12],
    }
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value)


def _outcomes(units: list[dict[str, object]]) -> str:
    counts = {outcome.value: _sum(units, outcome.value) for outcome in Outcome}
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)
    return told if all(unit["complete"] for unit in units) else f"{told}, unfinished".lstrip(", ")


def _sum(units: list[dict[str, object]], name: str) -> int:
    return sum(int(str(unit[name])) for unit in units)
