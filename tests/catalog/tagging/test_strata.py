"""Exports by factor: the filter, and samples in which rare factors have their share."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.exports.export import export
from evicat.catalog.exports.rows import Choice, choose
from evicat.catalog.exports.strata import sample
from evicat.catalog.tagging.fields import FieldTagger
from evicat.schemas.errors import UsageError

from .library import PLACES, Library

SCHEMA = {"entry_id": pl.String, "factors": pl.List(pl.String), "split": pl.String}
rows = st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.sampled_from(["train", "test"])), max_size=30)


@given(rows, st.integers(1, 5), st.integers(0, 3))
def test_every_factor_gets_its_share_of_every_split(drawn, per_factor: int, seed: int) -> None:
    made = [(f"e{at}", sorted(factors), split) for at, (factors, split) in enumerate(drawn)]
    frame = pl.DataFrame(made, schema=SCHEMA, orient="row")
    kept = sample(frame, per_factor, seed)
    assert kept["entry_id"].to_list() == [each for each in frame["entry_id"] if each in set(kept["entry_id"])]
    for split in ("train", "test"):
        there, have = Counter(), Counter()
        for source, counts in ((frame, there), (kept, have)):
            for factors, of in source.select("factors", "split").iter_rows():
                counts.update((factors or [""]) if of == split else [])
        assert all(have[factor] >= min(per_factor, count) for factor, count in there.items())
        if there:
            rarest = min(there, key=lambda factor: (there[factor], factor))
            assert have[rarest] >= min(per_factor, there[rarest])


def test_the_seed_decides_and_nothing_else() -> None:
    frame = pl.DataFrame([(f"e{at}", ["a"], "all") for at in range(40)], schema=SCHEMA, orient="row")
    first, again, other = (sample(frame, 5, seed)["entry_id"].to_list() for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 5
    longer = pl.concat([frame, pl.DataFrame([("x", ["b"], "all")], schema=SCHEMA, orient="row")])
    assert set(sample(longer, 5, 1)["entry_id"]) == {*first, "x"}, "a further factor changes nothing here"


def test_exports_take_factors_and_samples(library: Library, tmp_path: Path) -> None:
    library.tag(FieldTagger(), PLACES)
    catalog = library.catalog
    chosen = choose(catalog, Choice(factors="place:kitchen and not place:street"))
    assert chosen.rows["text"].to_list() == ["A kitchen.", "A kitchen."]
    some = choose(catalog, Choice(per_factor=1))
    assert some.left_out["beyond the sample"] == 6 - len(some.rows)
    assert set(some.rows["factors"].explode().to_list()) >= {"place:kitchen", "place:street"}
    done = export(catalog, tmp_path / "out", "jsonl", Choice(factors="place:street", per_factor=2))
    told = json.loads((tmp_path / "out" / "export.json").read_text())["choice"]
    assert (told["factors"], told["per_factor"]) == (["place:street"], 2)
    assert sum(done.rows.values()) == 2
    with pytest.raises(UsageError, match="per_factor must be at least 1"):
        choose(catalog, Choice(per_factor=0))
