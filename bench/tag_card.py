"""How good the packaged vocabularies are on the sample clips, by tagger: precision and recall, and intervals.

    python bench/tag_card.py [--catalog FOLDER]

The clips are indexed by the recipe ``default``: descriptions are those of ``sight``, which measures light,
colours, movement and text and knows no things. So factors of places, people and objects cannot be found
there, which their recall says. ``tag_card.toml`` says what each clip shows.

The last rows are of the embedding tagger with thresholds by ``calibrate``, each label judged by one that was
chosen without it, of factors that three entries at least carry and three do not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

import polars as pl

from evicat.catalog.query import Catalog
from evicat.catalog.tagging.base import Tagger
from evicat.catalog.tagging.calibrate import Measured, calibrate, card, total
from evicat.catalog.tagging.fields import FieldTagger
from evicat.catalog.tagging.labels import Labelled, labelled
from evicat.catalog.tagging.loaders import embedding_tagger
from evicat.catalog.tagging.vocabulary import Factor, load_vocabulary, packaged
from evicat.schemas.recipe import Profile
from evicat.schemas.span import Span
from evicat.storage.reader import Reader

sys.path.insert(0, str(Path(__file__).parents[1] / "demo"))
import samples

TRUTH = Path(__file__).with_suffix(".toml")
LATER_S = samples.CONVERSATION_STARTS_S
Spans = dict[str, list[tuple[float, float]]]


def truth() -> dict[str, Spans]:
    """By factor and clip: the spans that carry it."""
    told = tomllib.loads(TRUTH.read_text(encoding="utf-8"))["spans"]
    for spans in told.values():
        said = spans.get("conversation.wav", [])
        spans.setdefault("interview.mp4", []).extend([start + LATER_S, end + LATER_S] for start, end in said)
    return dict(told)


def labels(
    catalog: Catalog, factors: list[Factor], told: dict[str, Spans]
) -> dict[tuple[str, str], bool | None]:
    """Every entry of the kinds of every factor, and whether it carries it."""
    entries = catalog.entries().select("entry_id", "video", "kind", "start_s", "end_s").rows()
    return {
        (entry_id, factor.id): _carries(Span.from_seconds(start, end), told[factor.id].get(video, []))
        for factor in factors
        for entry_id, video, kind, start, end in entries
        if kind in factor.kinds
    }


def _carries(entry: Span, spans: list[tuple[float, float]]) -> bool:
    wanted = [Span.from_seconds(start, end) for start, end in spans]
    return any(2 * entry.overlap_us(each) >= min(entry.duration_us, each.duration_us) for each in wanted)


def tell(name: str, rows: list[Measured]) -> None:
    """A line for each vocabulary, and one for all."""
    groups: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        groups[row.factor.partition(":")[0]].append(row)
    for vocabulary, own in sorted(groups.items()):
        print(line(f"{name}, {vocabulary} ({len(own)} factors)", total(own)))
    print(line(f"**{name}, all** ({len(rows)} factors)", total(rows)))


def line(name: str, row: Measured) -> str:
    return f"| {name} | {row.labels} | {row.positive} | {row.precision} | {row.recall} |"


def measure(catalog: Path) -> None:
    told = truth()
    factors = [factor for name in packaged() for factor in load_vocabulary(name).filled if factor.id in told]
    reader = Reader.open(catalog)
    known = labelled(reader, labels(Catalog.open(str(catalog)), factors, told), factors)
    likeness = embedding_tagger(lambda: reader, Profile(), {})
    print("| tagger, vocabulary | labels | yes | precision | recall |\n|---|---:|---:|---|---|")
    taggers: dict[str, Tagger] = {"fields": FieldTagger(), "embedding": likeness}
    for name, made in taggers.items():
        tell(name, card(made, known)[:-1])
    tell("embedding, calibrated", calibrate(likeness, of_both_classes(known))[:-1])


def of_both_classes(known: Labelled) -> Labelled:
    """Only the labels of factors that have three of each class at least."""
    frame = pl.DataFrame(known.labels, schema=["row", "factor", "label"], orient="row")
    counts = frame.group_by("factor").agg(pl.col("label").sum().alias("yes"), pl.len())
    kept = counts.filter(pl.col("yes") >= 3, pl.col("len") - pl.col("yes") >= 3)["factor"].to_list()
    return Labelled(known.entries, known.factors, tuple(each for each in known.labels if each[1] in kept))


def main() -> None:
    parser = argparse.ArgumentParser(description="A card of the packaged vocabularies.")
    parser.add_argument("--catalog", help="sample clips, indexed by the recipe default; else it is made")
    given = parser.parse_args().catalog
    if given:
        measure(Path(given))
        return
    with tempfile.TemporaryDirectory() as folder:
        clips = samples.write_samples(Path(folder) / "clips")
        made = Path(folder) / "catalog"
        command = [sys.executable, "-m", "evicat.flows.cli", "index", str(clips), "--catalog", str(made)]
        subprocess.run(command, check=True, stdout=sys.stderr)
        measure(made)


if __name__ == "__main__":
    main()
