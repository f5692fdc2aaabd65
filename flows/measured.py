"""What producers took so far in a catalog, out of its ledger: what plans and `evicat cost` go by."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import polars as pl

from evicat.catalog.describers.base import Expected
from evicat.catalog.estimate import SILENT, Dialogue, Estimate
from evicat.schemas.asset import Asset
from evicat.schemas.entry import SPEECH_WITHHELD, TRUNCATED
from evicat.schemas.identity import Producer
from evicat.storage.reader import Reader
from evicat.storage.rows import Row, producer_from_row
from evicat.storage.sql import sql_in

_SUMS = (
    *("windows", "asked", "prompt_tokens", "output_tokens"),
    *("seconds", "video_seconds", "video_work_seconds"),
)
SAMPLE_UNITS = 200
"""So many units of a producer tell how far a plan is off."""
ENOUGH = 8
"""Of fewer answers the mean length is no measure."""
FEW = 1_000
"""So many assets are looked up by their ids; of more, all rows are read."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What windows of producers took together."""

    windows: int
    asked: int
    """Windows that had something to show."""
    prompt_tokens: int
    output_tokens: int
    seconds: float
    video_seconds: float
    """Length of the videos of which all is made, and what these took."""
    video_work_seconds: float

    @property
    def output_per_window(self) -> float | None:
        """Mean answer tokens; None: too few windows were asked for a mean."""
        return self.output_tokens / self.asked if self.asked >= ENOUGH and self.output_tokens else None

    @property
    def seconds_per_window(self) -> float | None:
        return self.seconds / self.windows if self.windows else None

    @property
    def seconds_per_video_second(self) -> float | None:
        return self.video_work_seconds / self.video_seconds if self.video_seconds else None


