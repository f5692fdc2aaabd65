"""What the producers of a catalog took so far, out of its ledger, beside what a plan would have said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from evicat.catalog.describers.loaders import describer_class, load_describer
from evicat.catalog.engines.loaders import open_engine
from evicat.catalog.estimate import Estimate
from evicat.catalog.query import Catalog
from evicat.catalog.recipes import load_profile
from evicat.flows.measured import Measured
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.model import Model
from evicat.schemas.recipe import FrameOptions, ModelProfile, Profile, Scale
from evicat.schemas.span import US
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_in

SIMULATED = "simulated:"
_NEED = 8
"""Windows that a rate is made of at least."""
_ALIKE = 1e-3
"""Prompts and answers that vary together up to this share do not tell the two rates apart."""


class Rate(Model):
    """What a request took per token, by all windows of a model that were asked once, and an engine's rates.

    A request's seconds are prompt tokens times one number plus answer tokens times another; these are the two
    that fit best. An engine with all its slots full does as much in its ``slots`` side by side.
    """

    model: str
    windows: int
    slots: int | None = None
    """``concurrency`` of the profile; None: no profile was given, or it does not name the model."""
    prompt_tokens_per_second: float
    """Of the engine, or of one request where the number of slots is not known."""
    output_tokens_per_second: float

    def toml(self) -> str:
        """The lines for the profile."""
        prompt, output = map(_rounded, (self.prompt_tokens_per_second, self.output_tokens_per_second))
        return (
            f'[engines."{self.model}"]\n'
            f"prompt_tokens_per_second = {prompt}\n"
            f"output_tokens_per_second = {output}"
        )


class ProducerCost(Model):
    """What one producer took."""

    producer_id: str
    kind: str
    scale: str
    component: str
    model: str
    videos: int
    video_hours: float
    """Length of all its windows together."""
    windows: int
    failed: int
    """Windows that failed or were refused; what they took counts."""
    attempts: int
    prompt_tokens: int
    output_tokens: int
    seconds: float
    """Of work: calls side by side count each."""
    planned_prompt_tokens: int | None = None
    """What a plan would have said of these windows by the formula; None: it asks no model, or is made by
    another version of it. Of many videos a sample."""
    planned_ratio: float | None = None
    """Planned over used prompt tokens."""

    def per_hour(self, name: str) -> float:
        """``attempts``, ``seconds`` or tokens for each hour of video."""
        return float(getattr(self, name)) / self.video_hours if self.video_hours else 0.0


class Cost(Model):
    """What a catalog, or some of its videos, took."""

    catalog: str
    videos: int
    producers: tuple[ProducerCost, ...]
    rates: tuple[Rate, ...] = ()
    notes: tuple[str, ...] = ()


def _rounded(rate: float) -> str:
    """Three digits of it, written out."""
    return f"{float(f'{rate:.3g}'):.10g}"


def cost(uri: str, videos: list[str], profile: str | None = None) -> Cost:
    """Sum up the ledger of a catalog, or of ``videos`` in it.

    Raises:
        UsageError: there is no such catalog or video, or the profile does not fit.
    """
    where = load_profile(profile)
    reader = Reader.open(uri)
    catalog = Catalog(reader, where)
    asset_ids = sorted({each for video in videos for each in catalog.asset_ids(video)})
    measured = Measured(reader, asset_ids)
    sums = _sums(reader, sql_in("asset_id", asset_ids) if videos else "")
    spent = [_spent(measured, row) for row in sums.to_dicts()]
    order = {name: number for number, name in enumerate(("speech", "local", "objects", "narrative"))}
    spent.sort(key=lambda each: (order.get(each.kind, len(order)), each.scale, each.producer_id))
    rates, notes = _rates(sums.join(_models(measured), "producer_id"), where) if spent else ([], [])
    count = len(asset_ids) if videos else len(catalog.videos(missing=True)["asset_id"].unique())
    return Cost(catalog=uri, videos=count, producers=tuple(spent), rates=tuple(rates), notes=tuple(notes))


def _sums(reader: Reader, where: str) -> pl.DataFrame:
    """A row for each producer: its sums, and of windows that were asked once, the sums that a fit needs."""
    columns = ["producer_id", "start_s", "end_s", "outcome", "attempts", "seconds"]
    scan = reader.dataset("coverage").scanner(
        columns=[*columns, "prompt_tokens", "completion_tokens"], filter=where or None
    )
    parts = [_summed(pl.DataFrame(batch)) for batch in scan.to_batches()]
    if not parts:
        return pl.DataFrame(schema={"producer_id": pl.String})
    sums = pl.concat(parts).group_by("producer_id").sum()
    units = pl.DataFrame(reader.dataset("units").to_table(columns=["producer_id"], filter=where or None))
    return sums.join(units.group_by("producer_id").len("videos"), "producer_id")


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    prompt, output, seconds = (
        pl.col(name).cast(pl.Float64) for name in ("prompt_tokens", "completion_tokens", "seconds")
    )
    once = (pl.col("attempts") == 1) & (prompt > 0) & (output > 0) & (seconds > 0)
    products = {"pp": prompt * prompt, "po": prompt * output, "oo": output * output}
    products |= {"ps": prompt * seconds, "os": output * seconds}
    return rows.group_by("producer_id").agg(
        video_hours=(pl.col("end_s") - pl.col("start_s")).sum() / 3600,
        windows=pl.len().cast(pl.Int64),
        failed=pl.col("outcome").is_in(["failed", "refused"]).sum().cast(pl.Int64),
        attempts=pl.col("attempts").filter(pl.col("outcome") != "no_frames").sum().cast(pl.Int64),
        prompt_tokens=pl.col("prompt_tokens").cast(pl.Int64).sum(),
        output_tokens=pl.col("completion_tokens").cast(pl.Int64).sum(),
        seconds=pl.col("seconds").sum(),
        once=once.sum().cast(pl.Int64),
        **{name: value.filter(once).sum() for name, value in products.items()},
    )


def _spent(measured: Measured, row: dict[str, Any]) -> ProducerCost:
    producer = measured.producers[row["producer_id"]]
    planned = None
    if row["prompt_tokens"] and (estimate := estimate_of(producer)):
        expected, taken = measured.expected(producer, estimate)
        if taken.prompt_tokens:
            planned = expected.prompt_tokens / taken.prompt_tokens
    return ProducerCost(
        kind=producer.kind,
        scale=producer.scale,
        component=producer.component,
        model=producer.model.name if producer.model else "",
        planned_ratio=planned,
        planned_prompt_tokens=None if planned is None else round(planned * row["prompt_tokens"]),
        **{name: row[name] for name in ProducerCost.model_fields if name in row},
    )


def estimate_of(producer: Producer) -> Estimate | None:
    """What plans such windows; None where this release makes them otherwise, or no describer did."""
    told = dict(producer.options.get("describer", {}))
    try:
        kind = describer_class(producer.component)
        options = {name: value for name, value in told.items() if name in kind.options_class.model_fields}
        options |= _model_options(producer, kind.options_class)
        describer = load_describer(_scale(producer, options), Profile())
    except UsageError:
        return None
    if describer.version != producer.version or describer.facts() != told:
        return None
    if producer.model and producer.model.name.startswith(SIMULATED):
        trial = Profile(engines={"*": ModelProfile(engine="simulated")})
        describer.bind(lambda model: open_engine(model, trial))
    return Estimate(describer, _scale(producer, options))


def _model_options(producer: Producer, options: type[Model]) -> dict[str, Any]:
    if producer.model is None or "model" not in options.model_fields:
        return {}
    facts = producer.model.model_dump() | {"model": producer.model.name.removeprefix(SIMULATED)}
    return {name: value for name, value in facts.items() if name in options.model_fields and value}


def _scale(producer: Producer, options: dict[str, Any]) -> Scale:
    """The scale of a recipe that this producer is from."""
    told = producer.options
    frames = FrameOptions(**told["frames"]) if "frames" in told else None
    policy: dict[str, Any] = {}
    if "shots" in told:
        bounds = (told["shots"]["min_us"] / US, told["shots"]["max_us"] / US)
        policy = {"policy": "shots", "min_seconds": bounds[0], "max_seconds": bounds[1]}
    elif "window_us" in told:
        policy = {"window_seconds": told["window_us"] / US}
    else:
        raise UsageError(f"{producer.scale} has no windows of its own")
    kind: Any = producer.kind
    return Scale(kind=kind, describer=producer.component, frames=frames, options=options, **policy)


# Rates


@dataclass(frozen=True, slots=True)
class _PerToken:
    """Seconds that each token of a prompt and of an answer takes in a request."""

    prompt: float
    output: float


def _models(measured: Measured) -> pl.DataFrame:
    """The model of each producer; none of one that checks crops: what it took holds what that took."""
    rows = [
        (key, each.model.name)
        for key, each in measured.producers.items()
        if each.model and not each.options.get("describer", {}).get("check_crop")
    ]
    return pl.DataFrame(rows, {"producer_id": pl.String, "model": pl.String}, orient="row")


def _rates(sums: pl.DataFrame, profile: Profile) -> tuple[list[Rate], list[str]]:
    rates, notes = [], []
    numbers = ["once", "pp", "po", "oo", "ps", "os"]
    for row in sums.group_by("model").agg(pl.col(numbers).sum()).sort("model").to_dicts():
        if row["once"] < _NEED:
            continue
        name = row["model"].removeprefix(SIMULATED)
        fitted = _fitted(row)
        if fitted is None:
            notes.append(f"no rates of {name!r}: its windows are too alike to tell prompts from answers")
            continue
        where = profile.engines.get(name) or profile.engines.get("*")
        slots = where.concurrency if where else None
        rates.append(
            Rate(
                model=name,
                windows=row["once"],
                slots=slots,
                prompt_tokens_per_second=(slots or 1) / fitted.prompt,
                output_tokens_per_second=(slots or 1) / fitted.output,
            )
        )
    return rates, notes


def _fitted(row: dict[str, Any]) -> _PerToken | None:
    """Least squares of ``seconds = prompt * a + output * b``; None where these are not two positive ones."""
    determinant = row["pp"] * row["oo"] - row["po"] ** 2
    if determinant <= _ALIKE * row["pp"] * row["oo"]:
        return None
    prompt = (row["ps"] * row["oo"] - row["os"] * row["po"]) / determinant
    output = (row["os"] * row["pp"] - row["ps"] * row["po"]) / determinant
    return _PerToken(prompt, output) if prompt > 0 and output > 0 else None
