"""How well plain questions find the seconds that answer them, over the sample clips and ``retrieval.toml``.

    python bench/retrieval.py            # sight as it ships
    python bench/retrieval.py --labels   # and beside it sight with labels (labelled.py), right and wrong ones

Wrong labels are the control: the same sentence in the same windows, but each class has the name of another.
What they gain, any further words would have gained.

Every clip is indexed in windows of 2 s, so that the right seconds must be found and not only the right clip.
An answer is right if it is of the right clip and at least half of it, or half of the span asked for, lies in
the other. Printed are hit@1, hit@5 and the mean reciprocal rank among the ten best, each with the 95 %
interval of a bootstrap over the queries, and what a ranking by chance gives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from labelled import PACKAGES

from evicat.catalog.build import build
from evicat.catalog.describers.loaders import DESCRIBERS
from evicat.catalog.kit import Kit
from evicat.catalog.query import Catalog
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile, Recipe
from evicat.schemas.span import Span
from evicat.storage.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "demo"))
import samples

QUERIES = Path(__file__).with_suffix(".toml")
CLIPS = ("bunny.mp4", "street.mp4", "phone.mp4", "globe.mp4", "card.mp4")
DEPTH = 10
ROUNDS = 10_000
CONFIDENCES = (0.5, 0.25)
ROTATIONS = (137, 389, 701)
"""Wrong labels are measured this often, and their scores averaged."""

Ranks = npt.NDArray[np.float64]


class Query(Model):
    """A question and where its answer is seen, in seconds of the clip."""

    ask: str
    about: str
    video: str
    spans: tuple[tuple[float, float], ...]

    def is_answered_by(self, clip: str, start_s: float, end_s: float) -> bool:
        """Whether the window and one of the spans share half of the shorter of the two."""
        window = Span.from_seconds(start_s, end_s)
        spans = [Span.from_seconds(*span) for span in self.spans]
        shared = [2 * window.overlap_us(s) >= min(window.duration_us, s.duration_us) for s in spans]
        return clip == self.video and any(shared)


def queries() -> list[Query]:
    """Every question of the file."""
    return [Query.model_validate(each) for each in tomllib.loads(QUERIES.read_text())["queries"]]


def recipe(describer: str, options: dict[str, Any]) -> Recipe:
    """Windows of 2 s, seen and embedded; no speech."""
    scale = {
        "kind": "local",
        "window_seconds": 2,
        "describer": describer,
        "frames": {"per_window": 8, "max_width": 640},
        "options": options,
    }
    embedder = {"name": "sentence-transformers", "model": "packaged:all-MiniLM-L6-v2"}
    return Recipe.model_validate({"name": "retrieval", "scales": [scale], "embedder": embedder})


def index(folder: Path, clips: Path, made_by: Recipe) -> tuple[Catalog, dict[str, str]]:
    """The catalog of the clips, and the name of each by its asset id."""
    with Kit(made_by, Profile()) as kit, Store.connect(str(folder), write=True, create=True) as store:
        names = {build(clips / name, kit, store).asset.asset_id: name for name in CLIPS}
    return Catalog.open(str(folder)), names


def ranks(catalog: Catalog, names: dict[str, str], asked: Sequence[Query]) -> Ranks:
    """Rank of the first right answer of each question, from 1; infinite where none is among the best."""
    found = []
    for query in asked:
        hits = catalog.search(query.ask, kind="local", limit=DEPTH).select("asset_id", "start_s", "end_s")
        right = [
            rank
            for rank, (asset_id, start_s, end_s) in enumerate(hits.iter_rows(), start=1)
            if query.is_answered_by(names[asset_id], start_s, end_s)
        ]
        found.append(right[0] if right else np.inf)
    return np.array(found, dtype=np.float64)


def chance(catalog: Catalog, names: dict[str, str], asked: Sequence[Query]) -> list[float]:
    """Expected scores of a random order of the entries: drawing without putting back, until one is right."""
    entries = catalog.entries(kind="local").select("asset_id", "start_s", "end_s").rows()
    per_query = []
    for query in asked:
        right = sum(query.is_answered_by(names[asset_id], *span) for asset_id, *span in entries)
        if not right:
            raise SystemExit(f"no entry can answer {query.ask!r}; its spans are wrong")
        none_yet, first_at = 1.0, []
        for drawn in range(DEPTH):
            first_at.append(none_yet * right / (len(entries) - drawn))
            none_yet -= first_at[-1]
        weighted = sum(share / rank for rank, share in enumerate(first_at, start=1))
        per_query.append((first_at[0], sum(first_at[:5]), weighted))
    return [float(mean) for mean in np.mean(per_query, axis=0)]


def scores(found: Ranks) -> Ranks:
    """hit@1, hit@5 and reciprocal rank of every question: shape ``(n, 3)``."""
    return np.stack([found <= 1, found <= 5, 1 / found], axis=1).astype(np.float64)


def interval(values: Ranks) -> str:
    """``0.42 (0.28 to 0.56)``: mean and its 95 % percentile interval over resampled questions."""
    picks = np.random.default_rng(0).integers(0, len(values), (ROUNDS, len(values)))
    low, high = np.percentile(values[picks].mean(axis=1), [2.5, 97.5])
    return f"{values.mean():.2f} ({low:.2f} to {high:.2f})"


def line(name: str, values: Ranks) -> str:
    return f"| {name} | {len(values)} | {' | '.join(interval(column) for column in values.T)} |"


def tell(name: str, values: Ranks, asked: Sequence[Query]) -> None:
    """All questions, and each sort of them."""
    print(line(name, values))
    for sort in sorted({query.about for query in asked}):
        print(line(f"{name}, {sort}", values[[query.about == sort for query in asked]]))


def measure(folder: Path, made_by: Recipe, asked: Sequence[Query]) -> tuple[Ranks, list[float]]:
    """Scores of one recipe, and those of chance."""
    clips = samples.write_samples(folder / "clips")
    catalog, names = index(folder / "catalog", clips, made_by)
    return scores(ranks(catalog, names, asked)), chance(catalog, names, asked)


def labelled(least: float, rotated_by: int, asked: Sequence[Query]) -> Ranks:
    """Scores of ``sight`` with labels; ``rotated_by`` 0: the right ones."""
    made_by = recipe("labelled-sight", {"label_confidence": least, "rotated_by": rotated_by})
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), made_by, asked)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Retrieval over the sample clips.")
    parser.add_argument("--labels", action="store_true", help="also with the labels of a classifier")
    with_labels = parser.parse_args().labels
    missing = [name.replace("_", "-") for name in PACKAGES if find_spec(name) is None]
    if with_labels and missing:
        sys.exit(f"--labels needs packages: pip install {' '.join(missing)}")
    asked = queries()
    with tempfile.TemporaryDirectory() as folder:
        plain, by_chance = measure(Path(folder), recipe("sight", {}), asked)
    print("| what | questions | hit@1 | hit@5 | MRR@10 |\n|---|---:|---|---|---|")
    print(f"| by chance | {len(asked)} | {' | '.join(f'{each:.2f}' for each in by_chance)} |")
    tell("sight", plain, asked)
    DESCRIBERS["labelled-sight"] = "labelled:LabelledSight"
    for least in CONFIDENCES if with_labels else ():
        right = labelled(least, 0, asked)
        wrong = np.mean([labelled(least, rotated_by, asked) for rotated_by in ROTATIONS], axis=0)
        tell(f"labels from {least:.0%}", right, asked)
        tell(f"wrong labels from {least:.0%}", wrong, asked)
        print(line(f"labels from {least:.0%} minus sight", right - plain))
        print(line(f"labels from {least:.0%} minus wrong ones", right - wrong))


if __name__ == "__main__":
    main()
