"""Which windows are outdated by a change of a narrative that they were told of."""

import pytest

from evicat.storage.own_past import told_of


def windows(pattern):
    """Windows of 10 s of one unit: ``n`` has a narrative, ``-`` has none."""
    return [{"unit_id": "u", "start_s": 10.0 * i, "entries": int(c == "n")} for i, c in enumerate(pattern)]


@pytest.mark.parametrize(
    ("pattern", "changed", "made", "outdated"),
    [
        ("nnn", [0.0], {0.0}, [10.0]),
        ("n--nn", [0.0], {0.0}, [10.0, 20.0, 30.0]),
        ("nnnn", [0.0, 10.0], {0.0, 10.0}, [20.0]),
        ("nn", [10.0], {10.0}, []),
        ("nnn", [], {0.0}, []),
        ("-nn", [0.0], {0.0}, [10.0]),
        ("n-n", [0.0], {0.0, 10.0}, [20.0]),
    ],
)
def test_the_next_windows_up_to_one_with_a_narrative_were_told_of_it(pattern, changed, made, outdated):
    found = told_of(changed, windows(pattern), {("u", start_s) for start_s in made})
    assert [row["start_s"] for row in found] == outdated


def test_each_unit_is_looked_at_by_itself():
    other = [row | {"unit_id": "v"} for row in windows("-n")]
    found = told_of([0.0], [*windows("nn"), *other], {("u", 0.0), ("v", 0.0)})
    assert [(row["unit_id"], row["start_s"]) for row in found] == [("u", 10.0), ("v", 10.0)]