class Measured:
    """The ledger of a catalog at one head, summed by producer; of some assets only, where they are named."""

    def __init__(self, reader: Reader, asset_ids: Collection[str] = ()) -> None:
        self._reader = reader
        self._where = sql_in("asset_id", asset_ids) if asset_ids else ""

    @cached_property
    def producers(self) -> dict[str, Producer]:
        rows = self._reader.dataset("producers").to_table(columns=["facts"]).to_pylist()
        return {each.producer_id: each for each in map(producer_from_row, rows)}

    @cached_property
    def _units(self) -> pl.DataFrame:
        """A row per unit, with the length of its video."""
        columns = ["asset_id", "producer_id", "windows", "no_frames", "complete", "seconds"]
        units = self._read("units", [*columns, "prompt_tokens", "completion_tokens"], self._where)
        videos = self._read("videos", ["asset_id", "duration_s"])
        units = units.rename({"completion_tokens": "output_tokens"}).join(videos, "asset_id", how="left")
        is_whole = pl.col("complete") & pl.col("duration_s").is_not_null()
        return units.with_columns(
            asked=pl.col("windows") - pl.col("no_frames"),
            video_seconds=pl.when(is_whole).then("duration_s").otherwise(0.0),
            video_work_seconds=pl.when(is_whole).then("seconds").otherwise(0.0),
        )

    @cached_property
    def _by_producer(self) -> dict[str, pl.DataFrame]:
        return {str(key): part for (key,), part in self._units.group_by("producer_id")}

    def of(self, producer: Producer) -> Taken | None:
        """What this producer took; if it made nothing so far, what the same part took with other options."""
        ids = [producer.producer_id]
        if producer.producer_id not in self._by_producer:
            ids = [key for key, each in self.producers.items() if _part(each) == _part(producer)]
        units = [self._by_producer[key] for key in ids if key in self._by_producer]
        taken = _total(pl.concat(units)) if units else None
        return taken if taken and taken.windows else None

    def expected(self, producer: Producer, estimate: Estimate) -> tuple[Expected, Taken]:
        """What a plan would have said of a sample of what a producer has made, and what that took."""
        units = self._by_producer.get(producer.producer_id, self._units.clear())
        units = units.filter(pl.col("asked") > 0).sort("asset_id").head(SAMPLE_UNITS)
        facts = dict(self._read("videos", ["asset_id", "facts"], _these(units)).iter_rows())
        dialogue = self.dialogue if estimate.hears else {}
        total = Expected()
        for asset_id, asked in units.select("asset_id", "asked").iter_rows():
            asset = Asset.model_validate_json(facts[asset_id])
            each = estimate.unit(asset, asked, dialogue.get(asset_id, SILENT))
            total = Expected(*(a + b for a, b in zip(astuple(total), astuple(each), strict=True)))
        return total, _total(units)

    def prompt_ratio(self, producer: Producer, estimate: Estimate) -> float | None:
        """Prompt tokens that a producer took for each that a plan would have said; None: it took none."""
        expected, taken = self.expected(producer, estimate)
        if not taken.prompt_tokens or not expected.prompt_tokens:
            return None
        return taken.prompt_tokens / expected.prompt_tokens

    def unfinished(self) -> dict[tuple[str, str], Row]:
        """Units without all their windows, by asset and producer: how many they have, of which inputs."""
        columns = ["asset_id", "producer_id", "windows", "inputs_hash"]
        return self._by_unit(self._read("units", columns, "complete = false"))

    def due(self, retry: Collection[str]) -> dict[tuple[str, str], int]:
        """By asset and producer: windows whose outcome is among those that are made again."""
        wanted = [f"outcome = '{name}'" for name in sorted(retry) if name != "truncated"]
        if "truncated" in retry:
            wanted.append(f"(outcome = 'failed' AND error_class = '{TRUNCATED}')")
        if not wanted:
            return {}
        rows = self._read("coverage", ["asset_id", "producer_id"], " OR ".join(wanted))
        counts = rows.group_by("asset_id", "producer_id").len()
        return {(row["asset_id"], row["producer_id"]): row["len"] for row in counts.to_dicts()}

    def shot_seconds(self, producer: Producer) -> float | None:
        """Mean length of the shots that are found as this producer finds them."""
        alike = [
            each.producer_id
            for each in self.producers.values()
            if each.options.get("shots") and each.options.get("shots") == producer.options.get("shots")
        ]
        units = self._units.filter(pl.col("complete"), pl.col("producer_id").is_in(alike))
        count = units["windows"].sum()
        return float(units["duration_s"].sum()) / int(count) if count else None

    @cached_property
    def dialogue(self) -> dict[str, Dialogue]:
        """What is said in each asset whose speech is complete; of several producers, by one of them."""
        made = self._read("units", ["asset_id", "producer_id"], "kind = 'speech' AND complete")
        if made.is_empty():
            return {}
        scan = self._reader.dataset("entries").scanner(
            columns=["asset_id", "producer_id", "text", "flags"], filter="kind = 'speech'"
        )
        key = ["asset_id", "producer_id"]
        parts = [_said(pl.DataFrame(batch)) for batch in scan.to_batches()]
        said = pl.concat(parts).group_by(key).sum() if parts else _said(_NO_SPEECH)
        rows = made.join(said, key, how="left").fill_null(0).sort(key)
        return {row["asset_id"]: Dialogue(row["lines"], row["characters"]) for row in rows.to_dicts()}

    def bytes_per_entry(self) -> float | None:
        """What an entry takes on disk, with its vectors, its ledger rows and all else that goes with it."""
        entries = self._reader.dataset("entries").count_rows()
        if not entries:
            return None
        stats = (self._reader.dataset(name).stats.data_stats() for name in self._reader.names())
        return float(sum(field.bytes_on_disk for table in stats for field in table.fields) / entries)

    def _by_unit(self, rows: pl.DataFrame) -> dict[tuple[str, str], Row]:
        return {(row["asset_id"], row["producer_id"]): row for row in rows.to_dicts()}

    def _read(self, table: str, columns: list[str], where: str = "") -> pl.DataFrame:
        rows: Any = self._reader.dataset(table).to_table(columns=columns, filter=where or None)
        return pl.DataFrame(rows)


def _part(producer: Producer) -> tuple[str, str, str]:
    """What producers have in common that are the same part with other options."""
    return producer.kind, producer.component, producer.model.name if producer.model else ""


def _total(units: pl.DataFrame) -> Taken:
    sums = units.select(pl.col(_SUMS).sum()).row(0, named=True)
    return Taken(**sums)


def _these(units: pl.DataFrame) -> str:
    """Filter for the assets of ``units``, where they are few."""
    return sql_in("asset_id", units["asset_id"].to_list()) if len(units) <= FEW else "facts IS NOT NULL"


_NO_SPEECH = pl.DataFrame(
    schema={"asset_id": pl.String, "producer_id": pl.String, "text": pl.String, "flags": pl.List(pl.String)}
)


def _said(entries: pl.DataFrame) -> pl.DataFrame:
    """Lines and characters by asset and producer, without speech that describers are not shown."""
    shown = entries.filter(pl.col("flags").list.set_intersection(sorted(SPEECH_WITHHELD)).list.len() == 0)
    return shown.group_by("asset_id", "producer_id").agg(
        lines=pl.len(), characters=pl.col("text").str.len_chars().sum()
    )
