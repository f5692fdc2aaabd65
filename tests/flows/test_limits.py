"""Limits of a run: it stops in time, says so, and the next run goes on without making a window twice."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from evicat.flows.limits import Gate, LimitReachedError, Limits
from evicat.schemas.errors import WindowError

WINDOWS = 2 * (4 + 2)
"""Calls for two clips of 8 s: four local windows and two narratives each."""


@pytest.fixture
def shelf(rerun):
    rerun.put("a.mp4", "red")
    rerun.put("b.mp4", "blue")
    return rerun


@pytest.mark.parametrize("option", ["--limit-windows", "--max-calls"])
def test_a_limit_stops_with_exit_code_4_and_the_next_run_ends_as_an_unbroken_one(
    shelf, evicat, equal_part, option: str
) -> None:
    index = ("index", shelf.media, "--catalog", shelf.catalog, "--recipe", shelf.recipe)
    first = evicat(*index, option, 5)
    assert first.code == 4
    assert f"Stopped ({option} 5)" in " ".join(first.out.split())
    assert len(shelf.calls) == 5
    assert evicat(*index).code == 0
    assert len(shelf.calls) == WINDOWS
    shelf.index(catalog=shelf.folder / "unbroken")
    assert equal_part(shelf.catalog).equals(equal_part(shelf.folder / "unbroken"))


def test_no_hours_left_begins_nothing(shelf) -> None:
    summary = shelf.index(max_hours=1e-9)
    assert summary.stopped == "--max-hours 1e-09"
    assert not summary.all_done
    assert shelf.calls == []


def test_a_limit_that_is_not_reached_stops_nothing(shelf) -> None:
    assert shelf.index(limit_windows=WINDOWS, max_calls=WINDOWS, max_hours=1.0).all_done


class TestCanary:
    def test_that_lives_is_told_and_the_rest_follows(self, shelf, evicat) -> None:
        index = ("index", shelf.media, "--catalog", shelf.catalog, "--recipe", shelf.recipe)
        run = evicat(*index, "--canary", 3)
        assert run.code == 0
        assert "canary: 3 windows made, 0 of them failed" in " ".join(run.err.split())
        assert len(shelf.calls) == WINDOWS

    def test_most_of_whose_windows_fail_stops_the_run(self, shelf, evicat) -> None:
        shelf.failing = {("sight", start): WindowError("no answer") for start in (0, 2, 4, 6)}
        index = ("index", shelf.media, "--catalog", shelf.catalog, "--recipe", shelf.recipe)
        run = evicat(*index, "--canary", 4)
        assert run.code == 4
        said = " ".join(run.out.split())
        assert "canary: 4 windows made, 4 of them failed; nothing else was begun" in said
        assert len(shelf.calls) == 4

    def test_whose_failures_stand_beside_windows_with_nothing_to_write_stops_too(self, shelf) -> None:
        """A digest of nothing, and a film without sound, are no answers of the model that fails."""
        (shelf.media / "b.mp4").unlink()
        shelf.failing = {("sight", start): WindowError("no answer") for start in (0, 2, 4, 6)}
        shelf.put("c.mp4", "grey")
        profile = shelf.folder / "one.toml"
        profile.write_text("videos_at_once = 1")
        shelf.profile = str(profile)
        summary = shelf.index(canary=6)
        assert summary.canary() == (4, 4)
        assert summary.stopped == "--canary 6"

    def test_counts_for_the_other_limits(self, shelf) -> None:
        assert shelf.index(canary=3, limit_windows=5).stopped == "--limit-windows 5"
        assert len(shelf.calls) == 5

    def test_tells_once_of_a_file_that_vanished(self, shelf) -> None:
        shelf.index()
        (shelf.media / "b.mp4").unlink()
        shelf.put("c.mp4", "grey")
        assert shelf.index(canary=2).missing == ["b.mp4"]


def test_a_gate_lets_exactly_so_many_through_for_all_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    gate = Gate(Limits(max_calls=50))

    def ask(_: int) -> str:
        try:
            gate.admit()
        except LimitReachedError as error:
            return str(error)
        return "in"

    with ThreadPoolExecutor(8) as pool:
        answers = Counter(pool.map(ask, range(400)))
    assert answers == {"in": 50, "--max-calls 50": 350}


def test_windows_of_a_stopped_run_are_never_made_again(shelf) -> None:
    stops = 0
    while shelf.index(limit_windows=4).stopped:
        stops += 1
    assert stops == 2
    assert max(Counter(shelf.calls).values()) == 2, "once for each of the two clips"
    assert set(shelf.coverage().filter(pl.col("kind") != "speech")["attempts"]) == {1}


@pytest.mark.parametrize(
    "option", [["--max-hours", "0"], ["--max-hours", "-1"], ["--max-calls", "0"], ["--canary", "0"]]
)
def test_a_limit_that_allows_nothing_is_wrong_usage(evicat, shelf, option: list[str]) -> None:
    run = evicat("index", shelf.media, "--catalog", shelf.catalog, "--recipe", shelf.recipe, *option)
    assert run.code == 2
    assert not shelf.catalog.exists()
