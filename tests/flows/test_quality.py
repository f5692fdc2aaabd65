"""``evicat quality``: the printed card, and the gate."""

import json

import pytest


@pytest.fixture(scope="module")
def library(new_rerun, tmp_path_factory):
    library = new_rerun(tmp_path_factory.mktemp("quality"))
    library.put("clip.mp4")
    assert library.index().all_done
    return library


def test_the_card_names_producers_measures_and_meanings(library, evicat):
    run = evicat("quality", "--catalog", library.catalog)
    assert (run.code, run.err) == (0, "")
    assert "local-2s by sight" in run.out
    assert "repeated_share" in run.out
    assert "less is better" in run.out
    rows = map(json.loads, evicat("quality", "--json", "--catalog", library.catalog).out.splitlines())
    values = {(row["component"], row["measure"]): row["value"] for row in rows}
    assert values["sight", "failed_share"] == 0
    assert values["sight", "repeated_share"] == 0, "no two colours read alike"


def test_a_gate_that_is_broken_ends_with_1_and_names_the_producer(library, evicat):
    kept = evicat("quality", "--gate", "failed_share=0", "--catalog", library.catalog)
    assert (kept.code, kept.err) == (0, "")
    broken = evicat("quality", "--gate", "words_median=1000", "--catalog", library.catalog)
    assert broken.code == 1
    assert "words_median is" in broken.err
    assert "wanted >= 1000: local-2s by sight" in broken.err


def test_a_gate_on_what_nobody_has_proves_nothing(library, evicat):
    run = evicat("quality", "--gate", "bare_share=0.1", "--catalog", library.catalog)
    assert run.code == 2
    assert "measured of no producer" in run.err
