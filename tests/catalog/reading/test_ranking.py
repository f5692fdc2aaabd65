"""Rankings are read as far as their order needs, and no further."""

import random

import pytest

from evicat.catalog.reading.ranking import EQUALS, Ranked, Rows, merged, read_best


class Table:
    """Entries with scores, which are read best first, and in any order where they are equal."""

    def __init__(self, scores, left_out=()):
        self.entries = [Ranked(f"{at:04}", "a", 10.0, score) for at, score in enumerate(scores)]
        self.left_out = set(left_out)
        self.asked = []

    def read(self, count):
        self.asked.append(count)
        shuffled = random.Random(count).sample(self.entries, len(self.entries))
        rows = sorted(shuffled, key=lambda each: -each.score)[:count]
        fitting = [row for row in rows if row.entry_id not in self.left_out]
        return Rows(fitting, len(rows), min((row.score for row in rows), default=0.0))

    def best(self, depth):
        fitting = [row for row in self.entries if row.entry_id not in self.left_out]
        return sorted(fitting, key=lambda each: each.place)[:depth]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("depth", [1, 10, 31, 32, 100, 128, 400, 2000])
def test_the_best_are_those_of_the_whole_table_in_one_order(seed, depth):
    chance = random.Random(seed)
    scores = [chance.choice(range(1 + seed * 4)) / 7 for _ in range(EQUALS)]
    table = Table(scores, left_out=chance.sample([f"{at:04}" for at in range(EQUALS)], seed * 60))
    found, has_more = read_best(table.read, depth)
    assert found == table.best(depth)
    fitting = EQUALS - seed * 60
    assert has_more or len(found) == min(depth, fitting)
    assert not (has_more and len(found) == fitting and table.asked[-1] > EQUALS)


def test_different_scores_are_read_once():
    table = Table(range(5000))
    assert len(read_best(table.read, 10)[0]) == 10
    assert table.asked == [32]


def test_equal_scores_are_read_on_but_not_to_their_end():
    table = Table([1.0] * 5000)
    found, has_more = read_best(table.read, 10)
    assert (len(found), has_more) == (10, True)
    assert table.asked == [32, EQUALS]
    assert read_best(table.read, 20)[0][:10] == found, "fewer are the first of more"


def test_what_is_left_out_is_made_up_for_by_reading_on():
    table = Table(range(5000), left_out=[f"{at:04}" for at in range(1000, 5000)])
    found, _ = read_best(table.read, 10)
    assert found == table.best(10)
    assert len(found) == 10


def test_an_entry_stands_once_however_many_parts_it_has():
    parts = [Ranked("x", "a", 10.0, 0.2), Ranked("x", "a", 10.0, 0.9), Ranked("y", "a", 10.0, 0.5)]
    found, has_more = read_best(lambda count: Rows(parts, len(parts), 0.2), 2)
    assert [(row.entry_id, row.score) for row in found] == [("x", 0.9), ("y", 0.5)]
    assert not has_more
    assert merged([parts[:1], parts[1:]]) == found
