"""The clock check: gold texts find out a catalog that is late, and do not accuse one that is right."""

import numpy as np
import pytest

from evicat.catalog.measures.clock import CURVE_SCHEMA, FARTHEST_S, SHIFTS, best_shift, clock_check
from evicat.catalog.measures.gold import Gold, read_gold
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import Producer

LOCAL = Producer(kind="local", scale="local-5s", component="words", version=1)
THINGS = """fisherman net harbour
children ball cobbles
tram hill lamps
baker loaves windows
surgeon scalpel mask
piano candle dust
goat fence meadow
diver wreck coral
printer ink paper
clown tent elephant
judge gavel bench
pilot cockpit clouds
cook onions knife
nurse corridor trolley
monk bell cloister
skater pond frost
welder sparks visor
tailor needle thread
miner shaft lantern
falcon glove cliff""".splitlines()


def gold_texts(video="a.mp4"):
    """One text within each window of 5 s, in other words around the same things."""
    return [
        Gold(video=video, start_s=at * 5 + 1, end_s=at * 5 + 4, text=f"someone notices {things} there")
        for at, things in enumerate(THINGS)
    ]


def entries(late_s=0):
    return [
        (at * 5 + late_s, at * 5 + 5 + late_s, f"in view are {things}") for at, things in enumerate(THINGS)
    ]


@pytest.mark.parametrize("late_s", [0, 8])
def test_the_best_shift_is_what_the_entries_are_late_by(shelf, late_s):
    shelf.write("a.mp4", LOCAL, entries(late_s))
    found = clock_check(shelf.catalog, gold_texts())
    row = found.card.row(0, named=True)
    assert (row["measure"], row["value"], row["of"]) == ("clock_shift_s", late_s, len(THINGS))
    assert row["doubtful"] == (late_s > 0)
    assert found.curve.schema == CURVE_SCHEMA
    assert found.curve.filter("best")["shift_s"].to_list() == [-late_s]
    assert len(found.curve) == len(SHIFTS)
    assert found.notes == ()


@pytest.mark.slow
def test_vectors_are_compared_where_the_view_searches_by_them(shelf):
    embedder = next(iter(_embedding_of(shelf)))
    texts = [text for _, _, text in entries()]
    vectors = [tuple(map(float, row)) for row in embedder.embed(texts)]
    rows = [(*row, {"vector": vector}) for row, vector in zip(entries(8), vectors, strict=True)]
    shelf.write("a.mp4", LOCAL, rows)
    other_words = [
        Gold(video="a.mp4", start_s=at * 5 + 1, end_s=at * 5 + 4, text=text)
        for at, text in (
            (0, "An angler with fishing gear at a port"),
            (2, "A streetcar with lights climbs a slope"),
            (4, "A doctor operates"),
            (7, "Someone swims under water by a sunken ship"),
            (9, "A circus performance with animals"),
            (11, "An aeroplane is flown through the sky"),
            (15, "Someone glides over ice in winter"),
            (18, "A worker underground in a coal mine with a lamp"),
        )
    ]
    assert clock_check(shelf.catalog, other_words).card["value"].to_list() == [pytest.approx(8, abs=1)]


def _embedding_of(shelf):
    shelf.write("b.mp4", LOCAL, [(0, 5, "an empty street", {"vector": (1.0,) + (0.0,) * 383})])
    return shelf.catalog.embedders().values()


def test_texts_that_fit_nowhere_prove_nothing(shelf):
    shelf.write("a.mp4", LOCAL, entries())
    strange = [each.model_copy(update={"text": "quantum flux"}) for each in gold_texts()]
    found = clock_check(shelf.catalog, strange)
    assert found.card.is_empty()
    assert "do not tell when local-5s" in found.notes[0]


def test_noise_does_not_accuse_a_clock():
    noise = np.random.default_rng(1).normal(0, 0.1, (40, len(SHIFTS)))
    assert best_shift(noise) is None
    peak = np.exp(-((SHIFTS / 4.0) ** 2))
    assert best_shift(noise + peak) == 0
    assert best_shift(noise + np.roll(peak, 6)) == pytest.approx(6, abs=1)
    weak = np.random.default_rng(1).normal(0, 1, (40, len(SHIFTS))) + np.roll(peak, 8)
    assert best_shift(weak) == pytest.approx(8, abs=1)
    assert best_shift(weak[:8]) is None, "what does not tell 8 s from none must not pass as none"
    assert best_shift(np.full((40, len(SHIFTS)), np.nan)) is None
    assert SHIFTS[FARTHEST_S] == 0


def test_videos_that_are_not_there_are_told(shelf):
    shelf.write("a.mp4", LOCAL, entries())
    known = clock_check(shelf.catalog, [*gold_texts(), *gold_texts("nowhere.mp4")])
    assert known.card["value"].to_list() == [0]
    assert known.notes == ("1 video of the gold texts is not in this catalog; the first is 'nowhere.mp4'",)
    with pytest.raises(UsageError, match=r"none of 20 gold texts.*'nowhere.mp4'"):
        clock_check(shelf.catalog, gold_texts("nowhere.mp4"))


class TestGoldFile:
    def test_is_read_line_by_line(self, tmp_path):
        file = tmp_path / "gold.jsonl"
        file.write_text('{"video": "a.mp4", "start_s": 1, "end_s": 2.5, "text": "a cat"}\n\n')
        assert read_gold(file) == [Gold(video="a.mp4", start_s=1, end_s=2.5, text="a cat")]

    def test_may_begin_with_a_mark_and_hold_other_line_ends(self, tmp_path):
        file = tmp_path / "gold.jsonl"
        line = '{"video": "a.mp4", "start_s": 1, "end_s": 2.5, "text": "a\u2028cat\x85"}'
        file.write_bytes(f"{line}\r\n{line}\r\n".encode("utf-8-sig"))
        assert [each.text for each in read_gold(file)] == ["a\u2028cat\x85"] * 2

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("nonsense", "line 1"),
            ('{"video": "a", "start_s": 3, "end_s": 2, "text": "x"}', r"end_s must be > start_s, got"),
            ('{"video": "a", "start_s": -1, "end_s": 2, "text": "x"}', r"start_s.*-1"),
            ('{"video": "a", "start_s": 1, "end_s": 2, "text": ""}', "text"),
            ("", "holds no gold text"),
        ],
    )
    def test_that_does_not_fit_says_where(self, tmp_path, line, says):
        file = tmp_path / "gold.jsonl"
        file.write_text(line + "\n")
        with pytest.raises(UsageError, match=says):
            read_gold(file)

    def test_that_is_missing(self, tmp_path):
        with pytest.raises(UsageError, match="cannot read gold texts"):
            read_gold(tmp_path / "none.jsonl")
